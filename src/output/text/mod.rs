//! Results for people: pages in the terminal.

mod ensemble;
mod herd;
mod policies;
mod run;
mod sweep;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

pub use ensemble::render as render_ensemble;
pub use policies::render as render_policies;
pub use run::render;
pub use sweep::render as render_sweep;

/// Colours of the page; none of them when it is not read on a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether to use colour.
    pub colour: bool,
    /// Width of the page in characters.
    pub width: u16,
}

/// A figure of a tier as pages show it.
pub(super) struct Column {
    /// Its name.
    pub figure: &'static str,
    heading: &'static str,
    show: fn(f64) -> String,
}

/// The figures that fit on a page.
pub(super) const COLUMNS: [Column; 9] = [
    Column { figure: "offered_per_s", heading: "offered/s", show: rate },
    Column { figure: "goodput_per_s", heading: "goodput/s", show: rate },
    Column { figure: "refused_per_s", heading: "refused/s", show: rate },
    Column { figure: "timed_out_per_s", heading: "timed out/s", show: rate },
    Column { figure: "amplification", heading: "x", show: |x| format!("{x:.2}") },
    Column { figure: "utilisation", heading: "busy", show: |u| format!("{:.0}%", u * 100.0) },
    Column { figure: "queue_mean", heading: "waiting", show: rate },
    Column { figure: "wasted_work_per_s", heading: "wasted", show: |w| format!("{w:.1}") },
    Column { figure: "sojourn_p99_s", heading: "p99", show: seconds },
];

impl Column {
    fn cell(&self, figure: Option<f64>) -> String {
        figure.map_or("-".into(), self.show)
    }
}

/// A table of figures by tier.
fn tier_table(rows: Vec<Vec<String>>) -> String {
    let header = std::iter::once("tier").chain(COLUMNS.iter().map(|column| column.heading));
    table(header, rows, 1)
}

/// A table of figures, but for the columns at its left that name the row.
fn table<'h>(
    header: impl Iterator<Item = &'h str>,
    rows: Vec<Vec<String>>,
    names: usize,
) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.map(|name| Cell::new(name).set_alignment(CellAlignment::Right)));
    table.add_rows(rows);
    table
        .column_iter_mut()
        .skip(names)
        .for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    trimmed(&table.to_string())
}

/// The whole says nothing more where its parts are shown.
fn is_shown(phase: &str, several: bool) -> bool {
    phase != "whole" || !several
}

/// "After (3:00 to 15:00)".
fn phase_title(name: &str, from_s: f64, to_s: f64) -> String {
    format!("{} ({} to {})", capital(name), clock(from_s), clock(to_s))
}

impl Style {
    /// A text in the colour of a class of verdict.
    fn verdict(self, class: &str, text: &str) -> String {
        match class {
            "stable" => self.green(text),
            "undecided" => self.paint(text, "33"),
            _ => self.red(text),
        }
    }

    fn assumptions(self, assumptions: &[String]) -> String {
        let mut text = format!("{}\n", self.bold("Assumptions"));
        for assumption in assumptions {
            text.push_str(&self.wrapped(&format!("  {assumption}"), 4));
        }
        text
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

fn rate(value: f64) -> String {
    crate::document::rate_text(value).trim_end_matches("/s").to_owned()
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
