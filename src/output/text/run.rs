//! The page of one run.

use super::{COLUMNS, Style, clock, herd, is_shown, phase_title, tier_table};
use crate::model::Model;
use crate::output::herd::of_run;
use crate::output::summary::{PhaseSummary, Summary};

/// The page; with what was expected, where that was asked for.
pub fn render(model: &Model, summary: &Summary, style: Style, expected: bool) -> String {
    let verdict = &summary.verdict;
    let mut page = format!("{}\n", style.bold(&model.title));
    page.push_str(&style.wrapped(&style.verdict(&verdict.class, &verdict.sentence), 0));
    page.push('\n');
    let several = summary.phases.len() > 2;
    for phase in summary.phases.iter().filter(|phase| is_shown(&phase.name, several)) {
        page.push_str(&phase_table(model, phase, style));
    }
    page.push_str(&herd::section(model, &of_run(&summary.herds), style));
    page.push_str(&log(summary, style));
    page.push_str(&style.assumptions(&summary.assumptions));
    if expected {
        page.push_str(&expectations(summary, style));
    }
    page
}

fn phase_table(model: &Model, phase: &PhaseSummary, style: Style) -> String {
    let title = style.bold(&phase_title(&phase.name, phase.from_s, phase.to_s));
    let row = |tier| {
        let name = model.names.tier_name(tier);
        let figures = phase.tiers.get(name)?;
        let cells = COLUMNS.iter().map(|column| column.cell(figures.figure(column.figure)));
        Some(std::iter::once(name.to_owned()).chain(cells).collect())
    };
    format!("{title}\n{}\n\n", tier_table(model.tier_ids().filter_map(row).collect()))
}

fn log(summary: &Summary, style: Style) -> String {
    const MOST: usize = 24;
    if summary.log.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", style.bold("What happened"));
    for entry in summary.log.iter().take(MOST) {
        text.push_str(&format!("  {:>8}  {:<8}  {}\n", clock(entry.at_s), entry.by, entry.what));
    }
    if summary.log.len() > MOST {
        text.push_str(&format!("  … and {} more, in summary.json\n", summary.log.len() - MOST));
    }
    text.push('\n');
    text
}

fn expectations(summary: &Summary, style: Style) -> String {
    if summary.expectations.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", style.bold("Expectations"));
    for expectation in &summary.expectations {
        let mark = if expectation.met { style.green("met") } else { style.red("NOT MET") };
        text.push_str(&format!(
            "  {mark}  {}: expected {}, got {}\n",
            expectation.what, expectation.expected, expectation.got
        ));
    }
    text
}
