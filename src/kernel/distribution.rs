//! Distributions of lengths of time: service, think time, network delay.
//!
//! Parameters are held in nanoseconds and shapes; a model file gives them by mean or by
//! percentiles. Sampling goes through `rand_distr`, whose ziggurat tables and `libm` give the same
//! bits on every platform; the few closed forms here use `libm` for the same reason.
//! Only the fits through percentiles of a normal or gamma law go through `statrs` and the system's
//! functions: there the last bit of a parameter may differ between platforms.

use rand::Rng;
use rand_distr::{Distribution as _, Exp1, Gamma, StandardNormal};

use super::time::Span;

/// The law of a random length of time.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant(Span),
    /// Uniform in [from, to).
    Uniform {
        /// Shortest.
        from: Span,
        /// Longest.
        to: Span,
    },
    /// Memoryless.
    Exponential {
        /// Mean.
        mean: Span,
    },
    /// |mean + sd·Z|: normal, folded at zero.
    Normal {
        /// Mean before folding (ns).
        mean: f64,
        /// Standard deviation before folding (ns).
        sd: f64,
    },
    /// exp(mu + sigma·Z), in nanoseconds.
    Lognormal {
        /// Mean of the logarithm of nanoseconds.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Gamma; Erlang where `shape` is whole.
    Gamma {
        /// Shape k, without unit.
        shape: f64,
        /// Scale θ (ns); the mean is kθ.
        scale: f64,
    },
    /// scale · (−ln U)^(1/shape).
    Weibull {
        /// Shape k, without unit; below 1 the tail is heavier than exponential.
        shape: f64,
        /// Scale (ns).
        scale: f64,
    },
    /// scale · U^(−1/shape): no value below the scale, a power-law tail above it.
    Pareto {
        /// Tail exponent α; the mean is finite above 1, the variance above 2.
        shape: f64,
        /// Smallest value (ns).
        scale: f64,
    },
    /// One of several laws, chosen by its share; a hyperexponential is a mixture of exponentials.
    Mixture(Vec<Branch>),
    /// Between given percentiles, straight lines.
    Empirical(Vec<Percentile>),
}

/// One law of a mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Probability of this branch or one before it: the last is 1.
    pub up_to: f64,
    /// Its law.
    pub law: Distribution,
}

/// A point of an empirical distribution function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// Probability in [0, 1].
    pub share: f64,
    /// The value that this share does not pass (ns).
    pub value: f64,
}

impl Distribution {
    /// A lognormal with quantiles `low` at probability `p` and `high` at `q`.
    pub fn lognormal_through(low: Percentile, high: Percentile) -> Self {
        let (z_low, z_high) = (normal_quantile(low.share), normal_quantile(high.share));
        let sigma = libm::log(high.value / low.value) / (z_high - z_low);
        Distribution::Lognormal { mu: libm::log(low.value) - sigma * z_low, sigma }
    }

    /// A lognormal by mean (ns) and coefficient of variation.
    pub fn lognormal_with(mean: f64, cv: f64) -> Self {
        let variance = libm::log1p(cv * cv);
        Distribution::Lognormal { mu: libm::log(mean) - variance / 2.0, sigma: variance.sqrt() }
    }

    /// A Weibull through two quantiles.
    pub fn weibull_through(low: Percentile, high: Percentile) -> Self {
        let hazard = |p: f64| -libm::log1p(-p);
        let shape =
            libm::log(hazard(high.share) / hazard(low.share)) / libm::log(high.value / low.value);
        Distribution::Weibull {
            shape,
            scale: low.value / libm::pow(hazard(low.share), 1.0 / shape),
        }
    }

    /// A Weibull by mean (ns) and shape.
    pub fn weibull_with(mean: f64, shape: f64) -> Self {
        Distribution::Weibull { shape, scale: mean / libm::tgamma(1.0 + 1.0 / shape) }
    }

    /// A Pareto through two quantiles.
    pub fn pareto_through(low: Percentile, high: Percentile) -> Self {
        let shape =
            libm::log((1.0 - low.share) / (1.0 - high.share)) / libm::log(high.value / low.value);
        Distribution::Pareto { shape, scale: low.value * libm::pow(1.0 - low.share, 1.0 / shape) }
    }

    /// A gamma through two quantiles. The ratio of quantiles falls as the shape grows, so bisection
    /// finds it.
    pub fn gamma_through(low: Percentile, high: Percentile) -> Self {
        use statrs::distribution::{ContinuousCDF, Gamma as Reference};
        let quantile =
            |shape: f64, p: f64| Reference::new(shape, 1.0).expect("positive shape").inverse_cdf(p);
        let wanted = high.value / low.value;
        let (mut small, mut large) = (0.05f64, 1000.0f64);
        for _ in 0..80 {
            let middle = (small * large).sqrt();
            let ratio = quantile(middle, high.share) / quantile(middle, low.share);
            if ratio > wanted { small = middle } else { large = middle }
        }
        let shape = (small * large).sqrt();
        Distribution::Gamma { shape, scale: low.value / quantile(shape, low.share) }
    }

    /// Two exponentials with balanced means, by mean (ns) and coefficient of variation above 1.
    ///
    /// Source: Whitt, *Approximating a point process by a renewal process*, Operations Research 30
    /// (1982).
    pub fn hyperexponential(mean: f64, cv: f64) -> Self {
        let c2 = cv * cv;
        let p = f64::midpoint(1.0, ((c2 - 1.0) / (c2 + 1.0)).sqrt());
        let part = |share: f64| Distribution::Exponential {
            mean: Span::from_nanos_f64(mean / (2.0 * share)),
        };
        Distribution::Mixture(vec![
            Branch { up_to: p, law: part(p) },
            Branch { up_to: 1.0, law: part(1.0 - p) },
        ])
    }

    /// One draw.
    #[inline(always)]
    pub fn sample<R: Rng>(&self, rng: &mut R) -> Span {
        match self {
            Distribution::Constant(span) => *span,
            // The most frequent law, without a call.
            Distribution::Exponential { mean } => Span::from_nanos_f64(exponential(*mean, rng)),
            _ => Span::from_nanos_f64(self.sample_nanos(rng)),
        }
    }

    #[inline(never)]
    fn sample_nanos<R: Rng>(&self, rng: &mut R) -> f64 {
        match self {
            Distribution::Constant(span) => span.nanos() as f64,
            Distribution::Uniform { from, to } => {
                from.nanos() as f64 + unit(rng) * (to.nanos() - from.nanos()) as f64
            }
            Distribution::Exponential { mean } => exponential(*mean, rng),
            Distribution::Normal { mean, sd } => {
                let z: f64 = StandardNormal.sample(rng);
                (mean + sd * z).abs()
            }
            Distribution::Lognormal { mu, sigma } => {
                let z: f64 = StandardNormal.sample(rng);
                libm::exp(mu + sigma * z)
            }
            Distribution::Gamma { shape, scale } => {
                Gamma::new(*shape, *scale).expect("checked when the model was read").sample(rng)
            }
            Distribution::Weibull { shape, scale } => {
                let draw: f64 = Exp1.sample(rng);
                scale * libm::pow(draw, 1.0 / shape)
            }
            Distribution::Pareto { shape, scale } => {
                scale * libm::pow(1.0 - unit(rng), -1.0 / shape)
            }
            Distribution::Mixture(branches) => {
                let u = unit(rng);
                let chosen = branches.iter().find(|b| u < b.up_to).or(branches.last());
                chosen.map_or(0.0, |branch| branch.law.sample_nanos(rng))
            }
            Distribution::Empirical(points) => quantile_between(points, unit(rng)),
        }
    }

    /// Mean, infinite where the law has none (Pareto with a shape of 1 or less) (s).
    pub fn mean_seconds(&self) -> f64 {
        self.mean_nanos() / 1e9
    }

    fn mean_nanos(&self) -> f64 {
        match self {
            Distribution::Constant(span) => span.nanos() as f64,
            Distribution::Uniform { from, to } => {
                f64::midpoint(from.nanos() as f64, to.nanos() as f64)
            }
            Distribution::Exponential { mean } => mean.nanos() as f64,
            Distribution::Normal { mean, sd } if *sd == 0.0 => *mean,
            // Leone, Nelson & Nottingham, *The folded normal distribution*, Technometrics 3 (1961).
            Distribution::Normal { mean, sd } => {
                let z = mean / sd;
                let tail = sd * (2.0 / std::f64::consts::PI).sqrt() * libm::exp(-z * z / 2.0);
                tail + mean * libm::erf(z / std::f64::consts::SQRT_2)
            }
            Distribution::Lognormal { mu, sigma } => libm::exp(mu + sigma * sigma / 2.0),
            Distribution::Gamma { shape, scale } => shape * scale,
            Distribution::Weibull { shape, scale } => scale * libm::tgamma(1.0 + 1.0 / shape),
            Distribution::Pareto { shape, scale } if *shape > 1.0 => scale * shape / (shape - 1.0),
            Distribution::Pareto { .. } => f64::INFINITY,
            Distribution::Mixture(branches) => {
                let mut before = 0.0;
                let mut mean = 0.0;
                for branch in branches {
                    mean += (branch.up_to - before) * branch.law.mean_nanos();
                    before = branch.up_to;
                }
                mean
            }
            Distribution::Empirical(points) => points
                .windows(2)
                .map(|w| (w[1].share - w[0].share) * f64::midpoint(w[0].value, w[1].value))
                .sum(),
        }
    }

    /// True for the law that never gives anything but zero.
    pub fn is_zero(&self) -> bool {
        matches!(self, Distribution::Constant(span) if *span == Span::ZERO)
    }
}

#[inline(always)]
fn exponential<R: Rng>(mean: Span, rng: &mut R) -> f64 {
    let draw: f64 = Exp1.sample(rng);
    draw * mean.nanos() as f64
}

fn unit<R: Rng>(rng: &mut R) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

fn quantile_between(points: &[Percentile], u: f64) -> f64 {
    let above = points.partition_point(|p| p.share <= u).clamp(1, points.len() - 1);
    let (a, b) = (points[above - 1], points[above]);
    a.value + (b.value - a.value) * ((u - a.share) / (b.share - a.share)).clamp(0.0, 1.0)
}

fn normal_quantile(p: f64) -> f64 {
    use statrs::distribution::{ContinuousCDF, Normal};
    Normal::standard().inverse_cdf(p)
}

#[cfg(test)]
mod tests {
    use super::super::random::{Key, Purpose};
    use super::*;

    const N: usize = 200_000;

    fn draws(law: &Distribution) -> Vec<f64> {
        let root = Key::root(11);
        (0..N as u64)
            .map(|i| law.sample(&mut root.child(i).stream(Purpose::Work)).seconds())
            .collect()
    }

    fn assert_mean(law: &Distribution) {
        let draws = draws(law);
        let mean = draws.iter().sum::<f64>() / N as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / N as f64;
        let error = 4.0 * (variance / N as f64).sqrt() + 1e-9;
        assert!((mean - law.mean_seconds()).abs() < error, "{law:?}: {mean} ± {error}");
    }

    fn assert_percentile(law: &Distribution, p: f64, seconds: f64) {
        let below = draws(law).iter().filter(|&&x| x <= seconds).count() as f64 / N as f64;
        let error = 4.0 * (p * (1.0 - p) / N as f64).sqrt();
        assert!((below - p).abs() < error, "{law:?}: {below} below {seconds} s, not {p}");
    }

    fn at(share: f64, millis: f64) -> Percentile {
        Percentile { share, value: millis * 1e6 }
    }

    #[test]
    fn every_law_has_the_mean_it_claims() {
        let exponential = Distribution::Exponential { mean: Span::from_millis(5) };
        for law in [
            Distribution::Constant(Span::from_millis(5)),
            Distribution::Uniform { from: Span::from_millis(1), to: Span::from_millis(5) },
            exponential.clone(),
            Distribution::Normal { mean: 10e6, sd: 2e6 },
            Distribution::Normal { mean: 1e6, sd: 2e6 },
            Distribution::lognormal_with(5e6, 1.5),
            Distribution::Gamma { shape: 3.0, scale: 2e6 },
            Distribution::weibull_with(5e6, 0.7),
            Distribution::Pareto { shape: 3.0, scale: 1e6 },
            Distribution::hyperexponential(5e6, 3.0),
            Distribution::Empirical(vec![
                at(0.0, 1.0),
                at(0.5, 2.0),
                at(0.99, 50.0),
                at(1.0, 80.0),
            ]),
        ] {
            assert_mean(&law);
        }
    }

    #[test]
    fn a_law_given_by_percentiles_goes_through_them() {
        let (p50, p99) = (at(0.5, 5.0), at(0.99, 40.0));
        for law in [
            Distribution::lognormal_through(p50, p99),
            Distribution::weibull_through(p50, p99),
            Distribution::pareto_through(p50, p99),
            Distribution::gamma_through(p50, p99),
        ] {
            assert_percentile(&law, 0.5, 0.005);
            assert_percentile(&law, 0.99, 0.040);
        }
    }

    #[test]
    fn the_hyperexponential_has_the_variation_asked_for() {
        let draws = draws(&Distribution::hyperexponential(1e6, 2.0));
        let mean = draws.iter().sum::<f64>() / N as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / N as f64;
        assert!((variance.sqrt() / mean - 2.0).abs() < 0.06);
    }
}
