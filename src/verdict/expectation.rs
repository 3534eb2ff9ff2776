//! Holding a run against the `[expect]` table of its model.

use super::Verdict;
use super::phase::Phase;
use crate::measure::Record;
use crate::model::Model;

/// One expectation and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What was expected of, such as `after.api.offered_per_s`.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What came out.
    pub got: String,
    /// Whether it will do.
    pub met: bool,
}

/// Every expectation of the model, held against a run.
pub fn hold_against(
    model: &Model,
    record: &Record,
    verdict: &Verdict,
    phases: &[Phase],
) -> Vec<Expectation> {
    let mut all = Vec::new();
    if let Some(class) = model.expect.verdict {
        let got = verdict.class.name();
        all.push(Expectation {
            what: "verdict".into(),
            expected: class.into(),
            got: got.into(),
            met: got == class,
        });
    }
    if let Some(range) = model.expect.recovery_time_s {
        let got = verdict.recovery_time.map(|span| span.seconds());
        all.push(in_range("recovery_time_s".into(), range, got));
    }
    for range in &model.expect.figures {
        let phase = phases.iter().find(|phase| phase.name == range.phase);
        let figures =
            phase.map(|phase| super::evidence::tier_figures(model, record, range.tier, phase));
        let got = figures.and_then(|figures| figures.figure(range.figure));
        let what =
            format!("{}.{}.{}", range.phase, model.names.tier_name(range.tier), range.figure);
        all.push(in_range(what, (range.from, range.to), got));
    }
    for range in &model.expect.herds {
        let figures = super::herd_figures(model, record, range.tier);
        let got = figures.and_then(|figures| figures.figure(range.figure));
        let what = format!("herd.{}.{}", model.names.tier_name(range.tier), range.figure);
        all.push(in_range(what, (range.from, range.to), got));
    }
    all
}

fn in_range(what: String, (from, to): (f64, f64), got: Option<f64>) -> Expectation {
    Expectation {
        what,
        expected: if from == to { format!("{from}") } else { format!("{from} to {to}") },
        got: got.map_or("nothing".into(), |got| format!("{}", (got * 1e4).round() / 1e4)),
        met: got.is_some_and(|got| (from..=to).contains(&got)),
    }
}
