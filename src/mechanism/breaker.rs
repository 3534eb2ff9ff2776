//! A circuit breaker of the caller: after so many failures in a row it calls no more for a while,
//! and then tries with one attempt whether it is worth it again.
//!
//! Closed: everything is sent. Open: nothing is, for `open`; what is wanted fails at once. Then one
//! attempt goes through, alone: its success closes the breaker, its failure opens it for as long
//! again. An attempt on trial that gives no sign is given up after `open`, too, and another goes.
//! A success of an attempt that was sent before the breaker opened closes it as well.
//!
//! Why failures in a row, and not a share of the last hundred: a client of a herd makes a dozen
//! attempts in all. Sources: M. Nygard, *Release It!* (2007), circuit breaker; Envoy outlier
//! detection (5 in a row, 30 s); Polly's breaker before version 8.

use crate::document::Value;
use crate::kernel::{Span, Time};

/// The rule of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Failures in a row that open it.
    pub failures: u32,
    /// How long it stays open.
    pub open: Span,
}

/// The breaker of one caller. There may be a million.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circuit {
    failures: u32,
    open_until: Time,
}

impl Breaker {
    /// Reads `breaker = { failures = 5, open = "30s" }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let failures = section.get("failures").map_or(Some(5), |v| v.whole(1, 1_000_000));
        let open = section.get("open").map_or(Some(Span::from_secs(30)), |v| v.positive_duration());
        section.finish();
        Some(Breaker { failures: failures? as u32, open: open? })
    }

    /// Whether an attempt may be sent.
    pub fn lets(&self, circuit: &mut Circuit, now: Time) -> bool {
        if circuit.failures < self.failures {
            return true;
        }
        let trial = now >= circuit.open_until;
        if trial {
            circuit.open_until = now + self.open;
        }
        trial
    }

    /// Notes how an attempt has ended.
    pub fn note(&self, circuit: &mut Circuit, well: bool, now: Time) {
        if well {
            circuit.failures = 0;
            return;
        }
        circuit.failures = circuit.failures.saturating_add(1);
        if circuit.failures >= self.failures {
            circuit.open_until = now + self.open;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_trial_decides() {
        let rule = Breaker { failures: 3, open: Span::from_secs(10) };
        let mut circuit = Circuit::default();
        for well in [false, false, true, false, false] {
            assert!(rule.lets(&mut circuit, at(0)));
            rule.note(&mut circuit, well, at(0));
        }
        assert!(rule.lets(&mut circuit, at(1)), "two in a row are not three");
        rule.note(&mut circuit, false, at(1));
        assert!(!rule.lets(&mut circuit, at(10)));
        assert!(rule.lets(&mut circuit, at(11)) && !rule.lets(&mut circuit, at(11)), "one alone");
        rule.note(&mut circuit, false, at(12));
        assert!(!rule.lets(&mut circuit, at(21)) && rule.lets(&mut circuit, at(22)));
        rule.note(&mut circuit, true, at(23));
        assert!(rule.lets(&mut circuit, at(23)) && rule.lets(&mut circuit, at(23)));
    }

    #[test]
    fn a_trial_that_gives_no_sign_is_followed_by_another() {
        let rule = Breaker { failures: 1, open: Span::from_secs(10) };
        let mut circuit = Circuit::default();
        rule.note(&mut circuit, false, at(0));
        assert!(rule.lets(&mut circuit, at(10)));
        assert!(!rule.lets(&mut circuit, at(19)) && rule.lets(&mut circuit, at(20)));
    }
}
