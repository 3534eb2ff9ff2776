//! `[expect]`: what must come out of a run, for CI.
//!
//! ```toml
//! [expect]
//! verdict = "metastable"
//! recovery_time_s = [0, 60]
//!
//! [expect.after.api]              # phase and tier
//! offered_per_s = [17640, 18360]  # from, to
//!
//! [expect.herd.client]            # a tier whose clients come once each
//! through_99_s = [0, 90]
//! ```

use crate::document::{Names, Section, TierId, Value, nearest};
use crate::measure::TierFigures;
use crate::measure::herd::FIGURES as HERD_FIGURES;

/// Phases that figures can be expected of.
pub const PHASES: [&str; 5] = ["before", "during", "after", "end", "whole"];

/// The table of herds, beside those of phases.
const HERD: &str = "herd";

/// Verdicts that can be expected.
pub const VERDICTS: [&str; 4] = ["stable", "metastable", "overloaded", "undecided"];

/// What must come out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    /// Class of the verdict.
    pub verdict: Option<&'static str>,
    /// Recovery time (s).
    pub recovery_time_s: Option<(f64, f64)>,
    /// Figures of tiers in phases.
    pub figures: Vec<Range>,
    /// Figures of herds.
    pub herds: Vec<Range>,
}

/// A figure that must lie in a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Phase.
    pub phase: &'static str,
    /// Tier.
    pub tier: TierId,
    /// Name of the figure.
    pub figure: &'static str,
    /// Lowest that will do.
    pub from: f64,
    /// Highest that will do.
    pub to: f64,
}

impl Expect {
    /// True when nothing is expected.
    pub fn is_empty(&self) -> bool {
        *self == Expect::default()
    }

    /// Reads `[expect]`.
    pub fn read(section: &Section<'_>, names: &Names) -> Option<Self> {
        let verdict = section.get("verdict").map(|v| v.word(&VERDICTS.map(|class| (class, class))));
        let recovery = section.get("recovery_time_s").map(|v| range(&v));
        let (mut figures, mut herds) = (Vec::new(), Vec::new());
        let mut sound = true;
        for phase in PHASES.into_iter().chain([HERD]) {
            let tiers = section.get(phase).and_then(|v| v.section());
            for tier in tiers.iter().flat_map(Section::entries) {
                match read_tier(phase, &tier, names) {
                    Some(ranges) if phase == HERD => herds.extend(ranges),
                    Some(ranges) => figures.extend(ranges),
                    None => sound = false,
                }
            }
        }
        section.finish();
        let verdict = verdict.map_or(Some(None), |verdict| verdict.map(Some))?;
        let recovery_time_s = recovery.map_or(Some(None), |range| range.map(Some))?;
        sound.then_some(Expect { verdict, recovery_time_s, figures, herds })
    }
}

fn read_tier(phase: &'static str, value: &Value<'_>, names: &Names) -> Option<Vec<Range>> {
    let tier = names.tier(value.key(), value);
    let section = value.section()?;
    let tier_figures: Vec<&'static str> =
        TierFigures::COLUMNS.iter().map(|(name, _)| *name).collect();
    let mut ranges = Vec::new();
    for entry in section.entries() {
        let known: &[&'static str] = if phase == HERD { &HERD_FIGURES } else { &tier_figures };
        let known = known.iter().copied();
        let Some(figure) = known.clone().find(|name| *name == entry.key()) else {
            let what = format!("there is no figure `{}`", entry.key());
            let why = "no column of the results of a tier has this name";
            entry.key_fault(&what, why, &nearest(entry.key(), known));
            continue;
        };
        ranges.push((figure, range(&entry)));
    }
    let tier = tier?;
    ranges
        .into_iter()
        .map(|(figure, range)| range.map(|(from, to)| Range { phase, tier, figure, from, to }))
        .collect()
}

/// Reads `[from, to]`.
fn range(value: &Value<'_>) -> Option<(f64, f64)> {
    let numbers: Vec<Option<f64>> = value.list()?.iter().map(Value::number).collect();
    match numbers.into_iter().collect::<Option<Vec<f64>>>()?[..] {
        [from, to] if from <= to => Some((from, to)),
        [from, to] => {
            let what = format!("`{}` begins above its end", value.path());
            let cure = format!("write [{to}, {from}]");
            value.fault(&what, "a range is the lowest and the highest that will do", &cure);
            None
        }
        _ => {
            let what = format!("`{}` is no range", value.path());
            value.fault(
                &what,
                "a range is the lowest and the highest that will do",
                "write [17640, 18360]",
            );
            None
        }
    }
}
