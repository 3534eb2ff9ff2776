//! The verdict: what a record, held against its untriggered twin, says about the system.
//!
//! | class | means |
//! |---|---|
//! | stable | healthy again after the trigger, and still so at the end |
//! | metastable | ill at the end, though the trigger is gone and the twin is healthy |
//! | overloaded | the twin is ill too: the trigger is not to blame |
//! | undecided | the run is too short to tell |
//!
//! *Healthy* is a stretch of time whose goodput is at least the criterion's share of its demand,
//! less three standard deviations of a Poisson count (so that chance alone does not make ten
//! requests a second ill). A stretch is as long as the criterion's hold, and longer where fewer
//! than [`LEAST_REQUESTS`] would fall into it. Recovery is the start of the first healthy stretch
//! after the trigger; it does not depend on the length of the run.
//!
//! Everything here is pure, and [`classify`] works on hand-written series.

mod evidence;
mod expectation;
mod phase;

use crate::kernel::{Span, Time};
use crate::measure::Record;
use crate::model::{Criteria, Model};

pub use evidence::{Evidence, edge_figures, frame, tier_figures};
pub use expectation::{Expectation, hold_against};
pub use phase::{Phase, phases};

/// A stretch with fewer requests says too little.
pub const LEAST_REQUESTS: u64 = 100;

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

/// See the table on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table on top says what each means")]
pub enum Class {
    Stable,
    Metastable,
    Overloaded,
    Undecided,
}

/// One window, as the users saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beat {
    /// First instant.
    pub from: Time,
    /// First instant after it.
    pub to: Time,
    /// User requests begun.
    pub demand: u64,
    /// User requests answered well.
    pub good: u64,
    /// Attempts waiting anywhere, on average.
    pub backlog: f64,
}

/// The outcome of [`classify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The class.
    pub class: Class,
    /// See [`Verdict::recovery_time`].
    pub recovery_time: Option<Span>,
    /// Why it is undecided.
    pub doubt: Option<Doubt>,
}

/// Why a verdict is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Too little time after the trigger.
    TooShort,
    /// The backlog shrinks; at this pace it is gone after so much more time.
    Draining(Span),
    /// A rate limit that the operator set is still in force.
    LimitInForce,
}

impl Class {
    /// As the model file and JSON name it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Stable => "stable",
            Class::Metastable => "metastable",
            Class::Overloaded => "overloaded",
            Class::Undecided => "undecided",
        }
    }
}

/// Judges a run by its record and that of its untriggered twin.
pub fn judge(model: &Model, record: &Record, twin: Option<&Record>) -> Verdict {
    let beats = beats(model, record);
    let twin_beats = twin.map(|twin| self::beats(model, twin));
    let trigger_end = model.trigger_span().map(|(_, end)| end);
    let mut ruling = classify(&beats, twin_beats.as_deref(), trigger_end, &model.criteria);
    if ruling.class == Class::Metastable && operator_limits(model, record) {
        ruling.class = Class::Undecided;
        ruling.doubt = Some(Doubt::LimitInForce);
    }
    let evidence = Evidence::gather(model, record, twin);
    let sentence = evidence.sentence(model, &ruling);
    Verdict { class: ruling.class, recovery_time: ruling.recovery_time, sentence, evidence }
}

/// Classifies a series of windows, held against that of the untriggered twin.
pub fn classify(
    beats: &[Beat],
    twin: Option<&[Beat]>,
    trigger_end: Option<Time>,
    criteria: &Criteria,
) -> Ruling {
    let ruling = |class| Ruling { class, recovery_time: None, doubt: None };
    let undecided = |doubt| Ruling { doubt: Some(doubt), ..ruling(Class::Undecided) };
    let Some(trigger_end) = trigger_end else {
        let Some(last) = last_stretch(beats, criteria) else { return undecided(Doubt::TooShort) };
        return ruling(if healthy(last, criteria) { Class::Stable } else { Class::Overloaded });
    };
    if let Some(last) = twin.and_then(|twin| last_stretch(twin, criteria))
        && !healthy(last, criteria)
    {
        return ruling(Class::Overloaded);
    }
    let after = &beats[beats.partition_point(|beat| beat.from < trigger_end)..];
    let Some(last) = last_stretch(after, criteria) else { return undecided(Doubt::TooShort) };
    let recovery_time = recovery(after, criteria).map(|start| start.since(trigger_end));
    if healthy(last, criteria) {
        return Ruling { recovery_time, ..ruling(Class::Stable) };
    }
    if duration(after).nanos() < 2 * duration(last).nanos() {
        return undecided(Doubt::TooShort);
    }
    if let Some(rest) = draining(after) {
        return undecided(Doubt::Draining(rest));
    }
    Ruling { recovery_time, ..ruling(Class::Metastable) }
}

/// The windows of a record, as the users saw them.
pub fn beats(model: &Model, record: &Record) -> Vec<Beat> {
    let clients: Vec<usize> = model
        .tier_ids()
        .filter(|&tier| model.tier(tier).is_client())
        .map(|tier| tier.index())
        .collect();
    let windows = record.windows.iter().enumerate();
    windows
        .map(|(index, window)| {
            let seconds = window.to.since(window.from).seconds();
            Beat {
                from: window.from,
                to: window.to,
                demand: clients.iter().map(|&tier| record.tiers[tier][index].demand).sum(),
                good: clients.iter().map(|&tier| record.tiers[tier][index].good).sum(),
                backlog: record.tiers.iter().map(|rows| rows[index].queue_area).sum::<f64>()
                    / seconds,
            }
        })
        .collect()
}

fn operator_limits(model: &Model, record: &Record) -> bool {
    let limited = |index: usize| record.tiers[index].last().is_some_and(|row| row.limit.is_some());
    model.tiers.iter().enumerate().any(|(index, tier)| tier.admission.is_none() && limited(index))
}

fn duration(beats: &[Beat]) -> Span {
    match beats {
        [] => Span::ZERO,
        [first, .., last] => last.to.since(first.from),
        [only] => only.to.since(only.from),
    }
}

fn healthy(stretch: &[Beat], criteria: &Criteria) -> bool {
    let demand = stretch.iter().map(|beat| beat.demand).sum::<u64>() as f64;
    let good = stretch.iter().map(|beat| beat.good).sum::<u64>() as f64;
    good >= criteria.healthy * demand - 3.0 * demand.sqrt() && (good > 0.0 || demand == 0.0)
}

/// True when the windows are long enough to say something.
fn suffices(stretch: &[Beat], criteria: &Criteria) -> bool {
    duration(stretch) >= criteria.hold
        && stretch.iter().map(|beat| beat.demand).sum::<u64>() >= LEAST_REQUESTS
}

/// The shortest end of a series that suffices.
fn last_stretch<'b>(beats: &'b [Beat], criteria: &Criteria) -> Option<&'b [Beat]> {
    (0..beats.len()).rev().map(|start| &beats[start..]).find(|stretch| suffices(stretch, criteria))
}

/// The start of the first healthy stretch. Its first window must be healthy by itself, so that a
/// good end does not make up for a bad beginning.
fn recovery(after: &[Beat], criteria: &Criteria) -> Option<Time> {
    let mut end = 0;
    for start in 0..after.len() {
        end = end.max(start);
        while end < after.len() && !suffices(&after[start..end], criteria) {
            end += 1;
        }
        if !suffices(&after[start..end], criteria) {
            return None;
        }
        if healthy(&after[start..=start], criteria) && healthy(&after[start..end], criteria) {
            return Some(after[start].from);
        }
    }
    None
}

/// How much longer the backlog takes to drain at the pace of the last half, if it drains at all: by
/// at least a twentieth from the third to the fourth quarter, and gone within twice the time seen
/// so far.
fn draining(after: &[Beat]) -> Option<Span> {
    let quarter = after.len() / 4;
    if quarter < 2 {
        return None;
    }
    let mean = |beats: &[Beat]| beats.iter().map(|b| b.backlog).sum::<f64>() / beats.len() as f64;
    let third = mean(&after[after.len() - 2 * quarter..after.len() - quarter]);
    let fourth = mean(&after[after.len() - quarter..]);
    let drained = third - fourth;
    if drained < third / 20.0 || third < 1.0 {
        return None;
    }
    let per_quarter = duration(&after[after.len() - quarter..]).seconds();
    let rest = fourth / drained * per_quarter;
    (rest <= 2.0 * duration(after).seconds()).then(|| Span::from_seconds(rest.ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRITERIA: Criteria = Criteria { healthy: 0.9, hold: Span::from_secs(10) };

    /// One window a second, 100 requests each; goodput and backlog as given.
    fn series(length: u64, good: impl Fn(u64) -> u64, backlog: impl Fn(u64) -> f64) -> Vec<Beat> {
        let at = |second| Time::ZERO + Span::from_secs(second);
        (0..length)
            .map(|s| Beat {
                from: at(s),
                to: at(s + 1),
                demand: 100,
                good: good(s),
                backlog: backlog(s),
            })
            .collect()
    }

    fn rule(beats: &[Beat]) -> Ruling {
        let twin = series(beats.len() as u64, |_| 100, |_| 0.0);
        classify(beats, Some(&twin), Some(Time::ZERO + Span::from_secs(20)), &CRITERIA)
    }

    #[test]
    fn goodput_that_comes_back_is_stable_with_its_recovery_time() {
        let ruling = rule(&series(100, |s| if (10..35).contains(&s) { 0 } else { 100 }, |_| 0.0));
        assert_eq!(ruling.class, Class::Stable);
        assert_eq!(ruling.recovery_time, Some(Span::from_secs(15)));
    }

    #[test]
    fn recovery_time_does_not_grow_with_the_run() {
        let good = |s| if (10..35).contains(&s) { 0 } else { 100 };
        let short = rule(&series(60, good, |_| 0.0)).recovery_time;
        assert_eq!(short, rule(&series(2000, good, |_| 0.0)).recovery_time);
    }

    #[test]
    fn goodput_that_stays_away_is_metastable() {
        assert_eq!(
            rule(&series(100, |s| if s < 10 { 100 } else { 3 }, |_| 500.0)).class,
            Class::Metastable
        );
    }

    #[test]
    fn a_short_relief_does_not_make_it_stable() {
        let ruling = rule(&series(200, |s| if (60..80).contains(&s) { 100 } else { 0 }, |_| 500.0));
        assert_eq!(ruling.class, Class::Metastable);
        assert_eq!(ruling.recovery_time, Some(Span::from_secs(40)));
    }

    #[test]
    fn an_ill_twin_means_overload() {
        let ill = series(100, |_| 50, |_| 500.0);
        let ruling = classify(&ill, Some(&ill), Some(Time::ZERO + Span::from_secs(20)), &CRITERIA);
        assert_eq!(ruling.class, Class::Overloaded);
    }

    #[test]
    fn a_run_that_ends_soon_after_the_trigger_is_undecided() {
        let ruling = rule(&series(35, |s| if s < 10 { 100 } else { 0 }, |_| 500.0));
        assert_eq!(ruling.doubt, Some(Doubt::TooShort));
    }

    #[test]
    fn a_backlog_that_drains_is_undecided_and_says_for_how_long() {
        let ruling =
            rule(&series(120, |s| if s < 10 { 100 } else { 0 }, |s| 2000.0 - 10.0 * s as f64));
        assert!(matches!(ruling.doubt, Some(Doubt::Draining(rest)) if (80.0..100.0)
                .contains(&rest.seconds())));
    }

    #[test]
    fn chance_alone_makes_nobody_ill() {
        let good = |s| 100 - [0, 20, 5, 12, 0, 18][s as usize % 6];
        assert_eq!(rule(&series(100, good, |_| 1.0)).class, Class::Stable);
    }

    #[test]
    fn without_a_trigger_an_ill_run_is_overloaded() {
        let ill = series(100, |_| 60, |_| 100.0);
        assert_eq!(classify(&ill, None, None, &CRITERIA).class, Class::Overloaded);
    }
}
