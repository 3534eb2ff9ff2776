//! What the TOML parser has to say, as faults: one for each mistake, though the parser stumbles
//! several times over it.

use crate::document::{Fault, Faults, Place};

const DUPLICATE: &str = "duplicate key";

/// Notes the errors of the parser; false when what it could read is not worth reading on.
pub fn note(text: &str, errors: &[toml::de::Error], faults: &Faults) -> bool {
    let mut errors: Vec<(usize, &toml::de::Error)> =
        errors.iter().map(|error| (error.span().map_or(0, |span| span.start), error)).collect();
    errors.sort_by_key(|(start, _)| *start);
    let opened = never_closed(text, &errors);
    let mut told: Option<usize> = None;
    for (start, error) in &errors {
        let swallowed = opened.is_some_and(|opened| *start > opened);
        if swallowed || told.is_some_and(|before| follows(text, before, *start)) {
            continue;
        }
        told = Some(*start);
        faults.add(fault(text, error).at(error.span().unwrap_or(0..0), ""));
    }
    if let Some(opened) = opened {
        let what = "this bracket is never closed";
        let cure = if text[opened..].starts_with('[') {
            "close it with `]`"
        } else {
            "close it with \
            `}`"
        };
        let why = "all that follows is taken for its contents";
        faults.add(Fault::new(what, why, cure).at(opened..opened + 1, ""));
    }
    errors.iter().all(|(_, error)| error.message() == DUPLICATE)
}

fn fault(text: &str, error: &toml::de::Error) -> Fault {
    if error.message() == DUPLICATE {
        let key = error.span().and_then(|span| text.get(span)).unwrap_or("this");
        return Fault::new(
            format!("`{key}` stands here for the second time"),
            "each key and each table has one place in the file",
            "merge it with the first, or rename one of the two",
        );
    }
    // The parser's second half is often about its own state.
    let message = error.message();
    let message = message.trim_end_matches(", expected nothing");
    let message = message.trim_end_matches(", expected literal string");
    Fault::new(
        format!("not TOML: {message}"),
        "the file cannot be read beyond this place",
        "mend the syntax; texts and values with a unit stand in \"quotes\", tables in [brackets]",
    )
}

/// True for an error on the line of one before it, or in the table whose header had it.
fn follows(text: &str, before: usize, start: usize) -> bool {
    let line = |offset| Place::of(offset, text).line;
    let (first, last) = (line(before), line(start));
    let mut lines = text.lines().skip(first - 1);
    let header = lines.next().is_some_and(is_header);
    first == last || (header && !lines.take(last - first).any(is_header))
}

/// `[a.b]` or `[[a]]`; not the lists of strings that stand in lists.
fn is_header(line: &str) -> bool {
    let inner = line.split('#').next().unwrap_or_default().trim();
    let name = |c: char| c.is_alphanumeric() || "_-.[] ".contains(c);
    inner.starts_with('[') && inner.ends_with(']') && inner.chars().all(name)
}

/// The bracket that swallowed the tables after it: then the parser misses commas at their headers.
fn never_closed(text: &str, errors: &[(usize, &toml::de::Error)]) -> Option<usize> {
    let unclosed = |error: &toml::de::Error| error.message().starts_with("unclosed");
    let misses =
        |error: &toml::de::Error| error.message().starts_with("missing") || unclosed(error);
    let at_header =
        |start| text.lines().nth(Place::of(start, text).line - 1).is_some_and(is_header);
    let swallows =
        errors.iter().any(|(start, error)| unclosed(error) || misses(error) && at_header(*start));
    let (first, _) = errors.iter().find(|(_, error)| misses(error)).filter(|_| swallows)?;
    last_open_bracket(text.get(..*first)?)
}

fn last_open_bracket(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut quote = None;
    let mut comment = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if c == '\n' {
            (quote, comment) = (None, false);
        } else if comment || escaped {
            escaped = false;
        } else if let Some(end) = quote {
            escaped = c == '\\' && end == '"';
            quote = (c != end).then_some(end);
        } else {
            match c {
                '#' => comment = true,
                '"' | '\'' => quote = Some(c),
                '[' | '{' => open.push(at),
                ']' | '}' => drop(open.pop()),
                _ => {}
            }
        }
    }
    open.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        assert_eq!(last_open_bracket("a = [ \"]\", '{' # ]\n"), Some(4));
        assert_eq!(last_open_bracket("[a]\nb = { c = [1] }\n"), None);
    }

    #[test]
    fn a_list_of_strings_on_a_line_of_its_own_is_no_header() {
        assert!(is_header("[tier.api]  # the API") && is_header("[[trigger]]"));
        assert!(!is_header("  [\"stock\", \"price\"]"));
    }
}
