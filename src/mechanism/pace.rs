//! A caller that paces itself: once it has been throttled it sends no faster than the callee seems
//! to bear, and feels its way up again. This is the client-side rate limiter of the AWS SDKs'
//! adaptive mode.
//!
//! Off until the first answer that throttles (429). Then every attempt, the first of a call too,
//! takes a token, and waits for it where there is none. A throttled answer multiplies the rate by
//! 0.7; every other answer raises it along the curve of CUBIC, w + 0.4·(t − k)³ with k =
//! (0.3·w/0.4)^⅓, t seconds after the last throttling and w the rate at that time, but to no more
//! than twice what was sent of late. That is measured in half seconds, the last of them weighing
//! four fifths. The rate is never below 0.5/s.
//!
//! Limit: a call that is held back past its deadline fails when its turn comes, and not before.
//!
//! Source: botocore 1.44.8, `retries/adaptive.py`, `throttling.py` and `bucket.py`; the curve is
//! that of TCP CUBIC (RFC 9438).

use crate::document::Value;
use crate::kernel::{Span, Time};

/// What a throttling leaves of the rate.
const BETA: f64 = 0.7;
/// How steep the curve is.
const SCALE: f64 = 0.4;
/// Weight of the last half second in what is measured.
const SMOOTH: f64 = 0.8;
/// Length of a bucket of the measurement (s).
const BUCKET: f64 = 0.5;
/// Least rate [1/s], and least that may come at once.
const LEAST_RATE: f64 = 0.5;
const LEAST_CAPACITY: f64 = 1.0;

/// The rule of an edge: it has no numbers that one could choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace;

/// What one caller remembers.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    on: bool,
    /// Rate at the last throttling [1/s].
    highest: f64,
    throttled_at: Time,
    /// Answers a second of late.
    measured: f64,
    /// Start of the present half second (s).
    bucket: f64,
    answers: u32,
    /// Rate in force [1/s], and most tokens.
    rate: f64,
    capacity: f64,
    tokens: f64,
    filled_at: Time,
}

impl Pace {
    /// Reads `pace = "adaptive"`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        value.word(&[("adaptive", Pace)])
    }

    /// Takes a token for an attempt; where there is none, says how long to wait for one, at the
    /// rate in force now, and ask again.
    pub fn acquire(self, pacer: &mut Pacer, now: Time) -> Result<(), Span> {
        if !pacer.on {
            return Ok(());
        }
        pacer.fill(now);
        // A token that is short by what nanoseconds round off is there.
        if pacer.tokens < 1.0 - 1e-6 {
            let wait = Span::from_seconds((1.0 - pacer.tokens) / pacer.rate);
            // Thousands a second earn it in less than the clock can tell; whoever asked again in
            // the same instant would ask for ever.
            return Err(wait.max(Span::from_nanos(1)));
        }
        pacer.tokens = (pacer.tokens - 1.0).max(0.0);
        Ok(())
    }

    /// Notes an answer.
    pub fn answered(self, pacer: &mut Pacer, throttled: bool, now: Time) {
        pacer.measure(now);
        let wanted = if throttled {
            let rate = if pacer.on { pacer.measured.min(pacer.rate) } else { pacer.measured };
            (pacer.highest, pacer.throttled_at) = (rate, now);
            if !pacer.on {
                (pacer.on, pacer.filled_at) = (true, now);
            }
            rate * BETA
        } else {
            let since = now.since(pacer.throttled_at).seconds();
            let k = libm::cbrt(pacer.highest * (1.0 - BETA) / SCALE);
            SCALE * libm::pow(since - k, 3.0) + pacer.highest
        };
        if pacer.on {
            pacer.fill(now);
            let rate = wanted.min(2.0 * pacer.measured);
            pacer.rate = rate.max(LEAST_RATE);
            pacer.capacity = rate.max(LEAST_CAPACITY);
            pacer.tokens = pacer.tokens.min(pacer.capacity);
        }
    }
}

impl Pacer {
    fn fill(&mut self, now: Time) {
        let earned = now.since(self.filled_at).seconds() * self.rate;
        self.tokens = (self.tokens + earned).min(self.capacity);
        self.filled_at = now;
    }

    fn measure(&mut self, now: Time) {
        self.answers += 1;
        let bucket = (now.seconds() / BUCKET).floor() * BUCKET;
        if bucket > self.bucket {
            let rate = f64::from(self.answers) / (bucket - self.bucket);
            self.measured = SMOOTH * rate + (1.0 - SMOOTH) * self.measured;
            (self.answers, self.bucket) = (0, bucket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::ZERO + Span::from_seconds(seconds)
    }

    /// Ten answers a second for so long that ten is what is measured.
    fn warm() -> Pacer {
        let mut pacer = Pacer::default();
        (1..=200).for_each(|i| Pace.answered(&mut pacer, false, at(f64::from(i) / 10.0)));
        assert!((pacer.measured - 10.0).abs() < 1e-6, "{}", pacer.measured);
        pacer
    }

    #[test]
    fn nobody_waits_who_was_never_throttled() {
        let mut pacer = warm();
        assert!((0..1000).all(|_| Pace.acquire(&mut pacer, at(20.0)).is_ok()));
    }

    /// With 10/s measured: 7/s after a throttling, k = (10 x 0.3 / 0.4)^(1/3) = 1.9574 s, and then
    /// 9.6489, 10 and 10.4533/s after 1, 2 and 3 s, up to 20/s.
    #[test]
    fn a_throttled_caller_slows_down_and_feels_its_way_up_again() {
        let mut pacer = warm();
        Pace.answered(&mut pacer, true, at(20.1));
        assert!((pacer.rate - 7.0).abs() < 1e-6, "{}", pacer.rate);
        for (since, rate) in [(1.0, 9.6489), (2.0, 10.0), (3.0, 10.4533), (9.0, 20.0)] {
            // What is measured stays at ten, as if all went on so.
            (pacer.answers, pacer.bucket) = (0, f64::MAX);
            Pace.answered(&mut pacer, false, at(20.1 + since));
            assert!((pacer.rate - rate).abs() < 1e-3, "{since}: {}", pacer.rate);
        }
    }

    #[test]
    fn a_fast_caller_asks_again_a_little_later() {
        let mut pacer = Pacer { on: true, rate: 1e5, capacity: 1e5, ..Pacer::default() };
        pacer.tokens = 1.0 - 2e-6;
        assert_eq!(Pace.acquire(&mut pacer, at(0.0)), Err(Span::from_nanos(1)));
        assert_eq!(Pace.acquire(&mut pacer, at(0.0) + Span::from_nanos(1)), Ok(()));
    }

    #[test]
    fn an_attempt_waits_for_its_token_at_the_rate_in_force() {
        let mut pacer = warm();
        Pace.answered(&mut pacer, true, at(20.1));
        let wait = Pace.acquire(&mut pacer, at(20.1)).unwrap_err();
        assert!((wait.seconds() - 1.0 / 7.0).abs() < 1e-6, "{wait:?}");
        assert!(Pace.acquire(&mut pacer, at(20.1) + wait).is_ok());
        assert!(Pace.acquire(&mut pacer, at(20.1) + wait).is_err());
    }
}
