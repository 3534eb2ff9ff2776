//! Numbers with their unit written out: "250ms", "1200/s", "10%".

use crate::kernel::Span;

/// Units of time and their length (ns); longer names first, so that "ms" is not read as "m".
const TIME_UNITS: [(&str, f64); 9] = [
    ("min", 60e9),
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];

/// Why a text is no measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misread {
    /// It has not the form of one.
    Unreadable,
    /// It is one, beyond the most that makes sense, which is given.
    TooLarge(&'static str),
}

/// A length of time: one or more of number and unit ("1h30m"), at most 100 years.
pub fn duration(text: &str) -> Result<Span, Misread> {
    const LONGEST: f64 = 100.0 * 365.25 * 86_400e9;
    let nanos = nanos(text).ok_or(Misread::Unreadable)?;
    if nanos > LONGEST {
        return Err(Misread::TooLarge("100 years"));
    }
    Ok(Span::from_nanos_f64(nanos))
}

fn nanos(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut nanos = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = number(rest)?;
        let (unit, size) = TIME_UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        nanos += number * size;
        rest = after[unit.len()..].trim_start();
    }
    Some(nanos)
}

/// A rate [1/s]: a number, a slash, a unit of time.
pub fn rate(text: &str) -> Result<f64, Misread> {
    let read = || {
        let (number, unit) = text.split_once('/')?;
        let (_, size) = TIME_UNITS.iter().find(|(name, _)| *name == unit.trim())?;
        Some(positive(number)? * 1e9 / size)
    };
    match read().ok_or(Misread::Unreadable)? {
        rate if rate <= 1e9 => Ok(rate),
        _ => Err(Misread::TooLarge("1e9/s, one for each nanosecond of the clock")),
    }
}

/// A share: a number and a per-cent sign.
pub fn share(text: &str) -> Result<f64, Misread> {
    let number = text.trim().strip_suffix('%').and_then(positive).ok_or(Misread::Unreadable)?;
    if number > 1e9 {
        return Err(Misread::TooLarge("1e9%"));
    }
    Ok(number / 100.0)
}

/// A number of at least zero; "inf" and "nan" are none.
fn positive(text: &str) -> Option<f64> {
    let number = text.trim().replace('_', "").parse::<f64>().ok()?;
    (number >= 0.0 && number.is_finite()).then_some(number)
}

/// A share as a model file writes it.
pub fn share_text(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A rate as people read it: thousands apart, no more digits than it deserves.
pub fn rate_text(per_second: f64) -> String {
    let digits = match per_second.abs() {
        r if r >= 100.0 || r == r.round() => 0,
        r if r >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{per_second:.digits$}");
    let (whole, fraction) = text.split_once('.').map_or((&text[..], None), |(w, f)| (w, Some(f)));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        if index > 0 && left.is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{grouped}.{fraction}/s"),
        None => format!("{grouped}/s"),
    }
}

/// What to write instead of `text`, when its unit was the trouble.
pub fn advice(text: &str, units: &[&str]) -> String {
    match number(text.trim()) {
        // A bare share is more often meant as a fraction of one.
        Some((number, "")) if units == ["%"] && number <= 1.0 => {
            format!("write \"{}\" or, if you mean so little, \"{number}%\"", share_text(number))
        }
        Some((_, rest)) => {
            let number = text.trim().strip_suffix(rest).unwrap_or_default().trim_end();
            let options: Vec<String> =
                units.iter().map(|unit| format!("\"{number}{unit}\"")).collect();
            format!("write {}", options.join(" or "))
        }
        None if text.trim().starts_with('-') => "give a value of at least zero".into(),
        None => format!("begin with a number, for example \"10{}\"", units[0]),
    }
}

fn number(text: &str) -> Option<(f64, &str)> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_every_unit() {
        for (text, nanos) in [
            ("5ns", 5),
            ("2us", 2_000),
            ("250ms", 250_000_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1d", 86_400_000_000_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Span::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_not_read_as_one() {
        for text in ["", "5", "ms", "5 parsecs", "-1s", "1s2", "1e999s"] {
            assert_eq!(duration(text), Err(Misread::Unreadable), "{text}");
        }
        assert!(matches!(duration("200000d"), Err(Misread::TooLarge(_))));
    }

    #[test]
    fn rates_and_shares_are_read() {
        assert_eq!(rate("6000/s"), Ok(6000.0));
        assert_eq!(rate("90/m"), Ok(1.5));
        assert_eq!(rate("6000"), Err(Misread::Unreadable));
        assert!(matches!(rate("1e300/ns"), Err(Misread::TooLarge(_))));
        assert_eq!(share("10%"), Ok(0.1));
        assert_eq!(share("0.1"), Err(Misread::Unreadable));
        assert_eq!(share_text(0.125), "12.5%");
        assert_eq!(rate_text(18_000.4), "18,000/s");
    }
}
