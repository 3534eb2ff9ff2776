//! Adaptive throttling: a caller turns away its own attempts when its callee accepts too few.
//!
//! Of the attempts that a caller wanted to make in the last `window`, *requests*, the callee
//! accepted *accepts*. The next one is turned away before it is sent with probability
//!
//! ```text
//! max(0, (requests − k·accepts) / (requests + 1))
//! ```
//!
//! An attempt that is turned away counts as a request and not as an accept. So under overload the
//! callee sees about `k` times what it accepts, however much is wanted: with `k` = 2 it refuses one
//! attempt for each that it accepts. A smaller `k` spares it more, and learns later that it is well
//! again. The 1 below lets an attempt through now and then even if nothing was ever accepted.
//! The way back from an outage takes long: what is sent is `k` times what was accepted on average
//! over the window, which grows e-fold in 0.63 windows with `k` = 2.
//!
//! The past is kept in five parts of the window, so that it reaches back 80 to 100 % of it. Only
//! the ratio of two counts of the same past matters, and that has no edge to see, so that more
//! parts would buy nothing. Counts are `u32`: one caller may stand for a fleet.
//!
//! Source: B. Beyer et al., *Site Reliability Engineering* (2016), ch. 21, *Handling Overload*
//! (client-side throttling: `k` = 2, two minutes). The same formula is in Google's client libraries
//! (`AdaptiveThrottler`), and with 30 s in grpc-go.

use crate::document::Value;
use crate::kernel::{Span, Time};

/// Parts of the window.
const PARTS: u64 = 5;

/// The rule of an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttle {
    /// Attempts that the callee may see for each that it accepts, at least 1.
    pub k: f64,
    /// How long a caller remembers.
    pub window: Span,
}

/// What one caller remembers. There may be a million.
#[derive(Clone, Copy, Debug, Default)]
pub struct History {
    /// The present part, counted from the start of the run.
    number: u32,
    /// The present part first, then those before it.
    parts: [Counts; PARTS as usize],
}

const _: () = assert!(size_of::<History>() <= 48, "less than a cache line");

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u32,
    accepts: u32,
}

impl Throttle {
    /// Reads `throttle = { k = 2, window = "2m" }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let k = section.get("k").map_or(Some(2.0), |v| {
            let k = v.number_from(0.0, 1000.0)?;
            if k < 1.0 {
                v.fault(
                    &format!("`{}` = {k} is below 1", v.path()),
                    "attempts would be turned away even if every one was accepted",
                    "choose at least 1, usually 2",
                );
                return None;
            }
            Some(k)
        });
        let window = section.get("window").map_or(Some(Span::from_secs(120)), |v| {
            let window = v.positive_duration()?;
            if window < Span::from_secs(1) {
                v.fault(
                    &format!("`{}` = \"{window}\" is shorter than a second", v.path()),
                    "so little past says nothing about the callee",
                    "choose at least \"1s\", usually \"2m\"",
                );
                return None;
            }
            Some(window)
        });
        section.finish();
        Some(Throttle { k: k?, window: window? })
    }

    /// Whether an attempt that is wanted at `now` is sent; `u` is uniform in [0, 1).
    #[inline]
    pub fn asks(&self, history: &mut History, now: Time, u: f64) -> bool {
        let turned_away = self.rejection(history, now);
        history.parts[0].requests += 1;
        u >= turned_away
    }

    /// The callee has accepted an attempt.
    #[inline]
    pub fn accepted(&self, history: &mut History, now: Time) {
        self.forget(history, now);
        history.parts[0].accepts += 1;
    }

    /// The probability that an attempt at `now` is turned away.
    fn rejection(&self, history: &mut History, now: Time) -> f64 {
        self.forget(history, now);
        let sum = |count: fn(&Counts) -> u32| -> f64 {
            history.parts.iter().map(|part| f64::from(count(part))).sum()
        };
        let (requests, accepts) = (sum(|part| part.requests), sum(|part| part.accepts));
        ((requests - self.k * accepts) / (requests + 1.0)).max(0.0)
    }

    /// Drops the parts that are older than the window.
    fn forget(&self, history: &mut History, now: Time) {
        let reached = (now.nanos() / (self.window.nanos() / PARTS)) as u32;
        let passed = reached - history.number;
        history.number = reached;
        for _ in 0..passed.min(PARTS as u32) {
            history.parts.rotate_right(1);
            history.parts[0] = Counts::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Faults, Section};
    use crate::kernel::{Key, Purpose};
    use toml::de::DeTable;

    const USUAL: Throttle = Throttle { k: 2.0, window: Span::from_secs(120) };

    /// What a callee sees and accepts [1/s], and what it sees in each second, of 1000 wanted
    /// attempts a second, for half an hour. It accepts at most `most(second)` in each second.
    fn run(rule: Throttle, most: impl Fn(u32) -> u32) -> (f64, f64, Vec<u32>) {
        let mut draws = Key::root(7).stream(Purpose::Choice);
        let (mut history, mut seen) = (History::default(), Vec::new());
        let mut accepted = 0;
        for second in 0..1800 {
            let (mut now_seen, most) = (0, most(second));
            for millis in 0..1000 {
                let now = Time::ZERO + Span::from_millis(u64::from(second) * 1000 + millis);
                if rule.asks(&mut history, now, draws.unit()) {
                    now_seen += 1;
                    if now_seen <= most {
                        rule.accepted(&mut history, now);
                        accepted += 1;
                    }
                }
            }
            seen.push(now_seen);
        }
        (f64::from(seen.iter().sum::<u32>()) / 1800.0, f64::from(accepted) / 1800.0, seen)
    }

    #[test]
    fn under_overload_the_callee_sees_k_times_what_it_accepts() {
        for k in [1.1, 1.5, 2.0, 4.0] {
            let (seen, accepted, _) = run(Throttle { k, ..USUAL }, |_| 100);
            let ratio = seen / accepted;
            assert!((ratio / k - 1.0).abs() < 0.05, "{ratio} for {k}");
        }
    }

    #[test]
    fn nothing_is_turned_away_while_the_callee_accepts_one_in_k() {
        let (seen, ..) = run(USUAL, |_| 1000);
        assert_eq!(seen, 1000.0);
    }

    #[test]
    fn an_outage_is_spared_and_forgotten_after_it() {
        let outage = 600..900;
        let (.., seen) = run(USUAL, |second| if outage.contains(&second) { 10 } else { 1000 });
        assert_eq!(seen[599], 1000);
        let spared = f64::from(seen[800..900].iter().sum::<u32>()) / 100.0;
        assert!((spared / 20.0 - 1.0).abs() < 0.1, "{spared}");
        assert!((100..900).contains(&seen[1100]), "{} on the way back", seen[1100]);
        assert_eq!(seen[1799], 1000);
    }

    #[test]
    fn a_second_past_the_window_nothing_is_remembered() {
        let mut history = History::default();
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        (0..50).for_each(|_| assert!(USUAL.asks(&mut history, at(10), 0.999)));
        assert_eq!(USUAL.rejection(&mut history, at(119)), 50.0 / 51.0);
        assert_eq!(USUAL.rejection(&mut history, at(121)), 0.0);
    }

    #[test]
    fn senseless_throttles_are_refused() {
        for (text, wanted) in [
            ("throttle = {}", Ok(USUAL)),
            ("throttle = { k = 1.1, window = \"30s\" }", {
                Ok(Throttle { k: 1.1, window: Span::from_secs(30) })
            }),
            ("throttle = { k = 0.9 }", Err(1)),
            ("throttle = { window = \"100ms\" }", Err(1)),
            ("throttle = { window = 120, kk = 2 }", Err(2)),
            ("throttle = \"2m\"", Err(1)),
        ] {
            let faults = Faults::default();
            let table = DeTable::parse(text).unwrap();
            let value = Section::root(table.get_ref(), &faults).get("throttle").unwrap();
            let rule = Throttle::read(&value);
            let found = if faults.is_empty() { Ok(rule.unwrap()) } else { Err(faults.count()) };
            assert_eq!(found, wanted, "{text}");
        }
    }
}
