//! Axes: where ticks stand, what is written at them, and where a value lies between the ends.
//!
//! Own ticks, since those of plotters know neither thousands separators nor minutes. A logarithmic
//! axis over values that include zero has a short straight stretch below its lowest decade, so that
//! an empty queue is seen as empty.

use std::ops::Range;

/// Straight part of a logarithmic axis that reaches down to zero, as a share of the axis.
const ZERO_SHARE: f64 = 0.06;

/// More decades than this squeeze what matters; lesser values go into the straight part.
const MOST_DECADES: i32 = 5;

/// A mark on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// Where.
    pub value: f64,
    /// False for a grid line without a number.
    pub labelled: bool,
}

/// A vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// From zero to `top`.
    Linear {
        /// Upper end.
        top: f64,
        /// Distance of ticks.
        step: f64,
    },
    /// Logarithmic between `low` and `high`.
    Log {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// Whether the axis goes on below `low`, straight down to zero.
        zero: bool,
    },
}

impl Scale {
    /// A straight axis from zero that holds `most` with a little room above it.
    pub fn linear(most: f64) -> Self {
        let most = if most > 0.0 { most * 1.04 } else { 1.0 };
        let step = nice_step(most / 6.0);
        Scale::Linear { top: (most / step).ceil() * step, step }
    }

    /// A logarithmic axis that holds all values; what is less than `floor`, or too many decades
    /// down, is near zero.
    pub fn log(values: impl Iterator<Item = f64> + Clone, floor: f64) -> Self {
        let most = values.clone().fold(0.0, f64::max);
        if most <= 0.0 {
            return Scale::linear(0.0);
        }
        let least = values.clone().filter(|&value| value > 0.0).fold(most, f64::min).max(floor);
        let high = nice_step(most);
        let low = power(decade(least).max(decade(high) - MOST_DECADES));
        let low = if low < high { low } else { high / 10.0 };
        Scale::Log { low, high, zero: values.clone().any(|value| value < low) }
    }

    /// A logarithmic axis without zero that ends a little beyond the least and the greatest value,
    /// by these factors.
    pub fn snug(values: impl Iterator<Item = f64> + Clone, below: f64, above: f64) -> Self {
        let values = values.filter(|&value| value > 0.0);
        let most = values.clone().fold(0.0, f64::max);
        if most <= 0.0 {
            return Scale::Log { low: 1.0, high: 10.0, zero: false };
        }
        let least = values.fold(most, f64::min);
        Scale::Log { low: least / below, high: most * above, zero: false }
    }

    /// Upper end.
    pub fn top(&self) -> f64 {
        match *self {
            Scale::Linear { top, .. } => top,
            Scale::Log { high, .. } => high,
        }
    }

    /// Where a value lies: 0 at the lower end, 1 at the upper.
    pub fn share(&self, value: f64) -> f64 {
        match *self {
            Scale::Linear { top, .. } => value / top,
            Scale::Log { low, zero: true, .. } if value < low => value / low * ZERO_SHARE,
            Scale::Log { low, high, zero } => {
                let foot = if zero { ZERO_SHARE } else { 0.0 };
                foot + (1.0 - foot) * libm::log10(value / low) / libm::log10(high / low)
            }
        }
    }

    /// All marks, from the lower end up.
    pub fn ticks(&self) -> Vec<Tick> {
        match *self {
            Scale::Linear { top, step } => {
                let count = (top / step).round() as u32;
                (0..=count).map(|n| Tick { value: f64::from(n) * step, labelled: true }).collect()
            }
            Scale::Log { low, high, zero } => {
                let first = decade(low);
                let narrow = high < 99.999 * low;
                let mut ticks = Vec::new();
                if zero {
                    ticks.push(Tick { value: 0.0, labelled: true });
                }
                for exponent in first..=decade(high) {
                    for digit in [1.0, 2.0, 5.0] {
                        let labelled = digit == 1.0 || narrow;
                        ticks.push(Tick { value: digit * power(exponent), labelled });
                    }
                }
                let held = low * 0.999_999..=high * 1.000_001;
                ticks.retain(|tick| tick.value == 0.0 || held.contains(&tick.value));
                ticks
            }
        }
    }

    /// Decimals that tell neighbouring ticks apart.
    pub fn decimals(&self) -> usize {
        match *self {
            Scale::Linear { step, .. } => decimals(step),
            Scale::Log { .. } => 0,
        }
    }
}

/// The horizontal axis: simulated time in the unit that suits its length.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// Ends of the axis (s).
    pub range: Range<f64>,
    /// Name of the unit.
    pub unit: &'static str,
    unit_s: f64,
    step_s: f64,
}

/// Distances of ticks that people read with ease (s).
const CLOCK_STEPS_S: [f64; 17] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    10_800.0, 21_600.0, 43_200.0,
];

/// More ticks than this crowd the axis.
const MOST_CLOCK_TICKS: f64 = 12.0;

impl Clock {
    /// An axis of time from one instant to another (s).
    pub fn new(range: Range<f64>) -> Self {
        let length = range.end - range.start;
        let least = length / MOST_CLOCK_TICKS;
        let step_s = match CLOCK_STEPS_S.iter().find(|&&step| step >= least) {
            Some(&step) if length >= MOST_CLOCK_TICKS => step,
            Some(_) => nice_step(least),
            None => nice_step(least / 86_400.0) * 86_400.0,
        };
        let (unit, unit_s) = match range.end {
            end if end <= 300.0 => ("s", 1.0),
            end if end <= 18_000.0 => ("min", 60.0),
            _ => ("h", 3600.0),
        };
        Clock { range, unit, unit_s, step_s }
    }

    /// An axis that counts in seconds up to an hour.
    pub fn seconds(range: Range<f64>) -> Self {
        let clock = Clock::new(range);
        if clock.range.end > 3600.0 { clock } else { Clock { unit: "s", unit_s: 1.0, ..clock } }
    }

    /// Where an instant lies: 0 at the left end, 1 at the right.
    pub fn share(&self, at_s: f64) -> f64 {
        (at_s - self.range.start) / (self.range.end - self.range.start)
    }

    /// Instants of the marks (s) and what is written there.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let places = decimals(self.step_s / self.unit_s).min(3);
        let first = (self.range.start / self.step_s).ceil() as u64;
        let last = (self.range.end / self.step_s * 1.000_001).floor() as u64;
        (first..=last)
            .map(|n| n as f64 * self.step_s)
            .map(|at| (at, number(at / self.unit_s, places)))
            .collect()
    }
}

/// A number with so many decimals and a separator between thousands.
pub fn number(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let whole = plain.find('.').unwrap_or(plain.len());
    let mut text = String::with_capacity(plain.len() + plain.len() / 3);
    for (index, digit) in plain.char_indices() {
        if index > 0 && index < whole && (whole - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count at a tick, with as many decimals as it needs.
pub fn count_text(value: f64, places: usize) -> String {
    let needed = if value > 0.0 && value < 1.0 { decimals(value) } else { 0 };
    number(value, places.max(needed))
}

/// A length of time at a tick, in the unit that suits it.
pub fn duration_text(seconds: f64) -> String {
    let (factor, unit) = match seconds {
        s if s <= 0.0 => return "0 s".to_owned(),
        s if s >= 0.999 => (1.0, "s"),
        s if s >= 0.999e-3 => (1e3, "ms"),
        s if s >= 0.999e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    let value = seconds * factor;
    let places = if (value - value.round()).abs() < 1e-6 { 0 } else { decimals(value).max(1) };
    format!("{} {unit}", number(value, places))
}

/// The least of 1, 2, 5, 10, 20, … and their tenths that is at least `least`.
fn nice_step(least: f64) -> f64 {
    let unit = power(decade(least));
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * unit >= least * 0.999_999);
    digit.unwrap_or(10.0) * unit
}

/// Exponent of the power of ten at or below a value; a hair above it counts as reached.
fn decade(value: f64) -> i32 {
    (libm::log10(value) + 1e-9).floor() as i32
}

fn power(exponent: i32) -> f64 {
    libm::exp10(f64::from(exponent))
}

fn decimals(step: f64) -> usize {
    let exact = |places: &usize| {
        let scaled = step * power(*places as i32);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0) && scaled >= 0.5
    };
    (0..9).find(exact).unwrap_or(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(range: Range<f64>) -> (Vec<String>, &'static str) {
        let clock = Clock::new(range);
        (clock.ticks().into_iter().map(|(_, label)| label).collect(), clock.unit)
    }

    #[test]
    fn thousands_are_separated_and_decimals_are_not() {
        let text = |value, places| number(value, places);
        assert_eq!(text(0.0, 0), "0");
        assert_eq!(text(999.0, 0), "999");
        assert_eq!(text(1_000.0, 0), "1,000");
        assert_eq!(text(1_234_567.0, 2), "1,234,567.00");
    }

    #[test]
    fn counts_below_one_keep_the_decimals_they_need() {
        assert_eq!(count_text(0.01, 0), "0.01");
        assert_eq!(count_text(0.0, 0), "0");
        assert_eq!(count_text(2_000.0, 0), "2,000");
    }

    #[test]
    fn durations_are_written_in_the_unit_that_suits_them() {
        let texts = [0.0, 2e-9, 5e-6, 1e-3, 0.02, 1.0, 1_000.0].map(duration_text);
        assert_eq!(texts, ["0 s", "2 ns", "5 µs", "1 ms", "20 ms", "1 s", "1,000 s"]);
    }

    #[test]
    fn time_is_written_in_seconds_minutes_or_hours_as_the_run_is_long() {
        let (short, seconds) = labels(0.0..60.0);
        assert_eq!((short.len(), &short[1][..], seconds), (13, "5", "s"));
        let (middle, minutes) = labels(0.0..3600.0);
        assert_eq!((middle.len(), &middle[12][..], minutes), (13, "60", "min"));
        let (long, hours) = labels(0.0..86_400.0);
        assert_eq!((long.len(), &long[12][..], hours), (13, "24", "h"));
    }

    #[test]
    fn a_time_axis_after_a_warm_up_begins_at_its_first_round_instant() {
        assert_eq!(labels(90.0..300.0).0[0], "90");
        assert_eq!(labels(61.0..300.0).0[0], "90");
    }

    #[test]
    fn a_straight_axis_ends_at_a_tick_above_all_values() {
        let scale = Scale::linear(1_800.0);
        let last = scale.ticks().pop().map(|tick| tick.value);
        assert_eq!((scale.top(), last), (2_000.0, Some(2_000.0)));
        assert_eq!(scale.share(1_000.0), 0.5);
    }

    #[test]
    fn zero_has_a_place_on_a_logarithmic_axis() {
        let values = [0.0, 1.0, 900.0];
        let scale = Scale::log(values.into_iter(), 0.0);
        assert_eq!(scale, Scale::Log { low: 1.0, high: 1_000.0, zero: true });
        let shares = values.map(|value| scale.share(value));
        assert!(shares[0] == 0.0 && (shares[1] - ZERO_SHARE).abs() < 1e-12 && shares[2] < 1.0);
    }
}
