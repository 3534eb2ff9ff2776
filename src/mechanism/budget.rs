//! A cap on the total of retries: a token bucket that successes fill and retries drain.
//!
//! Each success (or each first attempt, by `deposit`) adds `ratio` tokens, a retry takes one; no
//! token, no retry. So in the long run retries are at most `ratio` of the successes, and in a full
//! outage, when nothing succeeds, the bucket empties and the load falls back to about one attempt
//! per request. `floor` adds tokens by the clock, so that callers with little traffic may still
//! retry.
//!
//! Sources: AWS SDK standard retry mode; gRPC A6 (retry throttling); Finagle `RetryBudget`.

use crate::document::Value;
use crate::kernel::Time;

/// The rule of an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Tokens for each deposit, in (0, 1].
    pub ratio: f64,
    /// Most tokens the bucket holds.
    pub cap: f64,
    /// Tokens at the start.
    pub start: f64,
    /// Tokens by the clock [1/s].
    pub floor: f64,
    /// What deposits.
    pub deposit: Deposit,
    /// When a retry pays.
    pub debit: Debit,
    /// Who shares a bucket.
    pub scope: Scope,
}

/// What fills the bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deposit {
    /// Each answered attempt.
    #[default]
    Success,
    /// Each first attempt, whatever becomes of it.
    Request,
}

/// When a retry takes its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Debit {
    /// When it is decided, before its back-off.
    #[default]
    Decision,
    /// When it leaves its back-off.
    Send,
}

/// Who shares a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Each client, or each replica of the calling tier, has one of its own.
    #[default]
    Instance,
    /// The whole calling tier has one.
    Fleet,
}

/// One bucket.
#[derive(Clone, Copy, Debug)]
pub struct Tokens {
    tokens: f64,
    filled_at: Time,
}

impl Budget {
    /// Reads `budget = { ratio = "10%", cap = 100, floor = "1/s", … }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let ratio = section.require("ratio", "add ratio = \"10%\"").and_then(|v| {
            let ratio = v.share()?;
            if ratio == 0.0 {
                v.fault(
                    "a budget of 0% never allows a retry",
                    "that is what `attempts = 1` says",
                    "give a ratio above 0%",
                );
                return None;
            }
            Some(ratio)
        });
        let cap = section.get("cap").map_or(Some(10.0), |v| v.number_above(0.0, 1e9));
        let start = section.get("start").map(|v| v.number_from(0.0, 1e9));
        let floor = section.get("floor").map_or(Some(0.0), |v| v.rate());
        let deposit = section.get("deposit").map_or(Some(Deposit::default()), |v| {
            v.word(&[("success", Deposit::Success), ("request", Deposit::Request)])
        });
        let debit = section.get("debit").map_or(Some(Debit::default()), |v| {
            v.word(&[("decision", Debit::Decision), ("send", Debit::Send)])
        });
        let scope = section.get("scope").map_or(Some(Scope::default()), |v| {
            v.word(&[("instance", Scope::Instance), ("fleet", Scope::Fleet)])
        });
        section.finish();
        let cap = cap?;
        let start = start.map_or(Some(cap), |start| start)?.min(cap);
        Some(Budget {
            ratio: ratio?,
            cap,
            start,
            floor: floor?,
            deposit: deposit?,
            debit: debit?,
            scope: scope?,
        })
    }

    /// A bucket at the start of the run.
    pub fn start(&self) -> Tokens {
        Tokens { tokens: self.start, filled_at: Time::ZERO }
    }

    /// Notes a success.
    #[inline]
    pub fn on_success(&self, bucket: &mut Tokens) {
        if self.deposit == Deposit::Success {
            bucket.tokens = (bucket.tokens + self.ratio).min(self.cap);
        }
    }

    /// Notes a first attempt.
    #[inline]
    pub fn on_request(&self, bucket: &mut Tokens) {
        if self.deposit == Deposit::Request {
            bucket.tokens = (bucket.tokens + self.ratio).min(self.cap);
        }
    }

    /// Takes a token for one retry; false when there is none.
    pub fn withdraw(&self, bucket: &mut Tokens, now: Time) -> bool {
        if self.floor > 0.0 {
            let earned = now.since(bucket.filled_at).seconds() * self.floor;
            bucket.tokens = (bucket.tokens + earned).min(self.cap);
        }
        bucket.filled_at = now;
        // Ten deposits of a tenth must make one token, though in binary they fall short by 10⁻¹⁶.
        if bucket.tokens < 1.0 - 1e-9 {
            return false;
        }
        bucket.tokens = (bucket.tokens - 1.0).max(0.0);
        true
    }
}

impl Tokens {
    /// Tokens left.
    pub fn left(&self) -> f64 {
        self.tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Span;

    fn budget() -> Budget {
        Budget {
            ratio: 0.1,
            cap: 10.0,
            start: 0.0,
            floor: 0.0,
            deposit: Deposit::Success,
            debit: Debit::Decision,
            scope: Scope::Instance,
        }
    }

    #[test]
    fn ten_successes_buy_one_retry() {
        let rule = budget();
        let mut bucket = rule.start();
        for _ in 0..10 {
            assert!(!rule.withdraw(&mut bucket, Time::ZERO));
            rule.on_success(&mut bucket);
        }
        assert!(rule.withdraw(&mut bucket, Time::ZERO));
        assert!(!rule.withdraw(&mut bucket, Time::ZERO));
    }

    #[test]
    fn the_bucket_holds_no_more_than_its_cap() {
        let rule = budget();
        let mut bucket = rule.start();
        (0..1000).for_each(|_| rule.on_success(&mut bucket));
        assert_eq!((0..20).filter(|_| rule.withdraw(&mut bucket, Time::ZERO)).count(), 10);
    }

    #[test]
    fn the_floor_pays_by_the_clock() {
        let rule = Budget { floor: 2.0, ..budget() };
        let mut bucket = rule.start();
        assert!(!rule.withdraw(&mut bucket, Time::ZERO));
        assert!(rule.withdraw(&mut bucket, Time::ZERO + Span::from_millis(500)));
        assert!(!rule.withdraw(&mut bucket, Time::ZERO + Span::from_millis(600)));
    }
}
