//! What is healthy, and which class follows.
//!
//! A stretch of time is *healthy* when its goodput is at least the criterion's share of its demand,
//! less three standard deviations of a Poisson count (so that chance alone does not make ten
//! requests a second ill), and when answers take on average at most so many times as long as in the
//! twin: a backlog that is answered minutes late is no recovery. A stretch is as long as the
//! criterion's hold, and longer where fewer than [`LEAST_REQUESTS`] would fall into it; at the end
//! of the run it is at least a tenth of the time after the trigger. Recovery is the start of the
//! first healthy stretch after the trigger; it does not depend on the length of the run.

use crate::document::TierId;
use crate::kernel::{Span, Time};
use crate::measure::Record;
use crate::model::Criteria;

/// A stretch with fewer requests says too little.
pub const LEAST_REQUESTS: u64 = 100;

/// The class of a verdict, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Healthy again after the trigger, and still so at the end.
    Stable,
    /// The run is too short to tell.
    Undecided,
    /// The twin is ill too.
    Overloaded,
    /// Ill at the end, though the trigger is gone and the twin is healthy.
    Metastable,
}

/// One window, as the users of one client tier saw it.
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
    /// User requests ended, well or not.
    pub ended: u64,
    /// Sum of their response times (s).
    pub response_s: f64,
    /// Attempts waiting at other tiers, on average.
    pub backlog: f64,
    /// Attempts finished at other tiers.
    pub served: u64,
}

/// The outcome of [`classify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The class.
    pub class: Class,
    /// From the end of the last trigger to the start of the first healthy stretch.
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

/// What a stretch is held against.
struct Measure<'c> {
    criteria: &'c Criteria,
    /// Longest mean response time that is healthy (s); infinite without a twin.
    slowest_s: f64,
}

impl Class {
    /// All of them, from the best to the worst.
    pub const ALL: [Class; 4] =
        [Class::Stable, Class::Undecided, Class::Overloaded, Class::Metastable];

    /// As the model file and JSON name it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Stable => "stable",
            Class::Metastable => "metastable",
            Class::Overloaded => "overloaded",
            Class::Undecided => "undecided",
        }
    }

    /// As a sentence begins with it.
    pub fn title(self) -> &'static str {
        match self {
            Class::Stable => "Stable",
            Class::Metastable => "Metastable",
            Class::Overloaded => "Overloaded",
            Class::Undecided => "Undecided",
        }
    }
}

/// The windows of a record, as the users of a client tier saw them.
pub fn beats(record: &Record, client: TierId) -> Vec<Beat> {
    let windows = record.windows.iter().enumerate();
    windows
        .map(|(index, window)| {
            let seconds = window.to.since(window.from).seconds();
            let row = &record.tiers[client.index()][index];
            let others =
                record.tiers.iter().enumerate().filter(|(tier, _)| *tier != client.index());
            let all = || others.clone().map(|(_, rows)| &rows[index]);
            Beat {
                from: window.from,
                to: window.to,
                demand: row.demand,
                good: row.good,
                ended: row.finished,
                response_s: row.sojourn.sum_s(),
                backlog: all().map(|row| row.queue_area).sum::<f64>() / seconds,
                served: all().map(|row| row.finished).sum(),
            }
        })
        .collect()
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
    let plain = Measure { criteria, slowest_s: f64::INFINITY };
    let Some(trigger_end) = trigger_end else {
        let Some(last) = plain.last_stretch(beats) else { return undecided(Doubt::TooShort) };
        return ruling(if plain.healthy(last) { Class::Stable } else { Class::Overloaded });
    };
    if let Some(last) = twin.and_then(|twin| plain.last_stretch(twin))
        && !plain.healthy(last)
    {
        return ruling(Class::Overloaded);
    }
    let usual_s = twin.and_then(mean_response_s).unwrap_or(f64::INFINITY);
    let measure = Measure { criteria, slowest_s: usual_s * criteria.slower };
    let after = &beats[beats.partition_point(|beat| beat.from < trigger_end)..];
    let Some(last) = measure.last_stretch(after) else { return undecided(Doubt::TooShort) };
    let recovery_time = measure.recovery(after).map(|start| start.since(trigger_end));
    if measure.healthy(last) {
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

impl Measure<'_> {
    fn healthy(&self, stretch: &[Beat]) -> bool {
        let demand = stretch.iter().map(|beat| beat.demand).sum::<u64>() as f64;
        let good = stretch.iter().map(|beat| beat.good).sum::<u64>() as f64;
        let enough = good >= self.criteria.healthy * demand - 3.0 * demand.sqrt();
        let in_time = mean_response_s(stretch).is_none_or(|mean| mean <= self.slowest_s);
        enough && in_time && (good > 0.0 || demand == 0.0)
    }

    /// True when the windows are long enough to say something.
    fn suffices(&self, stretch: &[Beat], least: Span) -> bool {
        duration(stretch) >= least
            && stretch.iter().map(|beat| beat.demand).sum::<u64>() >= LEAST_REQUESTS
    }

    /// The shortest end of a series that suffices, and is a tenth of it at least.
    fn last_stretch<'b>(&self, beats: &'b [Beat]) -> Option<&'b [Beat]> {
        let least = self.criteria.hold.max(Span::from_nanos(duration(beats).nanos() / 10));
        let ends = (0..beats.len()).rev().map(|start| &beats[start..]);
        ends.into_iter().find(|stretch| self.suffices(stretch, least))
    }

    /// The start of the first healthy stretch. Its first window must be healthy by itself, so that
    /// a good end does not make up for a bad beginning.
    fn recovery(&self, after: &[Beat]) -> Option<Time> {
        let mut end = 0;
        for start in 0..after.len() {
            end = end.max(start);
            while end < after.len() && !self.suffices(&after[start..end], self.criteria.hold) {
                end += 1;
            }
            if !self.suffices(&after[start..end], self.criteria.hold) {
                return None;
            }
            if self.healthy(&after[start..=start]) && self.healthy(&after[start..end]) {
                return Some(after[start].from);
            }
        }
        None
    }
}

fn mean_response_s(beats: &[Beat]) -> Option<f64> {
    let ended = beats.iter().map(|beat| beat.ended).sum::<u64>();
    (ended > 0).then(|| beats.iter().map(|beat| beat.response_s).sum::<f64>() / ended as f64)
}

fn duration(beats: &[Beat]) -> Span {
    match beats {
        [] => Span::ZERO,
        [first, .., last] => last.to.since(first.from),
        [only] => only.to.since(only.from),
    }
}

/// How much longer the backlog takes to drain at the pace of the last half, if it drains: from the
/// third to the fourth quarter it falls by more than three standard deviations of what chance does
/// to the difference of arrivals and departures.
fn draining(after: &[Beat]) -> Option<Span> {
    let quarter = after.len() / 4;
    if quarter < 2 {
        return None;
    }
    let mean = |beats: &[Beat]| beats.iter().map(|b| b.backlog).sum::<f64>() / beats.len() as f64;
    let half = &after[after.len() - 2 * quarter..];
    let (third, fourth) = (mean(&half[..quarter]), mean(&half[quarter..]));
    let served = half.iter().map(|beat| beat.served).sum::<u64>() as f64 / 2.0;
    let drained = third - fourth;
    if drained <= 3.0 * (2.0 * served).sqrt() && drained < third / 20.0 || third < 1.0 {
        return None;
    }
    let per_quarter = duration(&half[quarter..]).seconds();
    (drained > 0.0).then(|| Span::from_seconds((fourth / drained * per_quarter).ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRITERIA: Criteria = Criteria { healthy: 0.9, slower: 10.0, hold: Span::from_secs(10) };

    /// One window a second, 100 requests each; goodput and backlog as given.
    fn series(length: u64, good: impl Fn(u64) -> u64, backlog: impl Fn(u64) -> f64) -> Vec<Beat> {
        let at = |second| Time::ZERO + Span::from_secs(second);
        (0..length)
            .map(|s| Beat {
                from: at(s),
                to: at(s + 1),
                demand: 100,
                good: good(s),
                ended: 100,
                response_s: 10.0,
                backlog: backlog(s),
                served: 100,
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

    #[test]
    fn answers_that_come_much_too_late_are_no_recovery() {
        let mut late = series(200, |_| 100, |s| 5000.0 - 10.0 * s as f64);
        for beat in &mut late[20..] {
            beat.response_s = 4000.0;
        }
        let ruling = rule(&late);
        assert_eq!((ruling.class, ruling.recovery_time), (Class::Undecided, None));
        assert!(matches!(ruling.doubt, Some(Doubt::Draining(_))));
    }
}
