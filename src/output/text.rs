//! The summary of a run for people: one page in the terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use super::summary::{PhaseSummary, Summary};
use crate::measure::TierFigures;
use crate::model::Model;

/// Colours of the page; none of them when it is not read on a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether to use colour.
    pub colour: bool,
    /// Width of the page in characters.
    pub width: u16,
}

/// The page; with what was expected, where that was asked for.
pub fn render(model: &Model, summary: &Summary, style: Style, expected: bool) -> String {
    let mut page = String::new();
    page.push_str(&style.bold(&model.title));
    page.push('\n');
    page.push_str(&style.wrapped(&style.verdict(summary), 0));
    page.push('\n');
    for phase in
        summary.phases.iter().filter(|phase| phase.name != "whole" || summary.phases.len() <= 2)
    {
        page.push_str(&phase_table(model, phase, style));
    }
    page.push_str(&log(summary, style));
    page.push_str(&style.bold("Assumptions"));
    page.push('\n');
    for assumption in &summary.assumptions {
        page.push_str(&style.wrapped(&format!("  {assumption}"), 4));
    }
    if expected {
        page.push_str(&expectations(summary, style));
    }
    page
}

/// A column of the page: its heading and how a figure is shown.
type Shown = (&'static str, fn(&TierFigures) -> String);

fn phase_table(model: &Model, phase: &PhaseSummary, style: Style) -> String {
    let title =
        format!("{} ({} to {})", capital(&phase.name), clock(phase.from_s), clock(phase.to_s));
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    let columns: [Shown; 9] = [
        ("offered/s", |f| rate(f.offered_per_s)),
        ("goodput/s", |f| rate(f.goodput_per_s)),
        ("refused/s", |f| rate(f.refused_per_s)),
        ("timed out/s", |f| rate(f.timed_out_per_s)),
        ("x", |f| f.amplification.map_or("-".into(), |x| format!("{x:.2}"))),
        ("busy", |f| f.utilisation.map_or("-".into(), |u| format!("{:.0}%", u * 100.0))),
        ("waiting", |f| rate(f.queue_mean)),
        ("wasted", |f| f.wasted_work_per_s.map_or("-".into(), |w| format!("{w:.1}"))),
        ("p99", |f| f.sojourn_p99_s.map_or("-".into(), seconds)),
    ];
    let header = std::iter::once("tier").chain(columns.iter().map(|(name, _)| *name));
    table.set_header(header.map(|name| Cell::new(name).set_alignment(CellAlignment::Right)));
    for tier in model.tier_ids() {
        let name = model.names.tier_name(tier);
        let Some(figures) = phase.tiers.get(name) else { continue };
        let cells = columns.iter().map(|(_, show)| show(figures));
        table.add_row(std::iter::once(name.to_owned()).chain(cells));
    }
    table
        .column_iter_mut()
        .skip(1)
        .for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    format!("{}\n{}\n\n", style.bold(&title), trimmed(&table.to_string()))
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

impl Style {
    fn verdict(self, summary: &Summary) -> String {
        let sentence = &summary.verdict.sentence;
        match summary.verdict.class.as_str() {
            "stable" => self.green(sentence),
            "undecided" => self.paint(sentence, "33"),
            _ => self.red(sentence),
        }
    }

    fn bold(self, text: &str) -> String {
        self.paint(text, "1")
    }

    fn green(self, text: &str) -> String {
        self.paint(text, "32")
    }

    fn red(self, text: &str) -> String {
        self.paint(text, "31")
    }

    fn paint(self, text: &str, code: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// The text in lines that fit, all but the first indented.
    fn wrapped(self, text: &str, indent: usize) -> String {
        let mut lines = String::new();
        let mut column = 0;
        let first_indent = text.len() - text.trim_start().len();
        lines.push_str(&" ".repeat(first_indent));
        column += first_indent;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if column > first_indent && column + 1 + length > usize::from(self.width) {
                lines.push('\n');
                lines.push_str(&" ".repeat(indent));
                column = indent;
            } else if column > first_indent {
                lines.push(' ');
                column += 1;
            }
            lines.push_str(word);
            column += length;
        }
        lines.push('\n');
        lines
    }
}

fn trimmed(table: &str) -> String {
    table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// An instant as minutes and seconds, or hours.
fn clock(seconds: f64) -> String {
    let whole = seconds.floor() as u64;
    let (hours, minutes, rest) =
        (whole / 3600, whole / 60 % 60, seconds - (whole / 60 * 60) as f64);
    let rest = if (rest - rest.round()).abs() < 1e-6 {
        format!("{rest:02.0}")
    } else {
        format!("{rest:04.1}")
    };
    if hours > 0 { format!("{hours}:{minutes:02}:{rest}") } else { format!("{minutes}:{rest}") }
}

fn rate(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| {
        crate::document::rate_text(value).trim_end_matches("/s").to_owned()
    })
}

fn seconds(value: f64) -> String {
    match value {
        v if v >= 10.0 => format!("{v:.0} s"),
        v if v >= 1.0 => format!("{v:.2} s"),
        v if v >= 0.001 => format!("{:.0} ms", v * 1e3),
        v => format!("{:.0} us", v * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_read_as_clocks() {
        assert_eq!(clock(0.0), "0:00");
        assert_eq!(clock(125.0), "2:05");
        assert_eq!(clock(3661.5), "1:01:01.5");
    }

    #[test]
    fn long_lines_are_wrapped_at_the_width() {
        let style = Style { colour: false, width: 10 };
        assert_eq!(style.wrapped("one two three", 2), "one two\n  three\n");
    }
}
