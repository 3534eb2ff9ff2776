//! Faults and findings as a compiler shows them: the place in the file, what, why, and the cure.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::document::{Fault, Level as Gravity};

/// Renders faults and findings of the file `name` with contents `text`.
pub fn render(faults: &[Fault], name: &str, text: &str, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let rendered: Vec<String> =
        faults.iter().map(|fault| render_one(&renderer, fault, name, text)).collect();
    let mut all = rendered.join("\n\n");
    if !all.is_empty() {
        all.push('\n');
    }
    all
}

fn render_one(renderer: &Renderer, fault: &Fault, name: &str, text: &str) -> String {
    let level = match fault.level {
        Gravity::Fault => Level::ERROR,
        Gravity::Finding => Level::WARNING,
    };
    let title = level.primary_title(&fault.what);
    let title = if fault.level == Gravity::Finding { title.id(fault.name) } else { title };
    let notes = [Level::NOTE.message(&fault.why), Level::HELP.message(&fault.cure)];
    let mut group = Group::with_title(title);
    if !fault.marks.is_empty() {
        let annotations = fault.marks.iter().enumerate().map(|(index, mark)| {
            let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let annotation = kind.span(visible(mark.range.clone(), text));
            if mark.label.is_empty() { annotation } else { annotation.label(&mark.label) }
        });
        group = group.element(Snippet::source(text).path(name).annotations(annotations));
    }
    for note in notes {
        group = group.element(note);
    }
    renderer.render(&[group])
}

/// A range within the text, of one character at least where there is one.
fn visible(range: std::ops::Range<usize>, text: &str) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    let end = text.floor_char_boundary(range.end.min(text.len())).max(start);
    if start == end {
        start..text.ceil_char_boundary((start + 1).min(text.len()))
    } else {
        start..end
    }
}
