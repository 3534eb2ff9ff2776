//! What lives in a run of an edge of the call graph: its rule, its conditions, its counters and the
//! state of its mechanisms, in one record.

use std::collections::VecDeque;

use crate::kernel::{Id, Lane, Span, Time};
use crate::measure::EdgeMeter;
use crate::mechanism::breaker::Circuit;
use crate::mechanism::budget::{Budget, Scope, Tokens};
use crate::mechanism::cache::{Cache, Entries};
use crate::mechanism::network::Network;
use crate::mechanism::pace::Pacer;
use crate::mechanism::pool::Connections;
use crate::mechanism::throttle::History;
use crate::mechanism::timer::Timer;
use crate::model::{Edge, Tier};

/// An edge in a run.
#[derive(Clone, Debug)]
pub struct EdgeRun<'m> {
    /// Its rule.
    pub rule: &'m Edge,
    /// The rule of the tier that is called.
    pub callee: &'m Tier,
    /// Extra delay each way right now; a copy of what the conditions of the run say.
    /// Changed by [`Self::set_delay`] alone.
    pub delay: Span,
    /// The timeout, and its lane.
    pub timeout: Option<(Span, Lane)>,
    /// The clock by which its caller acts.
    pub timer: Option<Timer>,
    /// Whether its callers turn their own attempts away, now and then, or hold them back.
    pub guarded: bool,
    /// Whether an attempt that its caller lets go just leaves: it needs nothing, nobody looks at
    /// it, and no budget or cache learns of its end.
    pub plain: bool,
    /// Whether nothing takes time on the way right now, nor gets lost.
    pub instant: bool,
    /// Whether, right now, an attempt just goes and is there: it is plain and instant, its caller
    /// neither turns it away nor holds it back, and nobody wants to know for which operation it is.
    pub quick: bool,
    /// Counters of the current window.
    pub meter: EdgeMeter,
    /// Connections, by replica of the caller.
    pub pools: Vec<Connections<Id>>,
    /// Budgets, by replica of the caller, or one for all.
    pub buckets: Vec<Tokens>,
    /// What throttling callers remember, by replica.
    pub histories: Vec<History>,
    /// Breakers, by replica of the caller.
    pub circuits: Vec<Circuit>,
    /// What callers that pace themselves remember, and the calls whose attempts they hold back,
    /// by replica.
    pub pacers: Vec<(Pacer, VecDeque<Id>)>,
    /// Cached answers.
    pub cache: Option<Entries>,
}

impl<'m> EdgeRun<'m> {
    /// An edge at the start of a run.
    pub fn start(rule: &'m Edge, caller: &Tier, callee: &'m Tier, tells_operations: bool) -> Self {
        let mut edge = EdgeRun {
            rule,
            callee,
            delay: Span::ZERO,
            timeout: None,
            timer: caller.timer,
            guarded: rule.throttle.is_some() || rule.breaker.is_some() || rule.pace.is_some(),
            instant: false,
            quick: false,
            plain: rule.pool.is_none()
                && rule.budget.is_none()
                && rule.cache.is_none()
                && !caller.is_herd(),
            meter: EdgeMeter::default(),
            pools: Vec::new(),
            buckets: Vec::new(),
            histories: Vec::new(),
            circuits: Vec::new(),
            pacers: Vec::new(),
            cache: rule.cache.as_ref().map(Cache::start),
        };
        edge.grow(caller.replicas as usize);
        edge.set_delay(Span::ZERO, tells_operations);
        edge
    }

    /// Sets the extra delay; `tells_operations` as in the run.
    pub fn set_delay(&mut self, delay: Span, tells_operations: bool) {
        self.delay = delay;
        self.instant = delay == Span::ZERO && self.rule.network == Network::default();
        self.quick = self.instant && self.plain && !self.guarded && !tells_operations;
    }

    /// Pools and budgets for so many replicas of the caller.
    pub fn grow(&mut self, replicas: usize) {
        if self.rule.pool.is_some() {
            self.pools.resize_with(replicas, Connections::new);
        }
        if self.rule.breaker.is_some() {
            self.circuits.resize(replicas, Circuit::default());
        }
        if self.rule.pace.is_some() {
            self.pacers.resize_with(replicas, Default::default);
        }
        if self.rule.throttle.is_some() {
            self.histories.resize(replicas, History::default());
        }
        if let Some(budget) = &self.rule.budget {
            let buckets = if budget.scope == Scope::Fleet { 1 } else { replicas };
            self.buckets.resize(buckets, budget.start());
        }
    }

    /// When the caller's patience with an attempt ends that it sends now, for a call that it wants
    /// answered by `deadline`; and the lane of this clock, unless the deadline cuts it short.
    #[inline(always)]
    pub fn clock(&self, now: Time, deadline: Time) -> (Time, Option<Lane>) {
        match self.timeout {
            Some((timeout, lane)) if now + timeout <= deadline => (now + timeout, Some(lane)),
            Some(_) => (deadline, None),
            None => (self.rule.patience.attempt_deadline(now, deadline), None),
        }
    }

    /// The lane of a clock that starts now, if it has one.
    #[inline]
    pub fn lane(&self, now: Time, limit: Time) -> Option<Lane> {
        self.timeout.filter(|(timeout, _)| now + *timeout == limit).map(|(_, lane)| lane)
    }

    /// The budget of a replica of the caller, with its rule.
    #[inline]
    pub fn budget(&mut self, replica: u32) -> Option<(&'m Budget, &mut Tokens)> {
        let rule = self.rule.budget.as_ref()?;
        let bucket = if rule.scope == Scope::Fleet { 0 } else { replica as usize };
        Some((rule, &mut self.buckets[bucket]))
    }

    /// The cache, with its rule.
    #[inline]
    pub fn cache(&mut self) -> Option<(&'m Cache, &mut Entries)> {
        self.rule.cache.as_ref().zip(self.cache.as_mut())
    }
}
