//! What triggers and operators have moved, right now. Mechanisms get these values as arguments and
//! never ask who moved them; two triggers on one lever combine here.

use crate::document::{EdgeId, TierId};
use crate::kernel::Span;

/// How a tier that is down treats what arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// Fails at once, without work.
    Fail,
    /// Takes it and never answers.
    BlackHole,
    /// Keeps it, and lets all of it in when the outage ends.
    Hold,
}

/// The levers of one tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierConditions {
    /// Share of the tier's own demand that is still there, in [0, 1].
    pub demand: f64,
    /// Service takes this many times as long.
    pub slow: f64,
    /// Share of the servers lost, in [0, 1].
    pub lost: f64,
    /// Share of attempts that fail after their work, in addition to the tier's own.
    pub fail: f64,
    /// Down, and how.
    pub outage: Option<Outage>,
    /// Nothing starts and nothing goes on.
    pub paused: bool,
}

/// The levers of a whole model.
#[derive(Clone, Debug)]
pub struct Conditions {
    tiers: Vec<TierConditions>,
    delays: Vec<Span>,
    /// False when the operator has switched retries off.
    pub retries: bool,
}

impl TierConditions {
    /// Nothing moved.
    pub const CALM: TierConditions = TierConditions {
        demand: 1.0,
        slow: 1.0,
        lost: 0.0,
        fail: 0.0,
        outage: None,
        paused: false,
    };
}

impl Conditions {
    /// Nothing moved.
    pub fn calm(tiers: usize, edges: usize) -> Self {
        Conditions {
            tiers: vec![TierConditions::CALM; tiers],
            delays: vec![Span::ZERO; edges],
            retries: true,
        }
    }

    /// Puts every lever that triggers move back; what the operator set stays.
    pub fn calm_down(&mut self) {
        self.tiers.fill(TierConditions::CALM);
        self.delays.fill(Span::ZERO);
    }

    /// The levers of a tier.
    #[inline]
    pub fn tier(&self, tier: TierId) -> &TierConditions {
        &self.tiers[tier.index()]
    }

    /// The levers of a tier, to move them.
    pub fn tier_mut(&mut self, tier: TierId) -> &mut TierConditions {
        &mut self.tiers[tier.index()]
    }

    /// Extra delay of an edge, each way.
    #[inline]
    pub fn delay(&self, edge: EdgeId) -> Span {
        self.delays[edge.index()]
    }

    /// The extra delay of an edge, to move it.
    pub fn delay_mut(&mut self, edge: EdgeId) -> &mut Span {
        &mut self.delays[edge.index()]
    }
}
