//! Bad models: each file of `bad_models/` has one fault (or as many as its name says), and the
//! marks `# <- here` stand on the lines where the reader must show them.
//!
//! What an author reads is frozen as a snapshot per file; where and how many faults there are is
//! asserted in code.

use std::path::{Path, PathBuf};

use metastable::document::Fault;
use metastable::model::{Model, overridden};
use metastable::output::diagnostic;
use proptest::prelude::*;

const SOUND: &str = include_str!("../../models/spike_metastable.toml");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/bad_models")
}

fn bad_models() -> Vec<(String, String)> {
    let files = std::fs::read_dir(folder()).expect("the folder of bad models");
    let mut models: Vec<(String, String)> = files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| {
            let name = path.file_name().expect("a file name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a readable model"))
        })
        .collect();
    models.sort();
    models
}

fn no_file(_: &str) -> Result<String, String> {
    Err("no such file".into())
}

fn faults(text: &str) -> Vec<Fault> {
    Model::parse(text, &no_file).err().unwrap_or_default()
}

/// Reads and renders; panics where a fault has no place or says nothing.
fn read(text: &str) {
    let Err(faults) = Model::parse(text, &no_file) else { return };
    assert!(!faults.is_empty(), "refused without a reason:\n{text}");
    faults.iter().for_each(|fault| assert_complete(fault, text));
    diagnostic::render(&faults, "model.toml", text, false);
}

fn assert_complete(fault: &Fault, text: &str) {
    assert!(!fault.marks.is_empty(), "no place: {fault:?}");
    for mark in &fault.marks {
        assert!(text.get(mark.range.clone()).is_some(), "outside the text: {fault:?}");
    }
    for words in [&fault.what, &fault.why, &fault.cure] {
        assert!(!words.is_empty(), "says nothing: {fault:?}");
    }
}

#[test]
fn every_bad_model_is_refused_at_its_marked_lines_and_nowhere_else() {
    let mut wrong = Vec::new();
    for (name, text) in bad_models() {
        let faults = faults(&text);
        faults.iter().for_each(|fault| assert_complete(fault, &text));
        let expected = match name.split('_').next() {
            Some("two") => 2,
            Some("five") => 5,
            _ => 1,
        };
        let marked = text.lines().zip(1..).filter(|(line, _)| line.ends_with("# <- here"));
        let marked: Vec<usize> = marked.map(|(_, number)| number).collect();
        let shown: Vec<usize> = faults.iter().map(|fault| fault.place(&text).line).collect();
        if shown != marked || shown.len() != expected {
            let page = diagnostic::render(&faults, &name, &text, false);
            wrong.push(format!("{name}: shown {shown:?}, marked {marked:?}\n{page}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_bad_model_is_explained_as_its_snapshot_says() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder().join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, text) in bad_models() {
            let page = diagnostic::render(&faults(&text), &name, &text, false);
            insta::assert_snapshot!(name.trim_end_matches(".toml"), page);
        }
    });
}

#[test]
fn a_model_cut_off_anywhere_is_read_without_panic() {
    SOUND.char_indices().for_each(|(end, _)| read(&SOUND[..end]));
}

#[test]
fn a_model_without_one_of_its_lines_is_read_without_panic() {
    let lines: Vec<&str> = SOUND.lines().collect();
    for left_out in 0..lines.len() {
        let kept = lines.iter().enumerate().filter(|(number, _)| *number != left_out);
        read(&kept.map(|(_, line)| *line).collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn a_model_without_one_of_its_characters_is_read_without_panic() {
    for (at, character) in SOUND.char_indices() {
        read(&format!("{}{}", &SOUND[..at], &SOUND[at + character.len_utf8()..]));
    }
}

#[test]
fn nesting_without_end_is_read_without_panic() {
    for (open, close) in [("[", "]"), ("{ a = ", " }")] {
        read(&format!("x = {}1{}", open.repeat(20_000), close.repeat(20_000)));
    }
    read(&format!("{}a = 1", "a.".repeat(20_000)));
    read(&format!("[{}a]\n", "a.".repeat(20_000)));
}

/// Values that have no place in most keys.
const ODD: [&str; 22] = [
    "-1",
    "0",
    "1e400",
    "1e308",
    "-0.0",
    "\"\"",
    "{}",
    "[]",
    "\"∞\"",
    "99999999999999999999",
    "nan",
    "inf",
    "\"5 parsecs\"",
    "true",
    "\"1e300/s\"",
    "\"100y\"",
    "\"0s\"",
    "\"99999999d\"",
    "\"200%\"",
    "1979-05-27",
    "[[1]]",
    "{ a = { b = 1 } }",
];

fn models() -> Vec<String> {
    let mut all: Vec<String> = bad_models().into_iter().map(|(_, text)| text).collect();
    all.extend((0..40).map(|_| SOUND.to_owned()));
    all
}

/// Byte ranges of words, numbers, strings and signs.
fn tokens(text: &str) -> Vec<std::ops::Range<usize>> {
    let kind = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => 0,
        _ if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut tokens: Vec<std::ops::Range<usize>> = Vec::new();
    let mut previous = None;
    for (at, c) in text.char_indices() {
        let here = kind(c);
        match tokens.last_mut() {
            Some(last) if previous == Some(here) && here != 2 => last.end = at + c.len_utf8(),
            _ => tokens.push(at..at + c.len_utf8()),
        }
        previous = Some(here);
    }
    tokens
}

fn swapped(text: &str, one: usize, other: usize) -> String {
    let tokens = tokens(text);
    if tokens.is_empty() {
        return String::new();
    }
    let (one, other) = (one % tokens.len(), other % tokens.len());
    let order = (0..tokens.len()).map(|index| match index {
        _ if index == one => other,
        _ if index == other => one,
        _ => index,
    });
    order.map(|index| &text[tokens[index].clone()]).collect()
}

/// The text with the value of some `key = value` replaced; often still TOML, so that it reaches the
/// reader.
fn revalued(text: &str, which: usize, value: &str) -> String {
    let signs: Vec<usize> = text.match_indices("= ").map(|(at, _)| at + 2).collect();
    if signs.is_empty() {
        return text.to_owned();
    }
    let start = signs[which % signs.len()];
    let rest = &text[start..];
    let end = rest.find([',', '}', '\n', '#']).unwrap_or(rest.len());
    format!("{}{value} {}", &text[..start], &rest[end..])
}

/// Failures are reported, not written into the repository.
fn many() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) }
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn a_model_with_odd_values_is_read_without_panic(
        model in prop::sample::select(models()),
        changes in prop::collection::vec((any::<usize>(), prop::sample::select(&ODD[..])), 1..4),
    ) {
        let change = |text: String, (which, value): &(usize, &str)| revalued(&text, *which, value);
        let text = changes.iter().fold(model, change);
        read(&text);
    }

    #[test]
    fn a_model_with_exchanged_words_is_read_without_panic(
        model in prop::sample::select(models()),
        swaps in prop::collection::vec(any::<(usize, usize)>(), 1..4),
    ) {
        let text = swaps.iter().fold(model, |text, (one, other)| swapped(&text, *one, *other));
        read(&text);
    }

    #[test]
    fn a_setting_is_written_or_refused_without_panic(
        words in prop::collection::vec(any::<usize>(), 1..5),
        value in prop::sample::select(&ODD[..]),
    ) {
        const PARTS: [&str; 14] = [
            "tier", "client", "api", "call", "calls", "trigger", "run", "queue", "0", "1", "99", "",
            "expect", "fifo",
        ];
        let path: Vec<&str> = words.iter().map(|word| PARTS[word % PARTS.len()]).collect();
        if let Ok(text) = overridden(SOUND, &[format!("{}={value}", path.join("."))]) {
            read(&text);
        }
    }
}
