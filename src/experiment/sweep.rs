//! The points of a sweep: settings that take several values, and all combinations of them.

use crate::model::Model;

/// A setting and the values that it takes: `PATH=V1,V2,V3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varied {
    /// Dotted path of the setting.
    pub path: String,
    /// Its values, as a model file or `--set` writes them.
    pub values: Vec<String>,
}

/// One point of a sweep: a value of each varied setting.
pub type Point = Vec<String>;

/// Models that differ by some settings.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The settings.
    pub varied: Vec<Varied>,
    /// Their values, point by point.
    pub points: Vec<Point>,
    /// The model of each point.
    pub models: Vec<Model>,
}

impl From<Model> for Grid {
    /// One point at which nothing is varied.
    fn from(model: Model) -> Self {
        Grid { varied: Vec::new(), points: vec![Point::new()], models: vec![model] }
    }
}

impl Varied {
    /// Reads `PATH=V1,V2,V3`. Commas within brackets, braces and quotes belong to a value.
    ///
    /// # Errors
    /// A sentence that says what is wrong, and the cure.
    pub fn parse(text: &str) -> Result<Varied, String> {
        let example = "write PATH=V1,V2, such as tier.api.call.db.attempts=1,2,3";
        let (path, list) = text
            .split_once('=')
            .filter(|(path, _)| !path.trim().is_empty())
            .ok_or_else(|| format!("`{text}` names no setting; {example}"))?;
        let values = split(list).ok_or_else(|| {
            format!("a bracket or a quote in `{text}` is never closed, or was never opened")
        })?;
        if values.iter().any(String::is_empty) {
            return Err(format!("`{text}` has an empty value; {example}"));
        }
        Ok(Varied { path: path.trim().to_owned(), values })
    }
}

/// Every combination of the values, those of the last setting varying fastest.
pub fn combinations(all: &[Varied]) -> Vec<Point> {
    all.iter().fold(vec![Point::new()], |points, varied| {
        let longer = |point: &Point| {
            let point = point.clone();
            varied
                .values
                .iter()
                .map(move |value| [&point[..], std::slice::from_ref(value)].concat())
        };
        points.iter().flat_map(longer).collect()
    })
}

/// The parts between the commas that stand in no bracket and no quote; `None` when these do not
/// match.
fn split(list: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut closers = Vec::new();
    let mut quote = None;
    let mut letters = list.chars();
    while let Some(letter) = letters.next() {
        if letter == ',' && quote.is_none() && closers.is_empty() {
            parts.push(String::new());
            continue;
        }
        let part = parts.last_mut().expect("there is always a part");
        part.push(letter);
        match (quote, letter) {
            // Of the two quotes of TOML only this one knows escapes.
            (Some('"'), '\\') => part.extend(letters.next()),
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[') => closers.push(']'),
            (None, '{') => closers.push('}'),
            (None, ']' | '}') if closers.pop() != Some(letter) => return None,
            _ => {}
        }
    }
    let whole = quote.is_none() && closers.is_empty();
    whole.then(|| parts.iter().map(|part| part.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(list: &str) -> Vec<String> {
        Varied::parse(&format!("a.b={list}")).unwrap().values
    }

    #[test]
    fn values_are_split_at_commas_outside_of_brackets_and_quotes() {
        assert_eq!(values("1, 2,3"), ["1", "2", "3"]);
        assert_eq!(values("[1, 2], [3]"), ["[1, 2]", "[3]"]);
        assert_eq!(
            values("{ p50 = \"8ms\", p99 = \"1s\" },5ms"),
            ["{ p50 = \"8ms\", p99 = \"1s\" }", "5ms"]
        );
        assert_eq!(values(r#""a,\"b", 'c,\',d"#), [r#""a,\"b""#, r"'c,\'", "d"]);
    }

    #[test]
    fn what_is_no_list_of_values_is_refused_with_a_cure() {
        for (text, said) in [
            ("nonsense", "names no setting"),
            ("=1,2", "names no setting"),
            ("a.b=1,,2", "has an empty value"),
            ("a.b=", "has an empty value"),
            ("a.b=[1,2", "never closed"),
            ("a.b=1]", "never opened"),
            ("a.b=[1}", "never closed"),
            ("a.b=\"1,2", "never closed"),
        ] {
            let sentence = Varied::parse(text).unwrap_err();
            assert!(sentence.contains(said), "{text}: {sentence}");
        }
    }

    #[test]
    fn there_is_every_combination_and_the_last_setting_varies_fastest() {
        let all = ["a=1,2", "b=x,y"].map(|text| Varied::parse(text).unwrap());
        let points = combinations(&all);
        assert_eq!(points, [["1", "x"], ["1", "y"], ["2", "x"], ["2", "y"]]);
    }
}
