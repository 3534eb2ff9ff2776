//! A mean and how far it may be off.
//!
//! Values of one run follow each other and are not independent; means of long batches nearly are.
//! The interval is Student's over such batch means.
//!
//! Source: Law, *Simulation Modeling and Analysis*, 5th ed., section 9.5.3 (batch means).

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with its half-width at a stated confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The interval is mean ± this.
    pub half_width: f64,
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
}
