//! The model file as text with positions: tables and values that know where they stand, and every
//! fault at once.
//!
//! Reading goes on after a fault: a [`Value`] that cannot be read notes it in [`Faults`] and gives
//! `None`, so that one pass finds them all. Why not serde: it stops at the first fault, and its
//! message for a whole table has no column. Keys that nobody asked for are faults too
//! ([`Section::finish`]), with the nearest known key as the cure.

mod fault;
mod law;
mod names;
mod unit;

use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::kernel::{Span, Time};

pub use fault::{Fault, Faults, Level, Mark, Place};
pub use names::{EdgeId, Names, TierId, by_edge, by_tier, list_of};
use unit::Misread;
pub use unit::{rate_text, share_text};

/// A table of the file.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    path: String,
    place: Range<usize>,
    entries: &'a DeTable<'a>,
    asked: RefCell<Vec<&'static str>>,
    taken: RefCell<Vec<&'a str>>,
    missing: RefCell<Vec<(&'static str, Fault)>>,
    faults: &'a Faults,
}

/// A value of the file.
#[derive(Clone, Debug)]
pub struct Value<'a> {
    path: String,
    key: &'a str,
    key_place: Range<usize>,
    place: Range<usize>,
    node: &'a DeValue<'a>,
    faults: &'a Faults,
}

impl<'a> Section<'a> {
    /// The whole document. Syntax errors become faults; what could be read is still read.
    pub fn root(table: &'a DeTable<'a>, faults: &'a Faults) -> Self {
        Section::new(String::new(), 0..0, table, faults)
    }

    fn new(
        path: String,
        place: Range<usize>,
        entries: &'a DeTable<'a>,
        faults: &'a Faults,
    ) -> Self {
        Section {
            path,
            place,
            entries,
            asked: RefCell::default(),
            taken: RefCell::default(),
            missing: RefCell::default(),
            faults,
        }
    }

    /// Where the table stands, for faults that concern it as a whole.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// The dotted path of the table.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of `key`, if it is there.
    pub fn get(&self, key: &'static str) -> Option<Value<'a>> {
        self.asked.borrow_mut().push(key);
        let (name, node) = self.entries.iter().find(|(name, _)| name.get_ref() == key)?;
        self.taken.borrow_mut().push(name.get_ref());
        Some(self.value(name, node))
    }

    /// The value of `key`; its absence is a fault with `cure`.
    pub fn require(&self, key: &'static str, cure: &str) -> Option<Value<'a>> {
        let value = self.get(key);
        if value.is_none() {
            let what = format!("`{key}` is missing in {}", self.title());
            let fault = Fault::new(what, "the model cannot run without it", cure);
            let fault = fault.at(self.place(), "here");
            self.missing.borrow_mut().push((key, fault.clone()));
            self.faults.add(fault);
        }
        value
    }

    /// Every entry, for tables whose keys are names that the author chose.
    pub fn entries(&self) -> Vec<Value<'a>> {
        let entries = self.entries.iter();
        entries
            .map(|(name, node)| {
                self.taken.borrow_mut().push(name.get_ref());
                self.value(name, node)
            })
            .collect()
    }

    /// Makes every key that nobody asked for a fault; true when there is none.
    ///
    /// A mistyped key that is missed elsewhere is one mistake: its absence is not told as well.
    pub fn finish(&self) -> bool {
        let mut all_known = true;
        let asked = self.asked.borrow();
        for (name, _) in self.entries {
            if self.taken.borrow().contains(&name.get_ref().as_ref()) {
                continue;
            }
            all_known = false;
            let what = format!("`{}` is not a key of {}", name.get_ref(), self.title());
            if let Some(meant) = likely(name.get_ref(), asked.iter().copied()) {
                let missing = self.missing.borrow();
                let missed = missing.iter().filter(|(key, _)| *key == meant);
                missed.for_each(|(_, fault)| self.faults.retract(fault));
            }
            let cure = nearest(name.get_ref(), asked.iter().copied());
            self.faults.add(
                Fault::new(
                    what,
                    "an unknown key would be ignored in silence, so it is refused",
                    cure,
                )
                .at(name.span(), "unknown key"),
            );
        }
        all_known
    }

    /// Notes a fault of the table as a whole.
    pub fn fault(&self, what: &str, why: &str, cure: &str) {
        self.faults.add(Fault::new(what, why, cure).at(self.place(), "here"));
    }

    fn title(&self) -> String {
        if self.path.is_empty() { "the model".into() } else { format!("`{}`", self.path) }
    }

    fn value(
        &self,
        name: &'a Spanned<toml::de::DeString<'a>>,
        node: &'a Spanned<DeValue<'a>>,
    ) -> Value<'a> {
        let key = name.get_ref().as_ref();
        let path = if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) };
        Value::new(path, key, name.span(), node, self.faults)
    }
}

impl<'a> Value<'a> {
    fn new(
        path: String,
        key: &'a str,
        key_place: Range<usize>,
        node: &'a Spanned<DeValue<'a>>,
        faults: &'a Faults,
    ) -> Self {
        // A table made by dotted keys has no place of its own: its key must do.
        let place = match node.get_ref() {
            DeValue::Table(_) => key_place.clone(),
            _ => node.span(),
        };
        Value { path, key, key_place, place, node: node.get_ref(), faults }
    }

    /// Where the value stands.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Where its key stands.
    pub fn key_place(&self) -> Range<usize> {
        self.key_place.clone()
    }

    /// The last part of its path.
    pub fn key(&self) -> &'a str {
        self.key
    }

    /// Its dotted path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// True for a string.
    pub fn is_text(&self) -> bool {
        matches!(self.node, DeValue::String(_))
    }

    /// True for a table.
    pub fn is_section(&self) -> bool {
        matches!(self.node, DeValue::Table(_))
    }

    /// True for a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node, DeValue::Array(_))
    }

    /// True for a bare number.
    pub fn is_number(&self) -> bool {
        matches!(self.node, DeValue::Integer(_) | DeValue::Float(_))
    }

    /// The value that `path` leads to from here, or the nearest above it: a place for a fault.
    pub fn below(&self, path: &[&str]) -> Value<'a> {
        let DeValue::Table(table) = self.node else { return self.clone() };
        let Some((first, rest)) = path.split_first() else { return self.clone() };
        let entry = table.iter().find(|(name, _)| name.get_ref() == first);
        entry.map_or(self.clone(), |(name, node)| {
            let path = format!("{}.{first}", self.path);
            Value::new(path, name.get_ref(), name.span(), node, self.faults).below(rest)
        })
    }

    /// The entry of a table, or of a list of names, that names `name`: a place for a fault.
    pub fn entry(&self, name: &str) -> Value<'a> {
        let DeValue::Array(items) = self.node else { return self.below(&[name]) };
        let item = items.iter().find(|item| item.get_ref().as_str() == Some(name));
        item.map_or(self.clone(), |item| {
            Value::new(self.path.clone(), self.key, item.span(), item, self.faults)
        })
    }

    /// Notes a fault of this value.
    pub fn fault(&self, what: &str, why: &str, cure: &str) {
        self.faults.add(Fault::new(what, why, cure).at(self.place(), ""));
    }

    /// Notes a fault of the key itself.
    pub fn key_fault(&self, what: &str, why: &str, cure: &str) {
        self.faults.add(Fault::new(what, why, cure).at(self.key_place(), ""));
    }

    /// Notes a fault of a name that is either the key or the value.
    pub fn name_fault(&self, name: &str, what: &str, why: &str, cure: &str) {
        let place = if self.key == name { self.key_place() } else { self.place() };
        self.faults.add(Fault::new(what, why, cure).at(place, ""));
    }

    /// Notes that the value is of the wrong kind.
    pub fn mistaken(&self, wanted: &str, cure: &str) {
        let what = format!("`{}` must be {wanted}, not {}", self.path, kind(self.node));
        self.fault(&what, "a value of another kind has no meaning here", cure);
    }

    /// The table.
    pub fn section(&self) -> Option<Section<'a>> {
        match self.node {
            DeValue::Table(table) => {
                Some(Section::new(self.path.clone(), self.place(), table, self.faults))
            }
            _ => {
                self.mistaken("a table", &format!("write {} = {{ … }}", self.key));
                None
            }
        }
    }

    /// The list.
    pub fn list(&self) -> Option<Vec<Value<'a>>> {
        let DeValue::Array(items) = self.node else {
            let cure = match self.node {
                DeValue::String(text) => format!("write {} = [{}]", self.key, quoted(text)),
                DeValue::Table(_) => format!("write [[{}]]: each is one of a list", self.path),
                _ => format!("write {} = [ … ]", self.key),
            };
            self.mistaken("a list", &cure);
            return None;
        };
        let name = |index: usize| format!("{}[{index}]", self.path);
        let items = items.iter().enumerate();
        Some(
            items
                .map(|(i, item)| Value::new(name(i), self.key, item.span(), item, self.faults))
                .collect(),
        )
    }

    /// The string.
    pub fn text(&self) -> Option<&'a str> {
        match self.node {
            DeValue::String(text) => Some(text.as_ref()),
            _ => {
                self.mistaken("a string", &format!("write {} = \"…\"", self.key));
                None
            }
        }
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Option<bool> {
        match self.node {
            DeValue::Boolean(flag) => Some(*flag),
            _ => {
                self.mistaken("true or false", &format!("write {} = true", self.key));
                None
            }
        }
    }

    /// A whole number of at least `least` and at most `most`.
    pub fn whole(&self, least: u64, most: u64) -> Option<u64> {
        let DeValue::Integer(text) = self.node else {
            let given = bare(self.node).replace('_', "").parse::<f64>().unwrap_or(2.0);
            let near = (given as u64).clamp(least, most);
            self.mistaken("a whole number", &format!("write for example {} = {near}", self.key));
            return None;
        };
        let digits = text.as_str().replace('_', "");
        let number = i128::from_str_radix(&digits, text.radix()).ok();
        let number = number.and_then(|n| u64::try_from(n).ok());
        self.kept(
            number.filter(|n| (least..=most).contains(n)),
            &format!(
                "from {least} to \
        {most}"
            ),
        )
    }

    /// A number without unit, as a factor has it; greater than `above` and at most `most`.
    pub fn number_above(&self, above: f64, most: f64) -> Option<f64> {
        let number = self.number()?;
        let sound = number > above && number <= most;
        self.kept(sound.then_some(number), &format!("above {above} and at most {most}"))
    }

    /// A number without unit, of at least `least` and at most `most`.
    pub fn number_from(&self, least: f64, most: f64) -> Option<f64> {
        let number = self.number()?;
        let sound = (least..=most).contains(&number);
        self.kept(sound.then_some(number), &format!("from {least} to {most}"))
    }

    /// Any number without unit.
    pub fn number(&self) -> Option<f64> {
        let digits = bare(self.node).replace('_', "");
        let number: Option<f64> = match self.node {
            DeValue::Integer(text) => {
                i128::from_str_radix(&digits, text.radix()).ok().map(|n| n as f64)
            }
            DeValue::Float(_) => digits.parse().ok(),
            _ => {
                self.mistaken("a number", &format!("write {} = 2.0", self.key));
                return None;
            }
        };
        let number = number.filter(|n| n.is_finite());
        if number.is_none() {
            let what = format!("`{}` is not a finite number", self.path);
            self.fault(&what, "nothing can be reckoned with it", "give a number such as 2.0");
        }
        number
    }

    /// Makes a number that was out of `bounds` a fault.
    fn kept<T>(&self, number: Option<T>, bounds: &str) -> Option<T> {
        if number.is_none() {
            let what = format!("`{}` = {} is out of range", self.path, bare(self.node));
            let why = format!("it must be a number {bounds}");
            self.fault(&what, &why, "choose a value inside");
        }
        number
    }

    /// A length of time such as "250ms".
    pub fn duration(&self) -> Option<Span> {
        self.measured(unit::duration, "a length of time such as \"250ms\"", &["s", "ms"])
    }

    /// A length of time greater than zero.
    pub fn positive_duration(&self) -> Option<Span> {
        let span = self.duration()?;
        if span == Span::ZERO {
            let what = format!("`{}` must be longer than zero", self.path);
            self.fault(
                &what,
                "zero would end it before it begins",
                "give a length such as \"100ms\"",
            );
            return None;
        }
        Some(span)
    }

    /// An instant, as time since the start of the run.
    pub fn instant(&self) -> Option<Time> {
        self.duration().map(|span| Time::ZERO + span)
    }

    /// A rate [1/s] such as "1200/s" or "90/m".
    pub fn rate(&self) -> Option<f64> {
        self.measured(unit::rate, "a rate such as \"1200/s\"", &["/s"])
    }

    /// A rate greater than zero [1/s].
    pub fn positive_rate(&self) -> Option<f64> {
        let rate = self.rate()?;
        if rate <= 0.0 {
            let what = format!("`{}` must be greater than zero", self.path);
            self.fault(
                &what,
                "at this rate nothing ever happens",
                "give a rate such as \
            \"100/s\"",
            );
            return None;
        }
        Some(rate)
    }

    /// A share in [0, 1], written "10%".
    pub fn share(&self) -> Option<f64> {
        let share = self.measured(unit::share, "a share such as \"10%\"", &["%"])?;
        if !(0.0..=1.0).contains(&share) {
            let what = format!("`{}` = {} is out of range", self.path, share_text(share));
            self.fault(&what, "it is a share of a whole", "choose one from 0% to 100%");
            return None;
        }
        Some(share)
    }

    /// A share of at least 0 %, where more than the whole has a meaning ("110%").
    pub fn percentage(&self) -> Option<f64> {
        self.measured(unit::share, "a share such as \"10%\"", &["%"])
    }

    /// One of a few words.
    pub fn word<T: Copy>(&self, choices: &[(&'static str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, meaning)) = choices.iter().find(|(word, _)| *word == text) {
            return Some(*meaning);
        }
        let what = format!("`{}` cannot be {}", self.path, quoted(text));
        let words: Vec<&'static str> = choices.iter().map(|c| c.0).collect();
        let why = format!("it is one of {}", listing(&words));
        let cure = likely(text, words.iter().copied());
        let cure = cure.map_or("write one of these".to_owned(), |w| {
            format!(
                "did you mean \
        `{w}`?"
            )
        });
        self.fault(&what, &why, &cure);
        None
    }

    /// A choice with contents: `key.NAME = …`, or `key = "NAME"` where the name says all. Gives the
    /// name and, where there are contents, the value.
    pub fn choice(&self, names: &[&'static str]) -> Option<(&'static str, Option<Value<'a>>)> {
        let (given, contents) = if self.is_text() {
            (self.text()?, None)
        } else {
            let entries = match self.node {
                DeValue::Table(_) => self.section()?.entries(),
                _ => Vec::new(),
            };
            let [only] = &entries[..] else {
                let what = format!("`{}` must name exactly one of {}", self.path, listing(names));
                let why = match self.node {
                    DeValue::Table(_) => format!("it has {} of them", entries.len()),
                    _ => format!("it is {}", kind(self.node)),
                };
                self.fault(&what, &why, &format!("write {}.{} = …", self.key, names[0]));
                return None;
            };
            (only.key, Some(only.clone()))
        };
        let Some(name) = names.iter().find(|name| **name == given) else {
            let what = format!("`{}` knows no {}", self.path, quoted(given));
            let why = format!("it is one of {}", listing(names));
            let cure = match likely(given, names.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None if contents.is_some() => {
                    format!(
                        "put it into one of these: {}.{} = {{ {given} = … }}",
                        self.key, names[0]
                    )
                }
                None if given.starts_with(|c: char| c.is_ascii_digit()) => {
                    format!("write {}.{} = {}", self.key, names[0], quoted(given))
                }
                None => "write one of these".to_owned(),
            };
            let place = contents.as_ref().map_or(self.place(), Value::key_place);
            self.faults.add(Fault::new(what, why, cure).at(place, ""));
            return None;
        };
        Some((name, contents))
    }

    fn measured<T>(
        &self,
        parse: fn(&str) -> Result<T, Misread>,
        wanted: &str,
        units: &[&str],
    ) -> Option<T> {
        if let DeValue::Integer(_) | DeValue::Float(_) = self.node {
            let number = bare(self.node);
            let what = format!("`{}` = {number} has no unit", self.path);
            let why = format!("it is {wanted}; a bare number leaves the unit to guessing");
            self.fault(&what, &why, &unit::advice(&number, units));
            return None;
        }
        let DeValue::String(text) = self.node else {
            self.mistaken(wanted, &format!("write it as {wanted}"));
            return None;
        };
        match parse(text) {
            Ok(parsed) => return Some(parsed),
            Err(Misread::TooLarge(most)) => {
                let what = format!("`{}` = {} is out of range", self.path, quoted(text));
                self.fault(&what, &format!("the most is {most}"), "choose a smaller value");
            }
            Err(Misread::Unreadable) => {
                let what = format!("`{}` = {} cannot be read", self.path, quoted(text));
                self.fault(&what, &format!("it must be {wanted}"), &unit::advice(text, units));
            }
        }
        None
    }
}

/// A text of the file inside a sentence: on one line, and not longer than one can read.
fn quoted(text: &str) -> String {
    const LONGEST: usize = 40;
    let cut = text.chars().count() > LONGEST;
    let start: String = text.chars().take(LONGEST).collect();
    format!("{:?}", if cut { format!("{start}…") } else { start })
}

fn bare(node: &DeValue<'_>) -> String {
    match node {
        DeValue::Integer(text) => text.as_str().to_owned(),
        DeValue::Float(text) => text.as_str().to_owned(),
        _ => String::new(),
    }
}

fn kind(node: &DeValue<'_>) -> &'static str {
    match node {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The cure for a mistyped word: the nearest known one, or all of them.
pub fn nearest<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    match likely(given, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "remove it".into(),
        None => format!("known here: {}", listing(&known)),
    }
}

/// The known word that `given` was meant to be, where that is plain to see.
fn likely<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let likeness = known.map(|name| (strsim::jaro_winkler(given, name), name));
    let (best, name) = likeness.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best >= 0.7).then_some(name)
}

/// "a, b or c".
pub fn listing<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [] => "nothing".into(),
        [one] => format!("`{one}`"),
        [first @ .., last] => format!("`{}` or `{last}`", first.join("`, `")),
    }
}
