//! The verdict in a sentence or two that a manager understands.

use super::evidence::Evidence;
use super::ruling::{Class, Doubt, Ruling};
use crate::document::{rate_text, share_text};
use crate::kernel::Span;
use crate::measure::Record;
use crate::model::Model;

/// The sentence of a ruling.
pub fn of(model: &Model, record: &Record, ruling: &Ruling, evidence: &Evidence) -> String {
    let who = evidence.client.as_ref().map_or("users".into(), |name| format!("users of {name}"));
    let answered = percent(evidence.goodput_share);
    let demand = rate_text(evidence.demand_per_s);
    let fed = evidence.sustaining_loop.as_ref().map_or(String::new(), |words| {
        format!(
            ": \
    {words}"
        )
    });
    let stopped = if record.interrupted { "Interrupted before its end. " } else { "" };
    let text = match (ruling.class, ruling.doubt) {
        (Class::Stable, _) => stable(model, ruling, evidence, &who),
        (Class::Metastable, _) => format!(
            "Metastable: the trigger is gone and {who} ask for {demand}, yet {} answered in \
             time{fed}. Without the trigger it would be {}.{}",
            only(evidence.goodput_share),
            percent(evidence.twin_goodput_share),
            relapse(ruling),
        ),
        (Class::Overloaded, _) => format!(
            "Overloaded: {} of the {demand} that {who} ask for {}{fed}.",
            only(evidence.goodput_share).trim_end_matches(" are"),
            if model.triggers.is_empty() {
                "are answered in time"
            } else {
                "are answered in time, and it would be no better without the trigger"
            },
        ),
        (Class::Undecided, Some(Doubt::Draining(rest))) => format!(
            "Undecided: a backlog shrinks that has not gone by the end; answers take {} on \
            average, \
             {answered} of {demand} come in time. Run at least {rest} longer to see the end.",
            seconds(evidence.response_mean_s),
        ),
        (Class::Undecided, Some(Doubt::LimitInForce)) => format!(
            "Undecided: {answered} of {demand} are answered in time under a rate limit that the \
             operator has not lifted by the end."
        ),
        (Class::Undecided, _) => {
            "Undecided: too little time or too few requests after the trigger to tell; run longer."
                .into()
        }
    };
    format!("{stopped}{text}")
}

fn stable(model: &Model, ruling: &Ruling, evidence: &Evidence, who: &str) -> String {
    let served =
        format!("{} of {}", percent(evidence.goodput_share), rate_text(evidence.demand_per_s));
    let Some(recovery) = ruling.recovery_time.filter(|_| !model.triggers.is_empty()) else {
        return format!("Stable: {served} are answered in time.");
    };
    let during = evidence.goodput_share_during_trigger;
    let mut text = if recovery == Span::ZERO && during.is_some_and(|s| s >= model.criteria.healthy)
    {
        let during = percent(during);
        format!(
            "Stable: {during} are answered in time even while the trigger lasts, {served} after."
        )
    } else if evidence.recovered_by.as_deref() == Some("operator") {
        format!(
            "Stable, by the operator's hand: {who} are served again {}, and to the end \
            ({served}).",
            after(recovery)
        )
    } else {
        format!("Stable: {who} are served again {}, and to the end ({served}).", after(recovery))
    };
    if let Some(down) = &evidence.tier_down {
        text.push_str(&format!(" But {down}."));
    }
    text
}

fn relapse(ruling: &Ruling) -> String {
    ruling.recovery_time.map_or(String::new(), |recovery| {
        format!(" It had recovered {} and collapsed again.", after(recovery))
    })
}

fn after(span: Span) -> String {
    match span {
        Span::ZERO => "at once when the trigger ends".into(),
        _ => format!("{span} after the trigger"),
    }
}

/// "none is", "only 3% are".
fn only(share: Option<f64>) -> String {
    match share {
        Some(share) if share >= 0.0005 => format!("only {} are", percent(Some(share))),
        _ => "none are".into(),
    }
}

/// A share with one decimal; answers to earlier requests can make it a little more than all.
pub(super) fn percent(share: Option<f64>) -> String {
    let share = share.map(|share| share_text((share.min(1.0) * 1000.0).round() / 1000.0));
    share.unwrap_or("none".into())
}

pub(super) fn seconds(value: Option<f64>) -> String {
    match value {
        Some(value) if value >= 10.0 => format!("{value:.0} s"),
        Some(value) => format!("{value:.2} s"),
        None => "for ever".into(),
    }
}
