//! The page of many seeds of one model: that of one run, with means for figures.

use std::collections::BTreeMap;

use super::{COLUMNS, Column, Style, herd, is_shown, phase_title, tier_table};
use crate::measure::Estimate;
use crate::model::Model;
use crate::output::ensemble::{PhaseEstimates, PointSummary};

/// The page; with what was expected, where that was asked for.
pub fn render(model: &Model, summary: &PointSummary, style: Style, expected: bool) -> String {
    let verdict = &summary.verdict;
    let mut page = format!("{}\n", style.bold(&model.title));
    page.push_str(&style.wrapped(&style.verdict(&verdict.class, &verdict.sentence), 0));
    page.push_str(&examples(summary, style));
    page.push('\n');
    let several = summary.phases.len() > 2;
    for phase in summary.phases.iter().filter(|phase| is_shown(&phase.name, several)) {
        page.push_str(&phase_table(model, phase, style));
    }
    page.push_str(&herd::section(model, &summary.herds, style));
    page.push_str(&style.assumptions(&summary.assumptions));
    page.push_str(&style.wrapped(&format!("  {}", drawn(summary)), 4));
    if expected && !summary.expectations.is_empty() {
        page.push_str(&expectations(summary, style));
    }
    page
}

/// The first seed of each class, in its own words.
fn examples(summary: &PointSummary, style: Style) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut text = String::new();
    for run in &summary.replications {
        if !shown.contains(&run.class.as_str()) {
            shown.push(&run.class);
            text.push_str(&style.wrapped(&format!("  seed {}: {}", run.seed, run.sentence), 4));
        }
    }
    text
}

/// A row of means for each tier, and below it one of what they may be off.
fn phase_table(model: &Model, phase: &PhaseEstimates, style: Style) -> String {
    let title = style.bold(&phase_title(&phase.name, phase.from_s, phase.to_s));
    let mut rows = Vec::new();
    for tier in model.tier_ids() {
        let name = model.names.tier_name(tier);
        let Some(figures) = phase.tiers.get(name) else { continue };
        let mean = |column: &Column| column.cell(figures.get(column.figure).map(|f| f.mean));
        rows.push(std::iter::once(name.to_owned()).chain(COLUMNS.iter().map(mean)).collect());
        if figures.values().any(|figure| figure.half_width.is_some()) {
            let spread = |column| spread(column, figures);
            rows.push(std::iter::once(String::new()).chain(COLUMNS.iter().map(spread)).collect());
        }
    }
    format!("{title}\n{}\n\n", tier_table(rows))
}

fn spread(column: &Column, figures: &BTreeMap<String, Estimate>) -> String {
    match figures.get(column.figure).and_then(|figure| figure.half_width) {
        None => String::new(),
        Some(0.0) => "± 0".into(),
        half_width => format!("± {}", column.cell(half_width)),
    }
}

/// What the figures are means of.
fn drawn(summary: &PointSummary) -> String {
    let PointSummary { complete, seeds, root_seed, .. } = summary;
    let mixed = summary.verdict.counts.values().filter(|count| **count > 0).count() > 1;
    let mixed = if mixed { ", whatever their verdict" } else { "" };
    let asked = if complete < seeds { format!(" of {seeds}") } else { String::new() };
    format!(
        "figures are means over {complete}{asked} seeds{mixed}, hashed from seed {root_seed}; ± is \
         half the width of their 95% interval"
    )
}

fn expectations(summary: &PointSummary, style: Style) -> String {
    let mut text = format!("\n{}\n", style.bold("Expectations"));
    for held in &summary.expectations {
        let met = format!("met in {} of {} seeds", held.met, held.of);
        let (mark, missed) = match &held.missed {
            None => (style.green(&met), String::new()),
            Some(missed) => (style.red(&met), format!("; seed {} got {}", missed.seed, missed.got)),
        };
        let (what, expected) = (&held.what, &held.expected);
        text.push_str(&format!("  {mark}  {what}: expected {expected}{missed}\n"));
    }
    text
}
