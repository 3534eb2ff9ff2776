//! Estimates, and how far they may be off.
//!
//! A mean has Student's interval. Values of one run follow each other and are not independent;
//! means of long batches nearly are, and replications are wholly. A share has the exact interval of
//! Clopper and Pearson. Why not the shorter one of the normal curve: when all of ten seeds agree it
//! has no width at all, as if ten seeds made certain.
//!
//! Sources: Law, *Simulation Modeling and Analysis*, 5th ed., section 9.5.3 (batch means); Clopper
//! & Pearson, *The use of confidence or fiducial limits*, Biometrika 26 (1934) 404-413.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF, StudentsT};

/// Confidence of every interval that users see.
pub const CONFIDENCE: f64 = 0.95;

/// A mean with its half-width at a stated confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The interval is mean ± this.
    pub half_width: f64,
}

/// A mean over replications and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The mean over those replications that have the figure.
    pub mean: f64,
    /// The 95 % interval is mean ± this (Student); null below two replications.
    pub half_width: Option<f64>,
    /// Replications that have the figure.
    pub seeds: u64,
}

/// How often something came out in independent replications, and what that says of its
/// probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Replications in which it came out.
    pub seeds: u64,
    /// All replications.
    pub of: u64,
    /// The share; null without replications.
    pub share: Option<f64>,
    /// Lower end of the 95 % interval of the probability (Clopper and Pearson).
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of the mean of independent `values` at `confidence` (0.95, 0.999 …); infinite
    /// below two values.
    pub fn of(values: &[f64], confidence: f64) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() < 2 {
            return Interval { mean, half_width: f64::INFINITY };
        }
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let student = StudentsT::new(0.0, 1.0, n - 1.0).expect("at least one degree of freedom");
        let quantile = student.inverse_cdf(f64::midpoint(1.0, confidence));
        Interval { mean, half_width: quantile * (variance / n).sqrt() }
    }

    /// The interval by means of `batches` batches of a series in order of time.
    pub fn of_series(series: &[f64], batches: usize, confidence: f64) -> Self {
        let size = (series.len() / batches).max(1);
        let means: Vec<f64> = series
            .chunks_exact(size)
            .map(|batch| batch.iter().sum::<f64>() / size as f64)
            .collect();
        Self::of(&means, confidence)
    }

    /// Whether a value lies inside.
    pub fn covers(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }
}

impl Estimate {
    /// The estimate from independent values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let Interval { mean, half_width } = Interval::of(values, CONFIDENCE);
        let half_width = Some(half_width).filter(|width| width.is_finite());
        (!values.is_empty()).then_some(Estimate { mean, half_width, seeds: values.len() as u64 })
    }
}

impl Share {
    /// The share of `seeds` in `of` independent replications.
    pub fn of(seeds: u64, of: u64) -> Self {
        let (low, high) = clopper_pearson(seeds, of, CONFIDENCE);
        Share { seeds, of, share: (of > 0).then(|| seeds as f64 / of as f64), low, high }
    }
}

/// The probabilities between which `hits` of `trials` is not too few and not too many: each tail
/// has half of what the confidence leaves.
fn clopper_pearson(hits: u64, trials: u64, confidence: f64) -> (f64, f64) {
    let tail = (1.0 - confidence) / 2.0;
    let (hit, missed) = (hits as f64, (trials - hits) as f64);
    let quantile = |a: f64, b: f64, p: f64| {
        Beta::new(a, b).expect("both counts are at least one").inverse_cdf(p)
    };
    let low = if hits == 0 { 0.0 } else { quantile(hit, missed + 1.0, tail) };
    let high = if hits == trials { 1.0 } else { quantile(hit + 1.0, missed, 1.0 - tail) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// t(0.975, 9) = 2.262157; the standard deviation of 1..10 is 3.027650.
    #[test]
    fn the_half_width_is_students() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let interval = Interval::of(&values, 0.95);
        assert!((interval.half_width - 2.262_157 * 3.027_650 / 10f64.sqrt()).abs() < 1e-4);
        assert!(interval.covers(5.5) && !interval.covers(9.0));
    }

    /// Newcombe, *Two-sided confidence intervals for the single proportion*, Statistics in Medicine
    /// 17 (1998) 857-872, table I, method 5.
    #[test]
    fn the_exact_interval_is_the_published_one() {
        for (hits, trials, low, high) in [
            (81, 263, 0.2527, 0.3676),
            (15, 148, 0.0578, 0.1617),
            (0, 20, 0.0, 0.1684),
            (1, 29, 0.0009, 0.1776),
        ] {
            let share = Share::of(hits, trials);
            assert!((share.low - low).abs() < 5e-5, "{share:?}");
            assert!((share.high - high).abs() < 5e-5, "{share:?}");
            let rest = Share::of(trials - hits, trials);
            assert!((rest.low + share.high - 1.0).abs() < 1e-9, "{share:?} {rest:?}");
        }
    }

    /// Whatever the probability, the binomial outcomes whose interval covers it make up at least
    /// 95 %: summed, not sampled.
    #[test]
    fn the_exact_interval_covers_at_least_as_often_as_it_says() {
        for trials in [1, 2, 7, 20, 64] {
            let shares: Vec<Share> = (0..=trials).map(|hits| Share::of(hits, trials)).collect();
            for p in (1..200).map(|step| f64::from(step) / 200.0) {
                let mut outcome = (1.0 - p).powf(trials as f64);
                let mut covered = 0.0;
                for share in &shares {
                    covered += if (share.low..=share.high).contains(&p) { outcome } else { 0.0 };
                    let (hit, missed) = (share.seeds as f64, (trials - share.seeds) as f64);
                    outcome *= missed / (hit + 1.0) * p / (1.0 - p);
                }
                assert!(covered >= 0.95 - 1e-9, "{trials} trials, p {p}: {covered}");
            }
        }
    }

    #[test]
    fn a_share_of_nothing_says_nothing_and_one_of_very_many_says_all() {
        assert_eq!(Share::of(0, 0), Share { seeds: 0, of: 0, share: None, low: 0.0, high: 1.0 });
        let many = Share::of(300_000, 1_000_000);
        // The normal curve's half-width: 1.959964 x sqrt(0.3 x 0.7 / 10⁶) = 0.000898.
        assert!((many.high - many.low - 2.0 * 0.000_898).abs() < 5e-6, "{many:?}");
    }

    #[test]
    fn one_value_has_a_mean_and_no_width() {
        let one = Estimate { mean: 3.0, half_width: None, seeds: 1 };
        assert_eq!((Estimate::of(&[3.0]), Estimate::of(&[])), (Some(one), None));
    }
}
