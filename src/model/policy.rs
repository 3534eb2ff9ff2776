//! Retry policies: all that a caller's library decides about trying again, under one name.
//!
//! An edge may name one, `retry = "envoy"`, and change single keys of it beside. The model may have
//! policies of its own, `[policy.gentle]`, which may build on others.

use super::optional;
use super::preset::{self, PRESETS};
use crate::document::{Section, Value, nearest};
use crate::kernel::Span;
use crate::mechanism::breaker::Breaker;
use crate::mechanism::budget::Budget;
use crate::mechanism::pace::Pace;
use crate::mechanism::retry::{Backoff, Heed, Retry, RetryOn};
use crate::mechanism::throttle::Throttle;

/// Whether, when and how often a caller tries again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Attempts, waits, what is worth it.
    pub retry: Retry,
    /// Cap on the total of retries.
    pub budget: Option<Budget>,
    /// Attempts that the caller turns away itself.
    pub throttle: Option<Throttle>,
    /// When it calls no more for a while.
    pub breaker: Option<Breaker>,
    /// Whether it slows down where it is throttled.
    pub pace: Option<Pace>,
}

/// The policies of a model, by name. One with a fault is `None`, so that its name is still known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies(Vec<(String, Option<Policy>)>);

/// The most attempts that can be asked for.
const MOST_ATTEMPTS: u64 = 1_000;

impl Policies {
    /// Reads `[policy.…]`, all of them. One may build on any that stands above it.
    pub fn read(section: &Section<'_>) -> Self {
        let mut policies = Policies::default();
        let all: Vec<&str> = section.entries().iter().map(|entry| entry.key()).collect();
        for entry in section.entries() {
            if preset::policy(entry.key()).is_some() {
                let what = format!("`{}` is a preset already", entry.key());
                let why = "two policies of one name could be mistaken for each other";
                entry.key_fault(&what, why, "choose another name, and build on it with `retry`");
            }
            let policy = entry.section().and_then(|section| {
                if let Some(base) = section.get("retry")
                    && base.is_text()
                    && base.text().is_some_and(|name| all.contains(&name))
                    && base.text().is_some_and(|name| policies.names().all(|own| own != name))
                {
                    let what = format!("`{}` builds on a policy below it", entry.key());
                    base.fault(&what, "a policy builds on those above", "move that one up");
                    section.entries();
                    return None;
                }
                let policy = Policy::read(&section, &policies);
                section.finish();
                policy
            });
            policies.0.push((entry.key().to_owned(), policy));
        }
        policies
    }

    /// The policy of a name: the model's own, or a preset.
    pub fn find(&self, name: &str) -> Option<Policy> {
        let own = self.0.iter().find(|(own, _)| own == name);
        own.map_or_else(|| preset::policy(name), |(_, policy)| policy.clone())
    }

    /// The names of the model's own.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// What to write in place of a name that is not known.
    pub fn nearest(&self, name: &str) -> String {
        nearest(name, self.names().chain(PRESETS.iter().map(|preset| preset.name)))
    }

    fn named(&self, value: &Value<'_>) -> Option<Policy> {
        let name = value.text()?;
        let policy = self.find(name);
        if policy.is_none() && self.names().all(|own| own != name) {
            let what = format!("there is no retry policy {name:?}");
            let why = "it is neither a preset nor a [policy.…] of the model";
            value.fault(&what, why, &self.nearest(name));
        }
        policy
    }
}

impl Policy {
    /// Reads the keys of a policy, on top of the one that `retry` names.
    pub fn read(section: &Section<'_>, policies: &Policies) -> Option<Self> {
        let base = match section.get("retry") {
            Some(value) => policies.named(&value),
            None => Some(Policy::default()),
        };
        let attempts = optional(section, "attempts", |v| v.whole(1, MOST_ATTEMPTS));
        let backoff = optional(section, "backoff", Backoff::read);
        let on = optional(section, "retry_on", RetryOn::read);
        let retry_after = optional(section, "retry_after", Heed::read);
        let offset = optional(section, "offset", Value::duration);
        let budget = optional(section, "budget", read_budget);
        let throttle = optional(section, "throttle", Throttle::read);
        let breaker = optional(section, "breaker", Breaker::read);
        let pace = optional(section, "pace", Pace::read);
        let Policy {
            retry: base,
            budget: base_budget,
            throttle: base_throttle,
            breaker: base_breaker,
            pace: base_pace,
        } = base?;
        let attempts = attempts?.map_or(base.attempts, |attempts| attempts as u32);
        Some(Policy {
            retry: Retry {
                attempts,
                backoff: backoff?.unwrap_or(base.backoff),
                on: on?.unwrap_or(base.on),
                retry_after: retry_after?.unwrap_or(base.retry_after),
                offset: offset?.unwrap_or(base.offset),
            },
            budget: budget?.unwrap_or(base_budget),
            throttle: throttle?.or(base_throttle),
            breaker: breaker?.or(base_breaker),
            pace: pace?.or(base_pace),
        })
    }

    /// Whether it makes anything of a Retry-After.
    pub fn heeds_retry_after(&self) -> bool {
        self.retry.retry_after != Heed::Ignore
    }

    /// How many constants must be changed to make this policy of another. What takes new code, such
    /// as reading a header or keeping a budget, counts as more than one.
    pub fn differences(&self, other: &Policy) -> u32 {
        const CODE: u32 = 2;
        let (own, theirs) = (&self.retry, &other.retry);
        u32::from(own.attempts != theirs.attempts)
            + own.backoff.differences(&theirs.backoff)
            + u32::from(own.on != theirs.on)
            + CODE * u32::from(own.retry_after != theirs.retry_after)
            + CODE * u32::from(own.offset != theirs.offset)
            + CODE * u32::from(self.budget != other.budget)
            + CODE * u32::from(self.throttle != other.throttle)
            + CODE * u32::from(self.breaker != other.breaker)
            + CODE * u32::from(self.pace != other.pace)
    }

    /// In a few words, as the list of assumptions says it.
    pub fn describe(&self) -> Vec<String> {
        let Retry { attempts, backoff, on, retry_after, offset } = &self.retry;
        let mut parts = match attempts {
            1 => vec!["no retry".into()],
            _ => vec![format!("{attempts} attempts in all"), backoff.describe()],
        };
        if *on != RetryOn::ALL && *attempts > 1 {
            parts.push(format!("retries after {}", on.describe()));
        }
        if *retry_after != Heed::Ignore {
            parts.push(retry_after.describe());
        }
        if *offset > Span::ZERO {
            parts.push(format!("up to {offset} more by device"));
        }
        if let Some(Throttle { k, window }) = self.throttle {
            parts.push(format!("callers throttle above {k}x what was accepted in {window}"));
        }
        if let Some(Breaker { failures, open }) = self.breaker {
            parts.push(format!("breaker opens for {open} after {failures} failures in a row"));
        }
        if self.pace.is_some() {
            parts.push("callers slow down where they are throttled".into());
        }
        parts
    }
}

/// Reads a budget, or `"none"`, to do without that of the policy built on.
fn read_budget(value: &Value<'_>) -> Option<Option<Budget>> {
    if value.is_text() {
        return value.word(&[("none", None)]);
    }
    Budget::read(value).map(Some)
}
