//! Whether and when a caller tries again after a failed attempt.
//!
//! Waits grow with n, the number of attempts made so far (1 after the first failure):
//! fixed d; linear d·n; exponential d·fⁿ⁻¹; each at most `cap`. Jitter then spreads the wait w:
//! full U[0, w); equal w/2 + U[0, w/2); spread w·(1 ± x); additive w·(1 + U[0, x)).
//! Decorrelated: min(cap, U[base, 3·previous)), previous starting at `base`.
//! A wait that would reach past the caller's deadline is not begun: the call fails at the decision.
//!
//! Source: M. Brooker, *Exponential Backoff and Jitter*, AWS Architecture Blog (2015), for full,
//! equal, decorrelated.

use crate::document::Value;
use crate::kernel::{Key, Purpose, Span};
use crate::mechanism::outcome::Outcome;

/// The rule of an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Total tries, the first included.
    pub attempts: u32,
    /// How long to wait before the next.
    pub backoff: Backoff,
    /// What is worth another try.
    pub on: RetryOn,
}

/// The growth of waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Backoff {
    /// No wait.
    Immediate,
    /// Always the same.
    Fixed {
        /// The wait.
        wait: Span,
        /// Its spread.
        jitter: Jitter,
    },
    /// The same more each time.
    Linear {
        /// First wait, and growth.
        base: Span,
        /// Longest wait.
        cap: Span,
        /// Its spread.
        jitter: Jitter,
    },
    /// A multiple each time.
    Exponential {
        /// First wait.
        base: Span,
        /// Growth, at least 1.
        factor: f64,
        /// Longest wait, before jitter.
        cap: Span,
        /// Its spread.
        jitter: Jitter,
    },
    /// Uniform between the base and three times the wait before.
    Decorrelated {
        /// Shortest wait.
        base: Span,
        /// Longest wait.
        cap: Span,
    },
}

/// How a wait w is spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// Not at all.
    None,
    /// U[0, w).
    Full,
    /// w/2 + U[0, w/2).
    Equal,
    /// w · (1 + x·U[−1, 1)).
    Spread(f64),
    /// w · (1 + x·U[0, 1)).
    Additive(f64),
}

/// Which outcomes are retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    failed: bool,
    refused: bool,
    timed_out: bool,
}

/// What one call remembers between its attempts.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryState {
    previous: Span,
}

impl Default for Retry {
    fn default() -> Self {
        Retry { attempts: 1, backoff: Backoff::Immediate, on: RetryOn::ALL }
    }
}

impl RetryOn {
    /// Every failure.
    pub const ALL: RetryOn = RetryOn { failed: true, refused: true, timed_out: true };

    /// Reads `retry_on = ["failed", "refused", "timeout"]`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let mut on = RetryOn { failed: false, refused: false, timed_out: false };
        let items = value.list()?;
        if items.is_empty() {
            value.fault(
                "`retry_on` is empty",
                "no outcome would ever be tried again, whatever `attempts` says",
                "name at least one of \"failed\", \"refused\" and \"timeout\", or remove it",
            );
            return None;
        }
        let mut sound = true;
        for item in &items {
            match item.word(&[("failed", 0), ("refused", 1), ("timeout", 2)]) {
                Some(0) => on.failed = true,
                Some(1) => on.refused = true,
                Some(_) => on.timed_out = true,
                None => sound = false,
            }
        }
        sound.then_some(on)
    }

    /// Whether an attempt that ended so may be tried again.
    pub fn covers(self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Ok => false,
            Outcome::Failed => self.failed,
            Outcome::Refused(_) => self.refused,
            Outcome::TimedOut => self.timed_out,
        }
    }
}

impl Retry {
    /// The wait before the next attempt, or `None` to give up. `key` is that of the call.
    #[inline]
    pub fn next_wait(
        &self,
        state: &mut RetryState,
        made: u32,
        outcome: Outcome,
        key: Key,
    ) -> Option<Span> {
        if made >= self.attempts || !self.on.covers(outcome) {
            return None;
        }
        let draw = || key.child(u64::from(made)).unit(Purpose::Backoff);
        let wait = match self.backoff {
            Backoff::Immediate => Span::ZERO,
            Backoff::Fixed { wait, jitter } => jitter.spread(wait, draw),
            Backoff::Linear { base, cap, jitter } => {
                jitter.spread(base.scaled(f64::from(made)).min(cap), draw)
            }
            Backoff::Exponential { base, factor, cap, jitter } => {
                let growth = libm::pow(factor, f64::from(made - 1));
                jitter.spread(base.scaled(growth).min(cap), draw)
            }
            Backoff::Decorrelated { base, cap } => {
                let previous = state.previous.max(base);
                let range = previous.scaled(3.0) - base;
                (base + range.scaled(draw())).min(cap)
            }
        };
        state.previous = wait;
        Some(wait)
    }
}

impl Backoff {
    /// Reads `backoff.…`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let names = ["fixed", "immediate", "linear", "exponential", "decorrelated"];
        let (name, contents) = value.choice(&names)?;
        let Some(contents) = contents else {
            if name == "immediate" {
                return Some(Backoff::Immediate);
            }
            value.fault(
                &format!("`{}` = \"{name}\" lacks its waits", value.path()),
                "the rule needs at least a first wait",
                &format!(
                    "write backoff.{name} = {{ base = \"100ms\", cap = \"2s\", jitter = \"full\" \
                    }}"
                ),
            );
            return None;
        };
        if name == "fixed" && (contents.is_text() || contents.is_number()) {
            return Some(Backoff::Fixed {
                wait: contents.positive_duration()?,
                jitter: Jitter::None,
            });
        }
        Self::read_table(name, &contents)
    }

    fn read_table(name: &str, contents: &Value<'_>) -> Option<Self> {
        let section = contents.section()?;
        let first = if name == "fixed" { "wait" } else { "base" };
        if name == "immediate" {
            section.finish();
            return Some(Backoff::Immediate);
        }
        let base = section
            .require(first, &format!("add {first} = \"100ms\""))
            .and_then(|v| v.positive_duration());
        let cap = match section.get("cap") {
            _ if name == "fixed" => Some(Span::MAX),
            Some(value) => {
                value.positive_duration().map(|cap| (cap, value)).and_then(|(cap, value)| {
                    let sound = base.is_none_or(|base| cap >= base);
                    if !sound {
                        let what = format!("`{}` = \"{cap}\" lies below the base", value.path());
                        value.fault(
                            &what,
                            "every wait would be the cap, the first included",
                            "raise the cap or lower the base",
                        );
                    }
                    sound.then_some(cap)
                })
            }
            None => Some(Span::MAX),
        };
        let factor = match section.get("factor") {
            Some(value) if name == "exponential" => factor(&value),
            Some(value) => {
                value.key_fault(
                    "only exponential back-off has a `factor`",
                    "the others grow by their own rule",
                    "remove it",
                );
                None
            }
            None => Some(2.0),
        };
        let jitter = match section.get("jitter") {
            Some(value) if name == "decorrelated" => {
                value.key_fault(
                    "decorrelated back-off takes no `jitter`",
                    "it is random by itself",
                    "remove it",
                );
                None
            }
            Some(value) => Jitter::read(&value),
            None => Some(Jitter::None),
        };
        section.finish();
        let (base, cap, factor, jitter) = (base?, cap?, factor?, jitter?);
        Some(match name {
            "fixed" => Backoff::Fixed { wait: base, jitter },
            "linear" => Backoff::Linear { base, cap, jitter },
            "exponential" => Backoff::Exponential { base, factor, cap, jitter },
            _ => Backoff::Decorrelated { base, cap },
        })
    }

    /// True when two callers that fail together come back together.
    pub fn in_step(&self) -> bool {
        match self {
            Backoff::Immediate => true,
            Backoff::Fixed { jitter, .. }
            | Backoff::Linear { jitter, .. }
            | Backoff::Exponential { jitter, .. } => *jitter == Jitter::None,
            Backoff::Decorrelated { .. } => false,
        }
    }

    /// The longest that waits before `attempts` tries can add up to.
    pub fn longest_total(&self, attempts: u32) -> Span {
        (1..attempts.min(1_000)).fold(Span::ZERO, |total, made| {
            total
                + match *self {
                    Backoff::Immediate => Span::ZERO,
                    Backoff::Fixed { wait, jitter } => wait.scaled(jitter.most()),
                    Backoff::Linear { base, cap, jitter } => {
                        base.scaled(f64::from(made)).min(cap).scaled(jitter.most())
                    }
                    Backoff::Exponential { base, factor, cap, jitter } => base
                        .scaled(libm::pow(factor, f64::from(made - 1)))
                        .min(cap)
                        .scaled(jitter.most()),
                    Backoff::Decorrelated { base, cap } => {
                        base.scaled(libm::pow(3.0, f64::from(made))).min(cap)
                    }
                }
        })
    }
}

fn factor(value: &Value<'_>) -> Option<f64> {
    let factor = value.number_from(0.0, 1e6)?;
    if factor < 1.0 {
        let what = format!("`{}` = {factor} is below 1", value.path());
        value.fault(
            &what,
            "waits would shrink with each failure and the storm grow",
            "choose at least 1, usually 2",
        );
        return None;
    }
    Some(factor)
}

impl Jitter {
    /// Reads `"none"`, `"full"`, `"equal"`, `{ spread = "10%" }` or `{ additive = "20%" }`.
    fn read(value: &Value<'_>) -> Option<Self> {
        let (name, contents) = value.choice(&["none", "full", "equal", "spread", "additive"])?;
        match (name, contents) {
            ("none", _) => Some(Jitter::None),
            ("full", _) => Some(Jitter::Full),
            ("equal", _) => Some(Jitter::Equal),
            ("spread", Some(share)) => share.share().map(Jitter::Spread),
            ("additive", Some(share)) => share.percentage().map(Jitter::Additive),
            _ => {
                value.fault(
                    &format!("`{}` = \"{name}\" lacks its width", value.path()),
                    "the spread is a share of the wait",
                    &format!("write jitter.{name} = \"10%\""),
                );
                None
            }
        }
    }

    fn spread(self, wait: Span, draw: impl Fn() -> f64) -> Span {
        match self {
            Jitter::None => wait,
            Jitter::Full => wait.scaled(draw()),
            Jitter::Equal => wait.scaled(f64::midpoint(1.0, draw())),
            Jitter::Spread(x) => wait.scaled(1.0 + x * (2.0 * draw() - 1.0)),
            Jitter::Additive(x) => wait.scaled(1.0 + x * draw()),
        }
    }

    fn most(self) -> f64 {
        match self {
            Jitter::None | Jitter::Full | Jitter::Equal => 1.0,
            Jitter::Spread(x) | Jitter::Additive(x) => 1.0 + x,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(backoff: Backoff, attempts: u32, seed: u64) -> Vec<f64> {
        let retry = Retry { attempts, backoff, on: RetryOn::ALL };
        let mut state = RetryState::default();
        (1..=attempts)
            .map_while(|made| retry.next_wait(&mut state, made, Outcome::Failed, Key::root(seed)))
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
        let on = RetryOn { failed: false, refused: true, timed_out: true };
        let retry = Retry { attempts: 5, backoff: Backoff::Immediate, on };
        let next = |outcome| retry.next_wait(&mut RetryState::default(), 1, outcome, Key::root(1));
        assert_eq!(next(Outcome::Ok), None);
        assert_eq!(next(Outcome::Failed), None);
        assert_eq!(next(Outcome::TimedOut), Some(Span::ZERO));
    }

    #[test]
    fn the_longest_total_of_one_two_four_is_seven() {
        assert_eq!(exponential(Jitter::Full).longest_total(4), Span::from_secs(7));
    }
}
