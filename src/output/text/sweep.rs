//! The page of a sweep: a row for each point.

use super::{Style, rate, seconds, table};
use crate::measure::{Estimate, Share};
use crate::output::ensemble::{PointSummary, SweepSummary};

/// More varied settings leave no room for the last column.
const ROOMY: usize = 2;
/// Longest line of a heading that is a path.
const HEADING: usize = 12;

/// The page.
pub fn render(title: &str, summary: &SweepSummary, style: Style) -> String {
    let roomy = summary.vary.len() <= ROOMY;
    let paths: Vec<String> = summary.vary.iter().map(|varied| heading(&varied.path)).collect();
    let mut columns = vec!["verdict", "metastable", "recovery", "goodput/s\nat the end"];
    columns.extend(roomy.then_some("x at the\nworst tier"));
    let rows = summary.points.iter().map(|swept| {
        let values = summary.vary.iter().map(|varied| swept.settings[&varied.path].clone());
        values.chain(cells(&swept.point, roomy)).collect()
    });
    let header = paths.iter().map(String::as_str).chain(columns);
    let table = table(header, rows.collect(), 0);
    let mut page = format!("{}\n\n{table}\n\n", style.bold(title));
    page.push_str(&style.assumptions(&common_assumptions(summary)));
    page.push_str(&style.wrapped(&format!("  {}", drawn(summary)), 4));
    page
}

fn cells(point: &PointSummary, roomy: bool) -> Vec<String> {
    let verdict = &point.verdict;
    let mut cells = vec![
        verdict.class.clone(),
        probability(&verdict.metastable),
        estimate(verdict.recovery_time_s, |s| if s == 0.0 { "0 s".into() } else { seconds(s) }),
        estimate(point.goodput_per_s, rate),
    ];
    cells.extend(roomy.then(|| estimate(point.amplification, |x| format!("{x:.2}"))));
    cells
}

/// "64% (51–76%)".
fn probability(share: &Share) -> String {
    let percent = |share: f64| (share * 1000.0).round() / 10.0;
    let Share { share, low, high, .. } = *share;
    let share = share.map(|share| format!("{}%", percent(share)));
    share.map_or("-".into(), |share| format!("{share} ({}–{}%)", percent(low), percent(high)))
}

fn estimate(estimate: Option<Estimate>, show: impl Fn(f64) -> String) -> String {
    let Some(Estimate { mean, half_width, .. }) = estimate else { return "-".into() };
    let spread = half_width.map_or(String::new(), |width| format!(" ± {}", show(width)));
    format!("{}{spread}", show(mean))
}

/// A path in lines that leave room for the other columns.
fn heading(path: &str) -> String {
    let mut lines = vec![String::new()];
    for part in path.split_inclusive('.') {
        let last = lines.last_mut().expect("there is always a line");
        if !last.is_empty() && last.len() + part.len() > HEADING {
            lines.push(part.to_owned());
        } else {
            last.push_str(part);
        }
    }
    lines.join("\n")
}

/// What holds at every point. What differs is what is varied, or follows from it.
fn common_assumptions(summary: &SweepSummary) -> Vec<String> {
    let Some((first, others)) = summary.points.split_first() else { return Vec::new() };
    let holds = |about: &str, part: &str| {
        others.iter().all(|swept| {
            let told = swept.point.assumptions.iter().filter_map(|line| line.split_once(": "));
            told.into_iter()
                .any(|(name, rest)| name == about && rest.split("; ").any(|p| p == part))
        })
    };
    let common = |(about, rest): (&str, &str)| {
        let parts: Vec<&str> = rest.split("; ").filter(|part| holds(about, part)).collect();
        (!parts.is_empty()).then(|| format!("{about}: {}", parts.join("; ")))
    };
    let lines = first.point.assumptions.iter().filter_map(|line| line.split_once(": "));
    lines.filter_map(common).collect()
}

/// What a row rests on.
fn drawn(summary: &SweepSummary) -> String {
    let Some(PointSummary { seeds, root_seed, .. }) = summary.points.first().map(|p| &p.point)
    else {
        return String::new();
    };
    let draws = match summary.draws.as_str() {
        "own" => "each with its own",
        _ => "the same for all",
    };
    let plural = if *seeds == 1 { "" } else { "s" };
    format!(
        "{seeds} seed{plural} a point, {draws}, hashed from seed {root_seed}; ± and ranges are 95% \
         intervals; what differs between points is left out here"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_broken_at_its_dots() {
        assert_eq!(heading("run.duration"), "run.duration");
        assert_eq!(heading("tier.api.concurrency"), "tier.api.\nconcurrency");
        assert_eq!(heading("tier.inventory.work"), "tier.\ninventory.\nwork");
    }
}
