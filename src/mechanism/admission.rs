//! Admission control: how many attempts a second a tier lets in, and the ramp that gives admission
//! back.
//!
//! A token bucket: `rate` tokens a second, at most `burst` of them kept; an attempt takes one or is
//! refused at once. Or fixed windows: so many permits in each, counted anew at its start, which
//! lets in twice as many around a border. A ramp raises the rate by a share of its starting value
//! every so often.

use crate::document::Value;
use crate::kernel::{Span, Time};

/// The rule of a tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admission {
    /// Attempts let in [1/s].
    pub rate: f64,
    /// Most that may come at once.
    pub burst: f64,
    /// The length of fixed windows, with `burst` permits each; `None`: a token bucket.
    pub window: Option<Span>,
}

/// A stepwise raise of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Raise of each step, as a share of the rate at the start of the ramp.
    pub by: f64,
    /// Time between steps.
    pub every: Span,
    /// Rate at which the limit is lifted altogether [1/s].
    pub to: f64,
}

/// The limiter of one tier.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    rule: Admission,
    tokens: f64,
    filled_at: Time,
}

impl Admission {
    /// Reads `admission = "5000/s"`, `{ rate = "5000/s", burst = 100 }` or `{ permits = 12, every =
    /// "100ms" }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        if !value.is_section() {
            return value.rate().map(Self::at);
        }
        let section = value.section()?;
        if let Some(permits) = section.get("permits") {
            let every =
                section.require("every", "add every = \"1s\"").and_then(|v| v.positive_duration());
            let permits = permits.whole(1, 1_000_000_000);
            section.finish();
            return Some(Self::windows(permits? as u32, every?));
        }
        let rate = section.require("rate", "add rate = \"5000/s\"").and_then(|v| v.rate());
        let burst = section.get("burst").map(|v| v.number_above(0.0, 1e9));
        section.finish();
        let admission = Self::at(rate?);
        Some(match burst {
            None => admission,
            Some(burst) => Admission { burst: burst?.max(1.0), ..admission },
        })
    }

    /// At this rate, with a burst of 100 ms of it, and of ten at least: with less, chance alone
    /// makes arrivals bunch and a limit turn away what is well below it.
    pub fn at(rate: f64) -> Self {
        Admission { rate, burst: (rate / 10.0).max(10.0), window: None }
    }

    /// So many in each fixed window of this length, counted from the start of the run.
    pub fn windows(permits: u32, every: Span) -> Self {
        let burst = f64::from(permits);
        Admission { rate: burst / every.seconds(), burst, window: Some(every) }
    }

    /// A limiter that starts full.
    pub fn start(self, now: Time) -> Limiter {
        let tokens = if self.window.is_some() { self.burst } else { self.burst.min(self.rate) };
        Limiter { rule: self, tokens, filled_at: now }
    }
}

impl Ramp {
    /// Reads `{ by = "10%", every = "2m", to = "7000/s" }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let by = section.require("by", "add by = \"10%\"").and_then(|v| {
            let by = v.percentage()?;
            if by <= 0.0 {
                v.fault(
                    "a ramp by 0% never rises",
                    "the limit would stay for ever",
                    "give a share above 0%",
                );
                return None;
            }
            Some(by)
        });
        let every =
            section.require("every", "add every = \"2m\"").and_then(|v| v.positive_duration());
        let to = section
            .require("to", "add to = \"…/s\", the rate at which the limit is lifted")
            .and_then(|v| v.positive_rate());
        section.finish();
        Some(Ramp { by: by?, every: every?, to: to? })
    }

    /// The rate after `steps` steps that began at `from`, or `None` when the limit is lifted.
    pub fn rate(&self, from: f64, steps: u32) -> Option<f64> {
        let rate = from * (1.0 + self.by * f64::from(steps));
        (rate < self.to).then_some(rate)
    }
}

impl Limiter {
    /// Whether an attempt that comes at `now` is let in.
    #[inline]
    pub fn admits(&mut self, now: Time) -> bool {
        if let Some(window) = self.rule.window {
            let number = |time: Time| time.nanos() / window.nanos();
            if number(now) != number(self.filled_at) {
                self.tokens = self.rule.burst;
            }
        } else {
            let earned = now.since(self.filled_at).seconds() * self.rule.rate;
            self.tokens = (self.tokens + earned).min(self.rule.burst);
        }
        self.filled_at = now;
        // Arrivals at the rate itself must find their token, though nanoseconds leave it short by
        // up to 10⁻⁷ (1 ns at 100/s; above that rate the bucket holds more than one).
        if self.tokens < 1.0 - 1e-6 {
            return false;
        }
        self.tokens = (self.tokens - 1.0).max(0.0);
        true
    }

    /// The rate in force [1/s].
    pub fn rate(&self) -> f64 {
        self.rule.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limiter_lets_in_its_rate_and_no_more() {
        let mut limiter = Admission { burst: 1.0, ..Admission::at(50.0) }.start(Time::ZERO);
        let admitted =
            (1..=10_000).filter(|&i| limiter.admits(Time::ZERO + Span::from_millis(i))).count();
        assert!((499..=501).contains(&admitted), "{admitted}");
    }

    #[test]
    fn a_window_has_its_permits_and_the_next_one_its_own() {
        let mut limiter = Admission::windows(12, Span::from_millis(100)).start(Time::ZERO);
        let mut admitted = |millis| {
            let now = Time::ZERO + Span::from_millis(millis);
            (0..20).filter(|_| limiter.admits(now)).count()
        };
        assert_eq!([admitted(99), admitted(100), admitted(199), admitted(250)], [12, 12, 0, 12]);
    }

    #[test]
    fn a_rate_of_zero_lets_nobody_in() {
        let mut limiter = Admission::at(0.0).start(Time::ZERO);
        assert!(!limiter.admits(Time::ZERO + Span::from_secs(1000)));
    }

    #[test]
    fn a_ramp_rises_by_the_share_of_its_start_and_then_lifts() {
        let ramp = Ramp { by: 0.1, every: Span::from_secs(1), to: 6000.0 };
        assert_eq!(ramp.rate(5000.0, 1), Some(5500.0));
        assert_eq!(ramp.rate(5000.0, 2), None);
    }
}
