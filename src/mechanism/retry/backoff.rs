//! How long a caller waits before it tries again.
//!
//! Waits grow with n, the number of attempts made so far (1 after the first failure):
//! fixed d; linear d·n; exponential d·fⁿ⁻¹; each at most `cap`. Jitter then spreads the wait w:
//! full U[0, w); equal w/2 + U[0, w/2); spread w·(1 ± x); additive w·(1 + U[0, x)).
//! Decorrelated: min(cap, U[base, 3·previous)), previous starting at `base`.
//!
//! Source: M. Brooker, *Exponential Backoff and Jitter*, AWS Architecture Blog (2015), for full,
//! equal, decorrelated.

use crate::document::Value;
use crate::kernel::Span;

/// The growth of waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Backoff {
    /// No wait.
    Immediate,
    /// Always the same.
    Fixed {
        /// The wait.
        wait: Span,
        /// Its spread.
        jitter: Jitter,
    },
    /// The same more each time.
    Linear {
        /// First wait, and growth.
        base: Span,
        /// Longest wait.
        cap: Span,
        /// Its spread.
        jitter: Jitter,
    },
    /// A multiple each time.
    Exponential {
        /// First wait.
        base: Span,
        /// Growth, at least 1.
        factor: f64,
        /// Longest wait, before jitter.
        cap: Span,
        /// Its spread.
        jitter: Jitter,
    },
    /// Uniform between the base and three times the wait before.
    Decorrelated {
        /// Shortest wait.
        base: Span,
        /// Longest wait.
        cap: Span,
    },
}

/// How a wait w is spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// Not at all.
    None,
    /// U[0, w).
    Full,
    /// w/2 + U[0, w/2).
    Equal,
    /// w · (1 + x·U[−1, 1)).
    Spread(f64),
    /// w · (1 + x·U[0, 1)).
    Additive(f64),
}

impl Backoff {
    /// The wait after `made` attempts; `previous` is the one before, `draw` gives a number uniform
    /// in [0, 1).
    #[inline(always)]
    pub(super) fn wait(&self, made: u32, previous: Span, draw: impl Fn() -> f64) -> Span {
        match self {
            // The most frequent one in a storm, without a call.
            Backoff::Immediate => Span::ZERO,
            _ => self.delay(made, previous, draw),
        }
    }

    #[inline(never)]
    fn delay(&self, made: u32, previous: Span, draw: impl Fn() -> f64) -> Span {
        match *self {
            Backoff::Immediate => Span::ZERO,
            Backoff::Fixed { wait, jitter } => jitter.spread(wait, draw),
            Backoff::Linear { base, cap, jitter } => {
                jitter.spread(base.scaled(f64::from(made)).min(cap), draw)
            }
            Backoff::Exponential { base, factor, cap, jitter } => {
                // By far the most frequent powers; `pow` gives the same bits for them.
                let growth = match made {
                    1 => 1.0,
                    2 => factor,
                    _ => libm::pow(factor, f64::from(made - 1)),
                };
                jitter.spread(base.scaled(growth).min(cap), draw)
            }
            Backoff::Decorrelated { base, cap } => {
                let range = previous.max(base).scaled(3.0) - base;
                (base + range.scaled(draw())).min(cap)
            }
        }
    }

    /// Reads `backoff.…`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let names = ["fixed", "immediate", "linear", "exponential", "decorrelated"];
        let (name, contents) = value.choice(&names)?;
        let Some(contents) = contents else {
            if name == "immediate" {
                return Some(Backoff::Immediate);
            }
            value.fault(
                &format!("`{}` = \"{name}\" lacks its waits", value.path()),
                "the rule needs at least a first wait",
                &format!(
                    "write backoff.{name} = {{ base = \"100ms\", cap = \"2s\", jitter = \"full\" \
                    }}"
                ),
            );
            return None;
        };
        if name == "fixed" && (contents.is_text() || contents.is_number()) {
            return Some(Backoff::Fixed {
                wait: contents.positive_duration()?,
                jitter: Jitter::None,
            });
        }
        Self::read_table(name, &contents)
    }

    fn read_table(name: &str, contents: &Value<'_>) -> Option<Self> {
        let section = contents.section()?;
        let first = if name == "fixed" { "wait" } else { "base" };
        if name == "immediate" {
            section.finish();
            return Some(Backoff::Immediate);
        }
        let base = section
            .require(first, &format!("add {first} = \"100ms\""))
            .and_then(|v| v.positive_duration());
        let cap = match section.get("cap") {
            _ if name == "fixed" => Some(Span::MAX),
            Some(value) => {
                value.positive_duration().map(|cap| (cap, value)).and_then(|(cap, value)| {
                    let sound = base.is_none_or(|base| cap >= base);
                    if !sound {
                        let what = format!("`{}` = \"{cap}\" lies below the base", value.path());
                        value.fault(
                            &what,
                            "every wait would be the cap, the first included",
                            "raise the cap or lower the base",
                        );
                    }
                    sound.then_some(cap)
                })
            }
            None => Some(Span::MAX),
        };
        let factor = match section.get("factor") {
            Some(value) if name == "exponential" => factor(&value),
            Some(value) => {
                value.key_fault(
                    "only exponential back-off has a `factor`",
                    "the others grow by their own rule",
                    "remove it",
                );
                None
            }
            None => Some(2.0),
        };
        let jitter = match section.get("jitter") {
            Some(value) if name == "decorrelated" => {
                value.key_fault(
                    "decorrelated back-off takes no `jitter`",
                    "it is random by itself",
                    "remove it",
                );
                None
            }
            Some(value) => Jitter::read(&value),
            None => Some(Jitter::None),
        };
        section.finish();
        let (base, cap, factor, jitter) = (base?, cap?, factor?, jitter?);
        Some(match name {
            "fixed" => Backoff::Fixed { wait: base, jitter },
            "linear" => Backoff::Linear { base, cap, jitter },
            "exponential" => Backoff::Exponential { base, factor, cap, jitter },
            _ => Backoff::Decorrelated { base, cap },
        })
    }

    /// How many constants must be changed to make this rule of another; the kind counts as two.
    pub fn differences(&self, other: &Backoff) -> u32 {
        let count = |changed: &[bool]| changed.iter().map(|&changed| u32::from(changed)).sum();
        match (*self, *other) {
            (Backoff::Immediate, Backoff::Immediate) => 0,
            (Backoff::Fixed { wait: a, jitter: i }, Backoff::Fixed { wait: b, jitter: j }) => {
                count(&[a != b, i != j])
            }
            (
                Backoff::Linear { base: a, cap: c, jitter: i },
                Backoff::Linear { base: b, cap: d, jitter: j },
            ) => count(&[a != b, c != d, i != j]),
            (
                Backoff::Exponential { base: a, factor: f, cap: c, jitter: i },
                Backoff::Exponential { base: b, factor: g, cap: d, jitter: j },
            ) => count(&[a != b, f != g, c != d, i != j]),
            (
                Backoff::Decorrelated { base: a, cap: c },
                Backoff::Decorrelated { base: b, cap: d },
            ) => count(&[a != b, c != d]),
            _ => 2,
        }
    }

    /// As the list of assumptions says it.
    pub fn describe(&self) -> String {
        let capped = |cap: Span| match cap {
            Span::MAX => String::new(),
            cap => format!(" up to {cap}"),
        };
        match *self {
            Backoff::Immediate => "at once".into(),
            Backoff::Fixed { wait, jitter } => format!("{wait} apart{}", jitter.describe()),
            Backoff::Linear { base, cap, jitter } => {
                format!("back-off linear by {base}{}{}", capped(cap), jitter.describe())
            }
            Backoff::Exponential { base, factor, cap, jitter } => {
                let (cap, jitter) = (capped(cap), jitter.describe());
                format!("back-off {base} x {factor}^n{cap}{jitter}")
            }
            Backoff::Decorrelated { base, cap } => {
                format!("decorrelated back-off from {base}{}", capped(cap))
            }
        }
    }

    /// True when two callers that fail together come back together.
    pub fn in_step(&self) -> bool {
        match self {
            Backoff::Immediate => true,
            Backoff::Fixed { jitter, .. }
            | Backoff::Linear { jitter, .. }
            | Backoff::Exponential { jitter, .. } => *jitter == Jitter::None,
            Backoff::Decorrelated { .. } => false,
        }
    }

    /// The longest that waits before `attempts` tries can add up to.
    pub fn longest_total(&self, attempts: u32) -> Span {
        (1..attempts.min(1_000)).fold(Span::ZERO, |total, made| {
            total
                + match *self {
                    Backoff::Immediate => Span::ZERO,
                    Backoff::Fixed { wait, jitter } => wait.scaled(jitter.most()),
                    Backoff::Linear { base, cap, jitter } => {
                        base.scaled(f64::from(made)).min(cap).scaled(jitter.most())
                    }
                    Backoff::Exponential { base, factor, cap, jitter } => base
                        .scaled(libm::pow(factor, f64::from(made - 1)))
                        .min(cap)
                        .scaled(jitter.most()),
                    Backoff::Decorrelated { base, cap } => {
                        base.scaled(libm::pow(3.0, f64::from(made))).min(cap)
                    }
                }
        })
    }
}

fn factor(value: &Value<'_>) -> Option<f64> {
    let factor = value.number_from(0.0, 1e6)?;
    if factor < 1.0 {
        let what = format!("`{}` = {factor} is below 1", value.path());
        value.fault(
            &what,
            "waits would shrink with each failure and the storm grow",
            "choose at least 1, usually 2",
        );
        return None;
    }
    Some(factor)
}

impl Jitter {
    /// Reads `"none"`, `"full"`, `"equal"`, `{ spread = "10%" }` or `{ additive = "20%" }`.
    fn read(value: &Value<'_>) -> Option<Self> {
        let (name, contents) = value.choice(&["none", "full", "equal", "spread", "additive"])?;
        match (name, contents) {
            ("none", _) => Some(Jitter::None),
            ("full", _) => Some(Jitter::Full),
            ("equal", _) => Some(Jitter::Equal),
            ("spread", Some(share)) => share.share().map(Jitter::Spread),
            ("additive", Some(share)) => share.percentage().map(Jitter::Additive),
            _ => {
                value.fault(
                    &format!("`{}` = \"{name}\" lacks its width", value.path()),
                    "the spread is a share of the wait",
                    &format!("write jitter.{name} = \"10%\""),
                );
                None
            }
        }
    }

    fn describe(self) -> String {
        let percent = |share: f64| crate::document::share_text(share);
        match self {
            Jitter::None => " without jitter".into(),
            Jitter::Full => " with full jitter".into(),
            Jitter::Equal => " with equal jitter".into(),
            Jitter::Spread(x) => format!(" ± {}", percent(x)),
            Jitter::Additive(x) => format!(" and up to {} more", percent(x)),
        }
    }

    fn spread(self, wait: Span, draw: impl Fn() -> f64) -> Span {
        match self {
            Jitter::None => wait,
            Jitter::Full => wait.scaled(draw()),
            Jitter::Equal => wait.scaled(f64::midpoint(1.0, draw())),
            Jitter::Spread(x) => wait.scaled(1.0 + x * (2.0 * draw() - 1.0)),
            Jitter::Additive(x) => wait.scaled(1.0 + x * draw()),
        }
    }

    fn most(self) -> f64 {
        match self {
            Jitter::None | Jitter::Full | Jitter::Equal => 1.0,
            Jitter::Spread(x) | Jitter::Additive(x) => 1.0 + x,
        }
    }
}
