//! The clock: integer nanoseconds, so that equal times are equal and sums never drift.
//!
//! A `u64` of nanoseconds lasts 584 years. Why not `f64` seconds: after a day of simulated time its
//! step is 15 ps, but 0.1 + 0.2 is still not 0.3, so two events meant for one instant would leave
//! in an order nobody chose.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

const NANOS_PER_SECOND: f64 = 1e9;

/// 2⁶³: what lies below fits into an `i64`.
const MOST_SIGNED: f64 = 9_223_372_036_854_775_808.0;

/// An instant of simulated time [ns since the start of the run].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of simulated time (ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The start of a run.
    pub const ZERO: Time = Time(0);
    /// Later than every event: "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for people and for Parquet; never for the clock itself.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / NANOS_PER_SECOND
    }

    /// Time from `earlier` to here. Panics in debug builds when `earlier` is later: time never
    /// falls.
    pub fn since(self, earlier: Time) -> Span {
        debug_assert!(self >= earlier, "time fell from {earlier} to {self}");
        Span(self.0 - earlier.0)
    }

    /// Time from here until `later`; zero when `later` has passed.
    pub fn until(self, later: Time) -> Span {
        Span(later.0.saturating_sub(self.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than every run.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Span(nanos)
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis * 1_000_000)
    }

    /// A span of whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Span(seconds * 1_000_000_000)
    }

    /// The nearest span to `seconds`; negative and NaN become zero, too long becomes [`Span::MAX`].
    pub fn from_seconds(seconds: f64) -> Self {
        Self::from_nanos_f64(seconds * NANOS_PER_SECOND)
    }

    /// The nearest span to `nanos`, for sampled values; negative and NaN become zero, too long
    /// becomes [`Span::MAX`].
    #[inline]
    pub fn from_nanos_f64(nanos: f64) -> Self {
        let up = nanos + 0.5;
        if !(0.0..MOST_SIGNED).contains(&up) {
            return Self::saturated(up);
        }
        // SAFETY: it fits. This is one instruction, where `as u64` takes a dozen.
        Span(unsafe { up.to_int_unchecked::<i64>() } as u64)
    }

    #[cold]
    #[inline(never)]
    fn saturated(nanos: f64) -> Self {
        Span(nanos as u64)
    }

    /// Nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds, for people.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / NANOS_PER_SECOND
    }

    /// This span stretched by a factor without unit.
    pub fn scaled(self, factor: f64) -> Span {
        if factor == 1.0 { self } else { Self::from_nanos_f64(self.0 as f64 * factor) }
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// Written as a model file writes it: "250ms", "1.5s", "10m", "18m10s".
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONG: [(&str, u64); 4] = [
            ("d", 86_400_000_000_000),
            ("h", 3_600_000_000_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
        ];
        const SHORT: [(&str, u64); 4] =
            [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
        let mut rest = self.0;
        if rest >= LONG[3].1 && rest.is_multiple_of(LONG[3].1) {
            for (unit, size) in LONG {
                if rest >= size {
                    write!(f, "{}{unit}", rest / size)?;
                    rest %= size;
                }
            }
            return Ok(());
        }
        let (unit, size) = SHORT.iter().find(|(_, size)| rest >= *size).unwrap_or(&SHORT[0]);
        let text = format!("{:.3}", rest as f64 / *size as f64);
        write!(f, "{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_prints_as_a_model_file_writes_it() {
        assert_eq!(Span::from_millis(250).to_string(), "250ms");
        assert_eq!(Span::from_secs(600).to_string(), "10m");
        assert_eq!(Span::from_millis(1500).to_string(), "1.5s");
        assert_eq!(Span::from_secs(1090).to_string(), "18m10s");
        assert_eq!(Span::from_nanos(1_234_567_890).to_string(), "1.235s");
        assert_eq!(Span::ZERO.to_string(), "0s");
    }

    #[test]
    fn seconds_survive_the_way_there_and_back() {
        assert_eq!(Span::from_seconds(0.3).nanos(), 300_000_000);
        assert_eq!(Span::from_seconds(-1.0), Span::ZERO);
        assert_eq!(Span::from_nanos_f64(f64::NAN), Span::ZERO);
        assert_eq!(Span::from_nanos_f64(1e19).nanos(), 10_000_000_000_000_000_000);
        assert_eq!(Span::from_seconds(f64::INFINITY), Span::MAX);
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
    }
}
