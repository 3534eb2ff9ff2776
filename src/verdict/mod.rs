//! The verdict: what a record, held against its untriggered twin, says about the system.
//!
//! | class | means |
//! |---|---|
//! | stable | healthy again after the trigger, and still so at the end |
//! | metastable | ill at the end, though the trigger is gone and the twin is healthy |
//! | overloaded | the twin is ill too: the trigger is not to blame |
//! | undecided | the run is too short to tell |
//!
//! Each client tier is judged by itself, and the worst ruling is the verdict. `ruling` says what is
//! healthy and what follows; `cause` names the loop that sustains a bad state; `sentence` says it
//! all to a manager; `ensemble` judges many seeds together. Everything here is pure.

mod cause;
mod choice;
mod ensemble;
mod evidence;
mod expectation;
mod herd;
mod phase;
mod ruling;
mod sentence;
mod trial;

use crate::document::TierId;
use crate::kernel::Span;
use crate::measure::Record;
use crate::model::Model;

pub use choice::{Choice, Goal, Situation, Standing, choices, ranked};
pub use ensemble::{Consensus, Replication};
pub use evidence::{Evidence, edge_figures, frame, tier_figures};
pub use expectation::{Expectation, hold_against};
pub use herd::{HerdFigures, herd_figures};
pub use phase::{Phase, phases};
pub use ruling::{Beat, Class, Doubt, Ruling, beats, classify};
pub use trial::Trial;

/// What a run says about the system.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The class.
    pub class: Class,
    /// From the end of the last trigger to the start of the first healthy stretch.
    pub recovery_time: Option<Span>,
    /// What a manager understands.
    pub sentence: String,
    /// What it rests on.
    pub evidence: Evidence,
}

/// Judges a run by its record and that of its untriggered twin.
pub fn judge(model: &Model, record: &Record, twin: Option<&Record>) -> Verdict {
    let clients = model.tier_ids().filter(|&tier| model.tier(tier).is_client());
    let rulings = clients.map(|client| (rule(model, record, twin, client), client));
    let worst = rulings.reduce(|a, b| if b.0.class > a.0.class { b } else { a });
    let (ruling, client) = worst.expect("a model has a client");
    let recovery =
        ruling.recovery_time.zip(model.trigger_span()).map(|(span, (_, end))| end + span);
    let evidence = Evidence::gather(model, record, twin, client, recovery);
    let sentence = herd::sentence(model, record, &ruling, client)
        .unwrap_or_else(|| sentence::of(model, record, &ruling, &evidence));
    Verdict { class: ruling.class, recovery_time: ruling.recovery_time, sentence, evidence }
}

fn rule(model: &Model, record: &Record, twin: Option<&Record>, client: TierId) -> Ruling {
    let calm_herd = twin.and_then(|twin| twin.herds.get(client.index())?.as_ref());
    if let Some(ruling) = herd::rule(model, record, client, calm_herd) {
        return ruling;
    }
    let twin = twin.map(|twin| beats(twin, client));
    let trigger_end = model.trigger_span().map(|(_, end)| end);
    let here = beats(record, client);
    let mut ruling = classify(&here, twin.as_deref(), trigger_end, &model.criteria);
    if ruling.class == Class::Metastable && operator_limits(model, record) {
        ruling.class = Class::Undecided;
        ruling.doubt = Some(Doubt::LimitInForce);
    }
    ruling
}

/// Whether a rate limit that the operator set is in force at the end.
fn operator_limits(model: &Model, record: &Record) -> bool {
    let limited = |index: usize| record.tiers[index].last().is_some_and(|row| row.limit.is_some());
    let tiers = model.tiers.iter().enumerate();
    tiers.filter(|(_, tier)| tier.admission.is_none()).any(|(index, _)| limited(index))
}
