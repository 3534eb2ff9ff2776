//! Whether and when a caller tries again after a failed attempt: how often, what is worth it, the
//! wait ([`Backoff`]), what a server's Retry-After is to it ([`Heed`]), and an offset of each
//! device's own ([`device`]).
//!
//! A wait that would reach past the caller's deadline is not begun: the call fails at the decision.
//!
//! Retry-After in place of back-off, for a refusal that carries it: exact R; full jitter U[0, R);
//! a floor with up to x times as long, R·(1 + (x − 1)·U[0, 1)). Why not the longer of the two: the
//! server knows when it has room, and a back-off grown long while it was down knows nothing of
//! that. A wait that the server has set leaves the memory of a decorrelated back-off alone.

mod backoff;
pub mod device;

pub use backoff::{Backoff, Jitter};

use crate::document::Value;
use crate::kernel::{Key, Purpose, Span};
use crate::mechanism::outcome::{Outcome, Reason, Status};

/// The rule of an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Total tries, the first included.
    pub attempts: u32,
    /// How long to wait before the next.
    pub backoff: Backoff,
    /// What is worth another try.
    pub on: RetryOn,
    /// What a Retry-After is to the caller.
    pub retry_after: Heed,
    /// Each caller waits a fixed share of this on top, by its device; zero for none.
    pub offset: Span,
}

/// Which outcomes are retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryOn {
    failed: bool,
    refused: bool,
    timed_out: bool,
    network: bool,
    /// By [`Status::bit`].
    statuses: u16,
}

/// What a caller makes of a Retry-After of R.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Heed {
    /// It goes by its own back-off.
    #[default]
    Ignore,
    /// It waits R.
    Exact,
    /// It waits U[0, R).
    FullJitter,
    /// It waits from R up to this many times R, at random.
    Floor(f64),
}

/// How an attempt has failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setback {
    /// The way.
    pub outcome: Outcome,
    /// The status of the answer; without meaning where there was none.
    pub status: Status,
    /// How long the answer asks the caller to stay away.
    pub retry_after: Option<Span>,
}

/// What one call remembers between its attempts.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryState {
    previous: Span,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            attempts: 1,
            backoff: Backoff::Immediate,
            on: RetryOn::ALL,
            retry_after: Heed::Ignore,
            offset: Span::ZERO,
        }
    }
}

impl RetryOn {
    /// Every failure.
    pub const ALL: RetryOn =
        RetryOn { failed: true, refused: true, timed_out: true, network: true, statuses: 0 };

    /// Timeouts, broken connections and answers of these statuses.
    pub fn statuses(numbers: &[u16]) -> Self {
        let bits = numbers.iter().filter_map(|&number| Status::of(number)).map(Status::bit);
        let none = RetryOn::default();
        RetryOn { timed_out: true, network: true, statuses: bits.sum(), ..none }
    }

    /// Answers of these statuses alone.
    pub fn answers(numbers: &[u16]) -> Self {
        RetryOn { timed_out: false, network: false, ..Self::statuses(numbers) }
    }

    /// The same, without timeouts.
    pub fn but_timeouts(self) -> Self {
        RetryOn { timed_out: false, ..self }
    }

    /// Reads `retry_on = ["timeout", "network", 429, 503]`, or `"failed"` and `"refused"` for all
    /// answers of their kind.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let mut on = RetryOn::default();
        let items = value.list()?;
        if items.is_empty() {
            value.fault(
                "`retry_on` is empty",
                "no outcome would ever be tried again, whatever `attempts` says",
                "name at least one of \"failed\", \"refused\", \"timeout\", \"network\" or \
                 a status, or remove it",
            );
            return None;
        }
        let mut sound = true;
        for item in &items {
            if item.is_number() {
                match Status::read(item) {
                    Some(status) => on.statuses |= status.bit(),
                    None => sound = false,
                }
                continue;
            }
            match item.word(&[("failed", 0), ("refused", 1), ("timeout", 2), ("network", 3)]) {
                Some(0) => on.failed = true,
                Some(1) => on.refused = true,
                Some(2) => on.timed_out = true,
                Some(_) => on.network = true,
                None => sound = false,
            }
        }
        sound.then_some(on)
    }

    /// Whether an attempt that ended so may be tried again.
    pub fn covers(self, setback: &Setback) -> bool {
        let listed = self.statuses & setback.status.bit() != 0;
        match setback.outcome {
            Outcome::Ok => false,
            Outcome::Failed => self.failed || listed,
            Outcome::Refused(Reason::Down) => self.refused || self.network,
            Outcome::Refused(Reason::Pool) => self.refused,
            Outcome::Refused(_) => self.refused || listed,
            Outcome::TimedOut => self.timed_out,
        }
    }

    /// As the list of assumptions says it.
    pub fn describe(self) -> String {
        if self == RetryOn::ALL {
            return "every failure".into();
        }
        let words = [
            (self.failed, "errors"),
            (self.refused, "refusals"),
            (self.timed_out, "timeouts"),
            (self.network && !self.refused, "broken connections"),
        ];
        let words = words.into_iter().filter(|(there, _)| *there).map(|(_, word)| word.to_owned());
        let statuses = Status::ALL.into_iter().filter(|&number| {
            Status::of(number).is_some_and(|status| self.statuses & status.bit() != 0)
        });
        words.chain(statuses.map(|number| number.to_string())).collect::<Vec<_>>().join(", ")
    }
}

impl Heed {
    /// Reads `"exact"`, `"full_jitter"`, `"ignore"`, `"floor"` (1x to 2x) or `{ floor = 1.5 }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let (name, most) = value.choice(&["exact", "full_jitter", "floor", "ignore"])?;
        Some(match (name, most) {
            ("floor", None) => Heed::Floor(2.0),
            ("floor", Some(most)) => Heed::Floor(most.number_from(1.0, 100.0)?),
            (_, Some(_)) => {
                let what = format!("`{}` takes nothing with it", value.path());
                let cure = format!("write {} = \"{name}\"", value.key());
                value.fault(&what, "only a floor has a width", &cure);
                return None;
            }
            ("exact", None) => Heed::Exact,
            ("full_jitter", None) => Heed::FullJitter,
            _ => Heed::Ignore,
        })
    }

    /// The wait for a Retry-After; `None` when the caller goes by its own back-off.
    #[inline]
    fn wait(self, after: Span, draw: impl Fn() -> f64) -> Option<Span> {
        match self {
            Heed::Ignore => None,
            Heed::Exact => Some(after),
            Heed::FullJitter => Some(after.scaled(draw())),
            Heed::Floor(most) => Some(after.scaled(1.0 + (most - 1.0) * draw())),
        }
    }

    /// As the list of assumptions says it.
    pub fn describe(self) -> String {
        match self {
            Heed::Ignore => "Retry-After ignored".into(),
            Heed::Exact => "Retry-After obeyed exactly".into(),
            Heed::FullJitter => "Retry-After with full jitter".into(),
            Heed::Floor(most) => format!("Retry-After as a floor, 1x to {most}x"),
        }
    }
}

impl Retry {
    /// The wait before the next attempt, or `None` to give up. `key` is that of the call, `caller`
    /// the number of the client or replica that makes it.
    #[inline(always)]
    pub fn next_wait(
        &self,
        state: &mut RetryState,
        made: u32,
        setback: &Setback,
        key: Key,
        caller: u32,
    ) -> Option<Span> {
        if made >= self.attempts || !self.on.covers(setback) {
            return None;
        }
        let draw = || key.child(u64::from(made)).unit(Purpose::Backoff);
        let told = setback.retry_after.and_then(|after| self.retry_after.wait(after, draw));
        let wait = told.unwrap_or_else(|| {
            let wait = self.backoff.wait(made, state.previous, draw);
            state.previous = wait;
            wait
        });
        if self.offset == Span::ZERO {
            return Some(wait);
        }
        Some(wait + device::offset(caller, self.offset))
    }

    /// The longest that the waits of a call can add up to, without what a server asks for.
    pub fn longest_total(&self) -> Span {
        let retries = f64::from(self.attempts - 1);
        self.backoff.longest_total(self.attempts) + self.offset.scaled(retries)
    }

    /// True when two callers that fail together come back together.
    pub fn in_step(&self) -> bool {
        self.backoff.in_step() && self.offset == Span::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(backoff: Backoff, attempts: u32, seed: u64) -> Vec<f64> {
        let retry = Retry { attempts, backoff, ..Retry::default() };
        waits_of(&retry, None, seed)
    }

    fn setback(outcome: Outcome, status: Status, retry_after: Option<Span>) -> Setback {
        Setback { outcome, status, retry_after }
    }

    fn waits_of(retry: &Retry, retry_after: Option<Span>, seed: u64) -> Vec<f64> {
        let refused = Outcome::Refused(Reason::Admission);
        let setback = setback(refused, Status::TOO_MANY, retry_after);
        let mut state = RetryState::default();
        (1..=retry.attempts.min(100))
            .map_while(|made| retry.next_wait(&mut state, made, &setback, Key::root(seed), 3))
            .map(Span::seconds)
            .collect()
    }

    fn exponential(jitter: Jitter) -> Backoff {
        Backoff::Exponential {
            base: Span::from_secs(1),
            factor: 2.0,
            cap: Span::from_secs(5),
            jitter,
        }
    }

    #[test]
    fn exponential_waits_double_up_to_the_cap() {
        assert_eq!(waits(exponential(Jitter::None), 6, 1), [1.0, 2.0, 4.0, 5.0, 5.0]);
    }

    #[test]
    fn linear_waits_grow_by_the_base() {
        let linear =
            Backoff::Linear { base: Span::from_secs(1), cap: Span::MAX, jitter: Jitter::None };
        assert_eq!(waits(linear, 4, 1), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn attempts_count_the_first_try() {
        assert!(waits(Backoff::Immediate, 1, 1).is_empty());
        assert_eq!(waits(Backoff::Immediate, 3, 1), [0.0, 0.0]);
    }

    #[test]
    fn every_jitter_stays_in_its_range_and_has_its_mean() {
        for (jitter, low, high) in [
            (Jitter::Full, 0.0, 1.0),
            (Jitter::Equal, 0.5, 1.0),
            (Jitter::Spread(0.25), 0.75, 1.25),
            (Jitter::Additive(0.2), 1.0, 1.2),
        ] {
            let first: Vec<f64> =
                (0..20_000).map(|seed| waits(exponential(jitter), 2, seed)[0]).collect();
            assert!(first.iter().all(|w| (low..high).contains(w)), "{jitter:?}");
            let mean = first.iter().sum::<f64>() / 20_000.0;
            let error = 4.0 * (high - low) / 12f64.sqrt() / 20_000f64.sqrt();
            assert!((mean - (low + high) / 2.0).abs() < error, "{jitter:?}: {mean}");
        }
    }

    #[test]
    fn decorrelated_waits_lie_between_the_base_and_three_times_the_one_before() {
        let rule = Backoff::Decorrelated { base: Span::from_secs(1), cap: Span::from_secs(60) };
        for seed in 0..500 {
            let mut previous = 1.0f64;
            for wait in waits(rule, 8, seed) {
                assert!(
                    wait >= 1.0 && wait <= (3.0 * previous).min(60.0),
                    "{wait} after {previous}"
                );
                previous = wait;
            }
        }
    }

    #[test]
    fn a_success_and_an_uncovered_failure_end_the_call() {
        let on = RetryOn { failed: false, ..RetryOn::ALL };
        let retry = Retry { attempts: 5, on, ..Retry::default() };
        let next = |outcome| {
            let setback = setback(outcome, Status::INTERNAL, None);
            retry.next_wait(&mut RetryState::default(), 1, &setback, Key::root(1), 0)
        };
        assert_eq!(next(Outcome::Ok), None);
        assert_eq!(next(Outcome::Failed), None);
        assert_eq!(next(Outcome::TimedOut), Some(Span::ZERO));
    }

    #[test]
    fn a_listed_status_is_retried_and_a_400_is_final() {
        let on = RetryOn::statuses(&[429, 503]);
        let covers = |outcome, number| {
            on.covers(&setback(outcome, Status::of(number).expect("a known status"), None))
        };
        assert!(covers(Outcome::Failed, 503) && !covers(Outcome::Failed, 400));
        assert!(covers(Outcome::Refused(Reason::Admission), 429));
        assert!(!covers(Outcome::Refused(Reason::QueueFull), 500));
        assert!(covers(Outcome::Refused(Reason::Down), 400), "no answer has no status");
        assert!(covers(Outcome::TimedOut, 400));
        assert_eq!(on.describe(), "timeouts, broken connections, 429, 503");
    }

    #[test]
    fn a_retry_after_is_obeyed_as_the_rule_says() {
        let after = Span::from_secs(30);
        let first = |retry_after, seed| {
            let backoff = Backoff::Fixed { wait: Span::from_secs(5), jitter: Jitter::None };
            let retry = Retry { attempts: 2, backoff, retry_after, ..Retry::default() };
            waits_of(&retry, Some(after), seed)[0]
        };
        assert_eq!((first(Heed::Ignore, 1), first(Heed::Exact, 1)), (5.0, 30.0));
        for (heed, low, high) in [(Heed::FullJitter, 0.0, 30.0), (Heed::Floor(2.0), 30.0, 60.0)] {
            let waits: Vec<f64> = (0..4_000).map(|seed| first(heed, seed)).collect();
            assert!(waits.iter().all(|wait| (low..high).contains(wait)), "{heed:?}");
            let mean = waits.iter().sum::<f64>() / 4_000.0;
            let error = 4.0 * 30.0 / 12f64.sqrt() / 4_000f64.sqrt();
            assert!((mean - f64::midpoint(low, high)).abs() < error, "{heed:?}: {mean}");
        }
    }

    #[test]
    fn the_offset_of_a_device_comes_on_top_of_every_wait() {
        let retry = Retry { attempts: 4, offset: Span::from_secs(1), ..Retry::default() };
        let own = device::share(&device::install_id(3));
        for wait in waits_of(&retry, None, 1) {
            assert!((wait - own).abs() < 1e-9, "{wait} {own}");
        }
    }

    #[test]
    fn the_longest_total_of_one_two_four_is_seven() {
        assert_eq!(exponential(Jitter::Full).longest_total(4), Span::from_secs(7));
    }
}
