//! How long a tier works on an attempt, and whether the work ends in an error.
//!
//! The length is drawn by the attempt's own key, so it is the same whenever it is drawn. What
//! differs is which slow-down applies: that at the start of service, or that at the moment of
//! enqueueing ([`Drawn`]).

use crate::document::Value;
use crate::kernel::{Distribution, Key, Purpose, Span};

/// When the length of service is fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drawn {
    /// At the start of service.
    #[default]
    AtStart,
    /// When the attempt joins the queue: a slow-down that has gone by the time service starts still
    /// counts.
    AtEnqueue,
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Its length when nothing slows it down.
    pub law: Distribution,
}

impl Drawn {
    /// Reads `drawn = "…"`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        value.word(&[("start", Drawn::AtStart), ("enqueue", Drawn::AtEnqueue)])
    }
}

impl Work {
    /// Reads `work.LAW = …`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        value.distribution().map(|law| Work { law })
    }

    /// The length of step `step` of the attempt with `key`, when everything takes `slow` times as
    /// long.
    #[inline(always)]
    pub fn draw(&self, key: Key, step: u16, slow: f64, purpose: Purpose) -> Span {
        if let Distribution::Constant(span) = self.law {
            return span.scaled(slow);
        }
        let key = if step == 0 { key } else { key.child(u64::from(step)) };
        self.law.sample(&mut key.stream(purpose)).scaled(slow)
    }
}

/// Share of attempts that end in an error: the tier's own and a trigger's, independently.
pub fn failing_share(own: f64, added: f64) -> f64 {
    own + added - own * added
}

/// True when the attempt with `key` ends in an error.
#[inline]
pub fn fails(key: Key, share: f64) -> bool {
    key.chance(Purpose::Failure, share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_belongs_to_the_attempt_and_scales_with_the_slow_down() {
        let work = Work { law: Distribution::Exponential { mean: Span::from_millis(10) } };
        let key = Key::root(1).child(4);
        let calm = work.draw(key, 0, 1.0, Purpose::Work);
        assert_eq!(calm, work.draw(key, 0, 1.0, Purpose::Work));
        let slow = work.draw(key, 0, 4.0, Purpose::Work).seconds();
        assert!((slow - 4.0 * calm.seconds()).abs() < 1e-8);
        assert_ne!(calm, work.draw(key, 1, 1.0, Purpose::Work));
    }

    #[test]
    fn own_and_added_failures_are_independent() {
        let fails = (0..100_000)
            .filter(|&i| fails(Key::root(9).child(i), failing_share(0.5, 0.2)))
            .count() as f64;
        assert!((fails / 1e5 - 0.6).abs() < 0.007, "{fails}");
    }
}
