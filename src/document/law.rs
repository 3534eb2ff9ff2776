//! A distribution of lengths of time, as a model file writes it.
//!
//! `work.constant = "5ms"`, `work.exponential = "5ms"` (its mean), `work.lognormal = { p50 = "5ms",
//! p99 = "40ms" }` …

use super::{Section, Value};
use crate::kernel::distribution::{Branch, Percentile};
use crate::kernel::{Distribution, Span};

const LAWS: [&str; 12] = [
    "constant",
    "exponential",
    "uniform",
    "normal",
    "lognormal",
    "gamma",
    "erlang",
    "weibull",
    "pareto",
    "hyperexponential",
    "mixture",
    "percentiles",
];

/// Percentile keys and their probability.
const PERCENTILES: [(&str, f64); 12] = [
    ("p0", 0.0),
    ("p10", 0.10),
    ("p25", 0.25),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
    ("p9999", 0.9999),
    ("p99999", 0.999_99),
    ("p100", 1.0),
];

impl Value<'_> {
    /// The distribution that this value writes.
    pub fn distribution(&self) -> Option<Distribution> {
        let (law, contents) = self.choice(&LAWS)?;
        let Some(contents) = contents else {
            let what = format!("`{}` = \"{law}\" lacks its parameters", self.path());
            let cure = format!("write {}.{law} = …", self.key());
            self.fault(&what, "a law needs at least a mean or percentiles", &cure);
            return None;
        };
        let distribution = match law {
            "constant" => Some(Distribution::Constant(contents.duration()?)),
            "exponential" => exponential(&contents),
            "mixture" => mixture(&contents),
            "percentiles" => empirical(&contents.section()?),
            _ => parametric(law, &contents),
        }?;
        drawable(&contents, distribution)
    }
}

/// Guards against parameters that are finite one by one and not together.
fn drawable(value: &Value<'_>, law: Distribution) -> Option<Distribution> {
    let longest = Span::from_secs(100 * 365 * 86_400).seconds();
    let mean = law.mean_seconds();
    if mean.is_nan() || (mean > longest && !has_no_mean(&law)) {
        value.fault(
            &format!("the mean of `{}` is out of range", value.path()),
            "these parameters together give a length beyond a hundred years",
            "bring the percentiles or the shape closer to what was measured",
        );
        return None;
    }
    Some(law)
}

/// A Pareto of a shape of 1 or less is a law all the same; its mean is infinite by nature.
fn has_no_mean(law: &Distribution) -> bool {
    match law {
        Distribution::Pareto { shape, .. } => *shape <= 1.0,
        Distribution::Mixture(branches) => branches.iter().any(|branch| has_no_mean(&branch.law)),
        _ => false,
    }
}

fn exponential(value: &Value<'_>) -> Option<Distribution> {
    if !value.is_section() {
        return Some(Distribution::Exponential { mean: value.positive_duration()? });
    }
    let section = value.section()?;
    let (mean, points) = (section.get("mean"), percentiles(&section));
    let known = section.finish();
    let mean = match (mean, points?.as_slice()) {
        (Some(mean), []) => mean.positive_duration()?,
        (None, [one]) if one.share > 0.0 && one.share < 1.0 => {
            Span::from_nanos_f64(one.value / -libm::log1p(-one.share))
        }
        _ if !known => return None,
        _ => return ambiguous(&section, "`mean`, or one percentile between p0 and p100"),
    };
    Some(Distribution::Exponential { mean })
}

fn parametric(law: &str, value: &Value<'_>) -> Option<Distribution> {
    let section = value.section()?;
    match law {
        "uniform" => uniform(&section),
        "normal" => normal(&section),
        "hyperexponential" => hyperexponential(&section),
        "erlang" => erlang(&section),
        _ => by_mean_or_percentiles(law, &section),
    }
}

fn uniform(section: &Section<'_>) -> Option<Distribution> {
    let from_value = section.require("from", "add from = \"1ms\"");
    let from = from_value.as_ref().and_then(Value::duration);
    let to = section.require("to", "add to = \"5ms\"").and_then(|v| v.positive_duration());
    section.finish();
    let (from, to) = (from?, to?);
    if from > to {
        let what = "`from` is longer than `to`";
        from_value?.fault(what, "the range would be empty", "exchange the two");
        return None;
    }
    Some(Distribution::Uniform { from, to })
}

fn normal(section: &Section<'_>) -> Option<Distribution> {
    let mean = section.require("mean", "add mean = \"5ms\"").and_then(|v| v.positive_duration());
    let sd = section.require("sd", "add sd = \"1ms\"").and_then(|v| v.duration());
    section.finish();
    Some(Distribution::Normal { mean: mean?.nanos() as f64, sd: sd?.nanos() as f64 })
}

fn hyperexponential(section: &Section<'_>) -> Option<Distribution> {
    let mean = section.require("mean", "add mean = \"5ms\"").and_then(|v| v.positive_duration());
    let cv = section.require("cv", "add cv = 2.0").and_then(|v| v.number_above(1.0, 1e3));
    section.finish();
    Some(Distribution::hyperexponential(mean?.nanos() as f64, cv?))
}

fn erlang(section: &Section<'_>) -> Option<Distribution> {
    let mean = section.require("mean", "add mean = \"5ms\"").and_then(|v| v.positive_duration());
    let stages = section.require("stages", "add stages = 4").and_then(|v| v.whole(1, 1_000));
    section.finish();
    let shape = stages? as f64;
    Some(Distribution::Gamma { shape, scale: mean?.nanos() as f64 / shape })
}

/// Lognormal, gamma, Weibull and Pareto: a mean with `cv` or `shape`, or two percentiles.
fn by_mean_or_percentiles(law: &str, section: &Section<'_>) -> Option<Distribution> {
    let (form, least) = match law {
        "lognormal" => ("cv", 0.0),
        "pareto" => ("shape", 1.0),
        _ => ("shape", 0.0),
    };
    let mean = section.get("mean").map(|v| v.positive_duration());
    let shape = section.get(form).map(|v| v.number_above(least, 1e3));
    let points = percentiles(section);
    let known = section.finish();
    match (mean, shape, &points?[..]) {
        (Some(mean), Some(shape), []) => Some(by_mean(law, mean?.nanos() as f64, shape?)),
        (None, None, [low, high]) if low.share > 0.0 && high.share < 1.0 => {
            through(law, section, *low, *high)
        }
        (None, None, [_, _]) => {
            ambiguous(section, "percentiles between p0 and p100, which this law does not reach")
        }
        _ if !known => None,
        _ => ambiguous(
            section,
            &format!("`mean` and `{form}`, or two percentiles such as `p50` and `p99`"),
        ),
    }
}

fn by_mean(law: &str, mean: f64, shape: f64) -> Distribution {
    match law {
        "lognormal" => Distribution::lognormal_with(mean, shape),
        "gamma" => Distribution::Gamma { shape, scale: mean / shape },
        "weibull" => Distribution::weibull_with(mean, shape),
        _ => Distribution::Pareto { shape, scale: mean * (shape - 1.0) / shape },
    }
}

fn through(
    law: &str,
    section: &Section<'_>,
    low: Percentile,
    high: Percentile,
) -> Option<Distribution> {
    let fitted = match law {
        "lognormal" => Distribution::lognormal_through(low, high),
        "gamma" => Distribution::gamma_through(low, high),
        "weibull" => Distribution::weibull_through(low, high),
        _ => Distribution::pareto_through(low, high),
    };
    // The search for a gamma's shape ends at 0.05 and 1000, and then misses the percentiles.
    if let Distribution::Gamma { shape, .. } = fitted
        && !(0.051..=990.0).contains(&shape)
    {
        let what = format!("no gamma law goes through the percentiles of `{}`", section.path());
        let cure = "use lognormal, or bring the percentiles closer to what was measured";
        section.fault(&what, "they lie too far apart, or too close together", cure);
        return None;
    }
    Some(fitted)
}

fn mixture(value: &Value<'_>) -> Option<Distribution> {
    let mut branches = Vec::new();
    let mut sound = true;
    let mut total = 0.0;
    let items = value.list()?;
    for item in &items {
        match branch(item) {
            Some((share, law)) => {
                total += share;
                branches.push(Branch { up_to: total, law });
            }
            None => sound = false,
        }
    }
    if sound && ((total - 1.0).abs() > 1e-9 || branches.is_empty()) {
        value.fault(
            &format!("the shares of `{}` add up to {}", value.path(), super::share_text(total)),
            "each draw takes exactly one branch",
            "make the shares add up to 100%",
        );
        return None;
    }
    // A rounding error in the sum must not leave a gap above the last branch.
    branches.last_mut()?.up_to = 1.0;
    sound.then_some(Distribution::Mixture(branches))
}

fn branch(item: &Value<'_>) -> Option<(f64, Distribution)> {
    let section = item.section()?;
    let share = section.require("share", "add share = \"50%\"").and_then(|v| v.share());
    let law =
        section.require("law", "add law.exponential = \"5ms\"").and_then(|v| v.distribution());
    section.finish();
    Some((share?, law?))
}

fn empirical(section: &Section<'_>) -> Option<Distribution> {
    let points = percentiles(section);
    let known = section.finish();
    let mut points = points?;
    if points.len() < 2 {
        if !known {
            return None;
        }
        return ambiguous(section, "at least two percentiles, such as `p50` and `p99`");
    }
    // Outside the given percentiles the law is flat: below the first and above the last nothing is
    // known.
    let (first, last) = (points[0], points[points.len() - 1]);
    if first.share > 0.0 {
        points.insert(0, Percentile { share: 0.0, ..first });
    }
    if last.share < 1.0 {
        points.push(Percentile { share: 1.0, ..last });
    }
    Some(Distribution::Empirical(points))
}

/// The percentiles of a table, by rising probability; values must rise with them. `None` when one
/// is faulty.
fn percentiles(section: &Section<'_>) -> Option<Vec<Percentile>> {
    let given = PERCENTILES.iter().filter_map(|(key, share)| Some((*share, section.get(key)?)));
    let points: Vec<Option<(Percentile, Value<'_>)>> = given
        .map(|(share, given)| {
            let value = given.positive_duration()?.nanos() as f64;
            Some((Percentile { share, value }, given))
        })
        .collect();
    let points: Vec<(Percentile, Value<'_>)> = points.into_iter().collect::<Option<_>>()?;
    if let Some(pair) = points.windows(2).find(|pair| pair[0].0.value >= pair[1].0.value) {
        let (low, high) = (pair[0].1.key(), pair[1].1.key());
        pair[1].1.fault(
            &format!("`{high}` of `{}` is not above `{low}`", section.path()),
            "a higher percentile is a longer time, by definition",
            &format!("give {high} a longer time than {low}"),
        );
        return None;
    }
    Some(points.into_iter().map(|(point, _)| point).collect())
}

fn ambiguous(section: &Section<'_>, wanted: &str) -> Option<Distribution> {
    section.fault(
        &format!("`{}` is not determined", section.path()),
        &format!("it needs {wanted}"),
        "give exactly these",
    );
    None
}
