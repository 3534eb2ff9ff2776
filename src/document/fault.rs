//! What is wrong with a model, or worth a second look: where, what, why, and the cure.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

/// How grave it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The model cannot run.
    Fault,
    /// The model runs; its settings are dangerous.
    Finding,
}

/// A place in the text and what to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Byte range.
    pub range: Range<usize>,
    /// A few words shown beside it; may be empty.
    pub label: String,
}

/// One fault or finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Fault or finding.
    pub level: Level,
    /// A short name, for findings ("nested timeouts").
    pub name: &'static str,
    /// What is wrong, in one line.
    pub what: String,
    /// Why it matters, with this model's own numbers.
    pub why: String,
    /// What to write instead.
    pub cure: String,
    /// Where; the first is the main one.
    pub marks: Vec<Mark>,
}

/// Line and column, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// All that was found while reading one document.
#[derive(Debug, Default)]
pub struct Faults(RefCell<Vec<Fault>>);

impl Fault {
    /// A fault without a place yet.
    pub fn new(what: impl Into<String>, why: impl Into<String>, cure: impl Into<String>) -> Self {
        Fault {
            level: Level::Fault,
            name: "fault",
            what: what.into(),
            why: why.into(),
            cure: cure.into(),
            marks: Vec::new(),
        }
    }

    /// The same, as a finding of the check named `name`.
    pub fn finding(name: &'static str, what: String, why: String, cure: String) -> Self {
        Fault { level: Level::Finding, name, ..Fault::new(what, why, cure) }
    }

    /// Adds a place.
    pub fn at(mut self, range: Range<usize>, label: impl Into<String>) -> Self {
        self.marks.push(Mark { range, label: label.into() });
        self
    }

    /// Where the main mark begins in `text`.
    pub fn place(&self, text: &str) -> Place {
        Place::of(self.marks.first().map_or(0, |mark| mark.range.start), text)
    }
}

impl Place {
    /// The place of byte `offset`.
    pub fn of(offset: usize, text: &str) -> Self {
        let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Faults {
    /// Notes one.
    pub fn add(&self, fault: Fault) {
        self.0.borrow_mut().push(fault);
    }

    /// Takes one back, because a better one says the same.
    pub fn retract(&self, fault: &Fault) {
        self.0.borrow_mut().retain(|noted| noted != fault);
    }

    /// How many have been noted.
    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// True when nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Everything found, in order of place, each once.
    pub fn into_sorted(self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = Vec::new();
        for fault in self.0.into_inner() {
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        faults.sort_by_key(|fault| fault.marks.first().map_or(0, |mark| mark.range.start));
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_not_bytes() {
        assert_eq!(Place::of(5, "a\nµb"), Place { line: 2, column: 3 });
        assert_eq!(Place::of(99, "ab"), Place { line: 1, column: 3 });
    }
}
