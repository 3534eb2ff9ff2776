//! The phases of a run: before, during and after the triggers, its end, and the whole.

use std::ops::Range;

use crate::kernel::{Span, Time};
use crate::measure::Record;
use crate::model::Model;

/// A named part of a run, in whole windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// `before`, `during`, `after`, `end` or `whole`.
    pub name: &'static str,
    /// Its windows.
    pub windows: Range<usize>,
    /// First instant.
    pub from: Time,
    /// First instant after it.
    pub to: Time,
}

/// The phases that have at least one whole window. `end` is the last minute, or the last tenth of a
/// shorter run.
pub fn phases(model: &Model, record: &Record) -> Vec<Phase> {
    let (Some(first), Some(last)) = (record.windows.first(), record.windows.last()) else {
        return Vec::new();
    };
    let (start, end) = (first.from, last.to);
    let tenth = Span::from_nanos(end.since(start).nanos() / 10);
    let tail = Span::from_secs(60).min(tenth).max(last.to.since(last.from));
    let tail = Time::ZERO + (end.since(Time::ZERO) - tail);
    let mut spans = Vec::new();
    if let Some((begins, ends)) = model.trigger_span() {
        spans.extend([("before", start, begins), ("during", begins, ends), ("after", ends, end)]);
    }
    spans.extend([("end", tail, end), ("whole", start, end)]);
    spans
        .into_iter()
        .filter_map(|(name, from, to)| {
            let windows = record.windows_between(from, to);
            let (first, last) = (
                record.windows.get(windows.start)?,
                windows.end.checked_sub(1).map(|i| record.windows[i])?,
            );
            (!windows.is_empty()).then_some(Phase { name, windows, from: first.from, to: last.to })
        })
        .collect()
}

/// The windows in which anything happens after the triggers: those of the phase `after`, and the
/// one in which the last trigger ends; all of them without a trigger.
pub fn aftermath(model: &Model, record: &Record) -> Range<usize> {
    let end = model.trigger_span().map_or(Time::ZERO, |(_, end)| end);
    record.windows.partition_point(|window| window.to <= end)..record.windows.len()
}

impl Phase {
    /// Its length (s).
    pub fn seconds(&self) -> f64 {
        self.to.since(self.from).seconds()
    }

    /// The phase that the run is about: after the trigger, or the whole where there is none.
    pub fn main(phases: &[Phase]) -> Option<&Phase> {
        phases
            .iter()
            .find(|phase| phase.name == "after")
            .or_else(|| phases.iter().find(|p| p.name == "whole"))
    }
}
