//! Writes and their effects: what happens when an operation that was done already is asked for
//! again.
//!
//! Without a key each attempt that is processed has its effect again: the customer is charged
//! twice. With one key per operation, stored in the same transaction as the effect and re-sent on
//! every attempt, a later attempt finds the stored result and answers with it after a cheap lookup.

use std::collections::{HashMap, VecDeque};

use crate::document::Value;
use crate::kernel::{Distribution, Key, Span, Time};

/// The rule of a tier that writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Whether attempts carry an idempotency key.
    pub keyed: bool,
    /// How long results are kept.
    pub keep: Span,
    /// Work of finding a stored result, in place of the tier's own.
    pub lookup: Distribution,
}

/// What has been done, by operation.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    done: HashMap<u64, Time>,
    order: VecDeque<(Time, u64)>,
}

/// What came of processing an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It had its effect, for the first time.
    First,
    /// It had its effect again.
    Duplicate,
    /// It had none: the stored result was answered.
    Stored,
}

impl Write {
    /// Reads `write = { keyed = true, keep = "24h", lookup.constant = "1ms" }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let keyed = section.require("keyed", "add keyed = true").and_then(|v| v.flag());
        let keep =
            section.get("keep").map_or(Some(Span::from_secs(86_400)), |v| v.positive_duration());
        let lookup = section
            .get("lookup")
            .map_or(Some(Distribution::Constant(Span::from_millis(1))), |v| v.distribution());
        section.finish();
        Some(Write { keyed: keyed?, keep: keep?, lookup: lookup? })
    }

    /// Whether a stored result for `operation` can be answered in place of work.
    pub fn stored(&self, ledger: &mut Ledger, operation: Key, now: Time) -> bool {
        ledger.forget(now);
        self.keyed && ledger.done.contains_key(&operation.bits())
    }

    /// The effect of having processed `operation`, noted in the same moment.
    pub fn commit(&self, ledger: &mut Ledger, operation: Key, now: Time) -> Effect {
        ledger.forget(now);
        if ledger.done.contains_key(&operation.bits()) {
            return if self.keyed { Effect::Stored } else { Effect::Duplicate };
        }
        ledger.done.insert(operation.bits(), now);
        ledger.order.push_back((now + self.keep, operation.bits()));
        Effect::First
    }
}

impl Ledger {
    fn forget(&mut self, now: Time) {
        while let Some(&(expiry, operation)) = self.order.front()
            && expiry <= now
        {
            self.order.pop_front();
            self.done.remove(&operation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(keyed: bool) -> Write {
        Write { keyed, keep: Span::from_secs(60), lookup: Distribution::Constant(Span::ZERO) }
    }

    #[test]
    fn without_a_key_the_second_processing_charges_again() {
        let (rule, mut ledger, payment) = (write(false), Ledger::default(), Key::root(1));
        assert_eq!(rule.commit(&mut ledger, payment, Time::ZERO), Effect::First);
        assert!(!rule.stored(&mut ledger, payment, Time::ZERO));
        assert_eq!(rule.commit(&mut ledger, payment, Time::ZERO), Effect::Duplicate);
    }

    #[test]
    fn with_a_key_the_second_processing_has_no_effect() {
        let (rule, mut ledger, payment) = (write(true), Ledger::default(), Key::root(1));
        assert_eq!(rule.commit(&mut ledger, payment, Time::ZERO), Effect::First);
        assert!(rule.stored(&mut ledger, payment, Time::ZERO));
        assert_eq!(rule.commit(&mut ledger, payment, Time::ZERO), Effect::Stored);
    }

    #[test]
    fn a_result_is_forgotten_after_its_keeping_time() {
        let (rule, mut ledger, payment) = (write(true), Ledger::default(), Key::root(1));
        rule.commit(&mut ledger, payment, Time::ZERO);
        let later = Time::ZERO + Span::from_secs(60);
        assert_eq!(rule.commit(&mut ledger, payment, later), Effect::First);
    }
}
