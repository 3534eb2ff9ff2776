//! A cap on the total of retries, whatever each single call wants: one plain rule, and four as
//! clients and proxies ship them.
//!
//! *Ratio*: a token bucket that successes fill and retries drain. Each success (or each first
//! attempt, by `deposit`) adds `ratio` tokens, a retry takes one; no token, no retry. So in the
//! long run retries are at most `ratio` of the successes, and in a full outage, when nothing
//! succeeds, the bucket empties and the load falls back to about one attempt per request. `floor`
//! adds tokens by the clock, so that callers with little traffic may still retry.
//!
//! *gRPC*: the bucket starts full; each failure that `retry_on` covers takes 1, retried or not,
//! each success adds `token_ratio`, and retries are sent only while more than half is left. A call
//! counts its last failure too, so a total outage lets at most ⌈`max_tokens`/2⌉ − 1 retries through
//! and then none; the way back is long: from empty, `max_tokens` / (2·`token_ratio`) successes.
//! Limits: transparent retries and pushback are not modelled.
//!
//! *AWS*: a retry takes `retry_cost` tokens, after a timeout `timeout_cost`. A success gives back
//! what the retry that brought it took, or 1 where there was none; what retries that failed took is
//! lost. The costs are those of the standard mode before the defaults of 2026, which charge 14, and
//! 5 after throttling.
//!
//! *Concurrent*: calls that make a retry or wait to make one are at most `ratio` of the calls under
//! way, and `least` in any case. A retry that failed has ended before the next one asks. Limit:
//! Envoy counts requests at the upstream and leaves those in back-off out of the whole; here a call
//! counts from its first attempt to its end.
//!
//! *Window*: each first attempt deposits `ratio`, each retry withdraws 1, and both are forgotten
//! after about `over`; a reserve of `floor`·`over` is always there besides. Since a withdrawal is
//! forgotten as well, callers that fail for long retry in bursts, about `over` apart: decay would
//! smooth them away, so the past is kept in parts, as Finagle keeps ten. Here there are five, which
//! is what 32 bytes hold: a deposit lives for 80 to 100 % of `over` (Finagle: 90 to 100 %), and in
//! any five parts in a row no more is withdrawn than was deposited there, plus the reserve.
//!
//! Sources: gRPC proposal A6, *Client Retries* (throttling retry attempts); AWS SDKs and Tools
//! Reference Guide, *Retry behavior* (standard mode), figures from botocore and
//! aws-smithy-runtime; Envoy, `RetryBudget` of `CircuitBreakers` (20 %, 3); Finagle `RetryBudget`
//! (20 %, 10/s, 10 s), which Linkerd has too, on `TokenBucket.newLeakyBucket` of Twitter util.

mod read;

use crate::kernel::{Span, Time};
use crate::mechanism::outcome::Outcome;

/// Parts of a window. One deposit lives for (`PARTS` − 1)/`PARTS` of the window at least.
const PARTS: u64 = 5;

/// One token of gRPC in thousandths: it keeps three decimals.
const THOUSAND: u32 = 1000;

/// The rule of an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// How much may be retried.
    pub rule: Rule,
    /// When a retry pays.
    pub debit: Debit,
    /// Who shares a bucket.
    pub scope: Scope,
}

/// How much may be retried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// A share of successes or requests.
    Ratio(Ratio),
    /// Anything, while failures are rare.
    Grpc {
        /// Tokens at the start, and at most, in thousandths.
        max_tokens: u32,
        /// Tokens for each success, in thousandths.
        token_ratio: u32,
    },
    /// What a quota pays, that successes give back.
    Aws {
        /// Tokens at the start, and at most.
        tokens: u32,
        /// Price of a retry.
        retry_cost: u32,
        /// Price of a retry after a timeout.
        timeout_cost: u32,
    },
    /// A share of the calls under way.
    Concurrent {
        /// Retries at once, as a share of the calls under way.
        ratio: f64,
        /// Retries at once that are always allowed.
        least: u32,
    },
    /// A share of recent requests.
    Window {
        /// Retries for each request.
        ratio: f64,
        /// Retries besides [1/s].
        floor: f64,
        /// How long a request counts.
        over: Span,
    },
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
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

/// One bucket. There may be a million.
#[derive(Clone, Copy, Debug)]
pub enum Tokens {
    /// Of a ratio.
    Bucket {
        /// Tokens left.
        tokens: f64,
        /// When the clock last paid.
        filled_at: Time,
    },
    /// Of gRPC, in thousandths, and of AWS: tokens left.
    Whole(u32),
    /// Of concurrent retries.
    Calls {
        /// Calls that have begun and not ended.
        under_way: u32,
        /// Those of them that make a retry or, having paid, wait to make one.
        retrying: u32,
    },
    /// Of a window: deposits less withdrawals.
    Parts {
        /// The present part, counted from the start of the run.
        number: u32,
        /// Of the present part. Rounded for good only when it is past, so that many small deposits
        /// do not add up to an error.
        present: f64,
        /// Of those before, the last one first.
        past: [f32; PARTS as usize - 1],
    },
}

const _: () = assert!(size_of::<Tokens>() <= 32, "two buckets to a cache line");

/// What a call remembers of the retry that it makes or waits to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// There is none: it makes its first attempt, or has given up.
    #[default]
    None,
    /// It is after a failure.
    Failure,
    /// It is after a timeout.
    Timeout,
}

impl Budget {
    /// A bucket at the start of the run.
    pub fn start(&self) -> Tokens {
        match self.rule {
            Rule::Ratio(rule) => Tokens::Bucket { tokens: rule.start, filled_at: Time::ZERO },
            Rule::Grpc { max_tokens: tokens, .. } | Rule::Aws { tokens, .. } => {
                Tokens::Whole(tokens)
            }
            Rule::Concurrent { .. } => Tokens::Calls { under_way: 0, retrying: 0 },
            Rule::Window { .. } => Tokens::Parts { number: 0, present: 0.0, past: [0.0; 4] },
        }
    }

    /// A call makes its first attempt.
    #[inline]
    pub fn begin(&self, bucket: &mut Tokens, now: Time) {
        match (&self.rule, bucket) {
            (Rule::Ratio(rule), Tokens::Bucket { tokens, .. })
                if rule.deposit == Deposit::Request =>
            {
                *tokens = (*tokens + rule.ratio).min(rule.cap);
            }
            (Rule::Concurrent { .. }, Tokens::Calls { under_way, .. }) => *under_way += 1,
            (Rule::Window { ratio, over, .. }, bucket) => {
                bucket.forget(*over, now);
                if let Tokens::Parts { present, .. } = bucket {
                    *present += ratio;
                }
            }
            _ => {}
        }
    }

    /// An attempt has succeeded.
    #[inline]
    pub fn succeeded(&self, bucket: &mut Tokens, claim: Claim) {
        match (&self.rule, bucket) {
            (Rule::Ratio(rule), Tokens::Bucket { tokens, .. })
                if rule.deposit == Deposit::Success =>
            {
                *tokens = (*tokens + rule.ratio).min(rule.cap);
            }
            (Rule::Grpc { max_tokens, token_ratio }, Tokens::Whole(tokens)) => {
                *tokens = (*tokens + token_ratio).min(*max_tokens);
            }
            (&Rule::Aws { tokens: most, retry_cost, timeout_cost }, Tokens::Whole(tokens)) => {
                let back = match claim {
                    Claim::None => 1,
                    Claim::Failure => retry_cost,
                    Claim::Timeout => timeout_cost,
                };
                *tokens = (*tokens + back).min(most);
            }
            _ => {}
        }
    }

    /// An attempt has failed; `covered`: in a way that may be tried again.
    #[inline]
    pub fn failed(&self, bucket: &mut Tokens, claim: &mut Claim, covered: bool) {
        let ended = std::mem::take(claim);
        match (&self.rule, bucket) {
            (Rule::Grpc { .. }, Tokens::Whole(tokens)) if covered => {
                *tokens = tokens.saturating_sub(THOUSAND);
            }
            (Rule::Concurrent { .. }, Tokens::Calls { retrying, .. }) => {
                *retrying -= u32::from(ended != Claim::None);
            }
            _ => {}
        }
    }

    /// Whether a call may go into back-off for a retry after `outcome`.
    #[inline]
    pub fn decide(
        &self,
        bucket: &mut Tokens,
        claim: &mut Claim,
        outcome: Outcome,
        now: Time,
    ) -> bool {
        let after = if outcome == Outcome::TimedOut { Claim::Timeout } else { Claim::Failure };
        let allowed = self.debit == Debit::Send || self.withdraw(bucket, after, now);
        if allowed {
            *claim = after;
        }
        allowed
    }

    /// Whether a call that leaves its back-off may make its retry.
    #[inline]
    pub fn send(&self, bucket: &mut Tokens, claim: Claim, now: Time) -> bool {
        self.debit == Debit::Decision || self.withdraw(bucket, claim, now)
    }

    /// A call that made attempts is over, in whatever way; `waiting`: it made no retry after its
    /// last back-off.
    #[inline]
    pub fn end(&self, bucket: &mut Tokens, claim: Claim, waiting: bool) {
        if let (Rule::Concurrent { .. }, Tokens::Calls { under_way, retrying }) =
            (&self.rule, bucket)
        {
            let paid = !waiting || self.debit == Debit::Decision;
            *under_way -= 1;
            *retrying -= u32::from(claim != Claim::None && paid);
        }
    }

    /// Takes what one retry costs; false when there is too little.
    fn withdraw(&self, bucket: &mut Tokens, claim: Claim, now: Time) -> bool {
        match (&self.rule, bucket) {
            (Rule::Ratio(rule), Tokens::Bucket { tokens, filled_at }) => {
                rule.withdraw(tokens, filled_at, now)
            }
            (Rule::Grpc { max_tokens, .. }, Tokens::Whole(tokens)) => 2 * *tokens > *max_tokens,
            (&Rule::Aws { retry_cost, timeout_cost, .. }, Tokens::Whole(tokens)) => {
                let cost = if claim == Claim::Timeout { timeout_cost } else { retry_cost };
                let left = tokens.checked_sub(cost);
                *tokens = left.unwrap_or(*tokens);
                left.is_some()
            }
            (Rule::Concurrent { .. }, bucket) => {
                let allowed = self.left(bucket, now) >= 1.0;
                if let (true, Tokens::Calls { retrying, .. }) = (allowed, bucket) {
                    *retrying += 1;
                }
                allowed
            }
            (Rule::Window { over, .. }, bucket) => {
                bucket.forget(*over, now);
                // What is past has seven digits: five deposits of a fifth must make one retry.
                let allowed = self.left(bucket, now) >= 1.0 - 1e-6;
                if let (true, Tokens::Parts { present, .. }) = (allowed, bucket) {
                    *present -= 1.0;
                }
                allowed
            }
            (rule, bucket) => unreachable!("{bucket:?} is no bucket of {rule:?}"),
        }
    }

    /// What is left: tokens, or for concurrent retries and in a window, retries.
    pub fn left(&self, bucket: &Tokens, now: Time) -> f64 {
        match (&self.rule, *bucket) {
            (_, Tokens::Bucket { tokens, .. }) => tokens,
            (Rule::Grpc { .. }, Tokens::Whole(tokens)) => f64::from(tokens) / f64::from(THOUSAND),
            (_, Tokens::Whole(tokens)) => f64::from(tokens),
            (&Rule::Concurrent { ratio, least }, Tokens::Calls { under_way, retrying }) => {
                // A share is cut to whole retries, but 0.29 of a hundred calls are 29, not 28.
                let share = (ratio * f64::from(under_way) + 1e-9).floor();
                (share.max(f64::from(least)) - f64::from(retrying)).max(0.0)
            }
            (&Rule::Window { floor, over, .. }, mut bucket) => {
                bucket.forget(over, now);
                let Tokens::Parts { present, past, .. } = bucket else { return 0.0 };
                let past: f64 = past.iter().map(|part| f64::from(*part)).sum();
                (present + past + floor * over.seconds()).max(0.0)
            }
            (_, Tokens::Calls { .. } | Tokens::Parts { .. }) => 0.0,
        }
    }
}

impl Ratio {
    #[inline]
    fn withdraw(&self, tokens: &mut f64, filled_at: &mut Time, now: Time) -> bool {
        if self.floor > 0.0 {
            let earned = now.since(*filled_at).seconds() * self.floor;
            *tokens = (*tokens + earned).min(self.cap);
        }
        *filled_at = now;
        // Ten deposits of a tenth must make one token, though in binary they fall short by 10⁻¹⁶.
        if *tokens < 1.0 - 1e-9 {
            return false;
        }
        *tokens = (*tokens - 1.0).max(0.0);
        true
    }
}

impl Tokens {
    /// Drops the parts that are older than the window `over`.
    #[inline]
    fn forget(&mut self, over: Span, now: Time) {
        let Tokens::Parts { number, present, past } = self else { return };
        let reached = (now.nanos() / (over.nanos() / PARTS)) as u32;
        let passed = reached - *number;
        *number = reached;
        for _ in 0..passed.min(PARTS as u32) {
            past.rotate_right(1);
            past[0] = *present as f32;
            *present = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read::tests::read;
    use super::*;

    /// A caller with one bucket, at one instant.
    struct Caller {
        rule: Budget,
        bucket: Tokens,
        now: Time,
    }

    impl Caller {
        fn with(text: &str) -> Self {
            let rule = read(text).unwrap();
            Caller { bucket: rule.start(), rule, now: Time::ZERO }
        }

        fn at(&mut self, millis: u64) -> &mut Self {
            self.now = Time::ZERO + Span::from_millis(millis);
            self
        }

        /// An attempt fails; whether there is a retry.
        fn fails(&mut self, claim: &mut Claim, outcome: Outcome) -> bool {
            self.rule.failed(&mut self.bucket, claim, true);
            self.rule.decide(&mut self.bucket, claim, outcome, self.now)
                && self.rule.send(&mut self.bucket, *claim, self.now)
        }

        fn succeeds(&mut self, claim: Claim) {
            self.rule.succeeded(&mut self.bucket, claim);
        }

        /// A call of which every attempt fails; its retries.
        fn call_fails(&mut self, attempts: u32) -> u32 {
            self.rule.begin(&mut self.bucket, self.now);
            let mut claim = Claim::None;
            let mut made = 1;
            while made < attempts && self.fails(&mut claim, Outcome::Failed) {
                made += 1;
            }
            if made == attempts {
                self.rule.failed(&mut self.bucket, &mut claim, true);
            }
            self.rule.end(&mut self.bucket, claim, false);
            made - 1
        }

        fn left(&self) -> f64 {
            self.rule.left(&self.bucket, self.now)
        }
    }

    fn asks(caller: &mut Caller) -> bool {
        caller.rule.decide(&mut caller.bucket, &mut Claim::None, Outcome::Failed, caller.now)
    }

    #[test]
    fn ten_successes_buy_one_retry() {
        let mut caller = Caller::with("budget = { ratio = \"10%\", start = 0 }");
        for _ in 0..10 {
            assert!(!asks(&mut caller));
            caller.succeeds(Claim::None);
        }
        assert!(asks(&mut caller));
        assert!(!asks(&mut caller));
    }

    #[test]
    fn the_bucket_holds_no_more_than_its_cap() {
        let mut caller = Caller::with("budget = { ratio = \"10%\", start = 0 }");
        (0..1000).for_each(|_| caller.succeeds(Claim::None));
        assert_eq!((0..20).filter(|_| asks(&mut caller)).count(), 10);
    }

    #[test]
    fn the_floor_pays_by_the_clock() {
        let mut caller = Caller::with("budget = { ratio = \"10%\", start = 0, floor = \"2/s\" }");
        assert!(!asks(&mut caller));
        assert!(asks(caller.at(500)));
        assert!(!asks(caller.at(600)));
    }

    /// Ten tokens, one taken by each failure, the last of a call too: those at 9, 8, 7 and 6 tokens
    /// are above one half. A call of four attempts spends that at 6 on giving up.
    #[test]
    fn grpc_sends_four_retries_into_an_outage_and_three_if_the_first_call_gives_up_after_them() {
        let text = "budget.grpc = { max_tokens = 10, token_ratio = 0.1 }";
        for (attempts, retries) in [(4, 3), (5, 4), (100, 4)] {
            let mut caller = Caller::with(text);
            let sent: u32 = (0..20).map(|_| caller.call_fails(attempts)).sum();
            assert_eq!(sent, retries, "{attempts} attempts");
            assert_eq!(caller.left(), 0.0);
        }
    }

    #[test]
    fn grpc_needs_51_successes_from_empty_and_one_from_half() {
        for (failures, needed) in [(20, 51), (5, 1)] {
            let mut caller = Caller::with("budget.grpc = { max_tokens = 10, token_ratio = 0.1 }");
            for _ in 0..failures {
                caller.rule.failed(&mut caller.bucket, &mut Claim::None, true);
            }
            let mut successes = 0;
            while !asks(&mut caller) {
                caller.succeeds(Claim::None);
                successes += 1;
            }
            assert_eq!(successes, needed);
        }
    }

    #[test]
    fn grpc_keeps_three_decimals_and_counts_only_what_is_worth_a_retry() {
        let mut caller = Caller::with("budget.grpc = { max_tokens = 3, token_ratio = 0.5466 }");
        caller.rule.failed(&mut caller.bucket, &mut Claim::None, false);
        assert_eq!(caller.left(), 3.0);
        caller.rule.failed(&mut caller.bucket, &mut Claim::None, true);
        caller.succeeds(Claim::None);
        assert_eq!(caller.left(), 2.546);
        (0..9).for_each(|_| caller.succeeds(Claim::None));
        assert_eq!(caller.left(), 3.0);
    }

    #[test]
    fn aws_gives_back_what_the_retry_that_succeeded_took() {
        let mut caller = Caller::with("budget.aws = {}");
        let mut claim = Claim::None;
        assert!(caller.fails(&mut claim, Outcome::Failed));
        assert!(caller.fails(&mut claim, Outcome::TimedOut));
        assert_eq!(caller.left(), 485.0);
        caller.succeeds(claim);
        assert_eq!(caller.left(), 495.0, "what the first retry took is lost");
        (0..7).for_each(|_| caller.succeeds(Claim::None));
        assert_eq!(caller.left(), 500.0);
    }

    #[test]
    fn aws_sends_a_hundred_retries_into_an_outage_and_fifty_after_timeouts() {
        let mut caller = Caller::with("budget.aws = {}");
        assert_eq!((0..100).map(|_| caller.call_fails(3)).sum::<u32>(), 100);
        let mut caller = Caller::with("budget.aws = { timeout_cost = 11 }");
        let sent = |_: &u32| caller.fails(&mut Claim::None, Outcome::TimedOut);
        assert_eq!((0..100).filter(sent).count(), 45);
        assert_eq!(caller.left(), 5.0, "too few for a timeout");
        assert!(caller.fails(&mut Claim::None, Outcome::Failed));
    }

    #[test]
    fn concurrent_retries_are_a_share_of_the_calls_under_way() {
        for debit in ["decision", "send"] {
            let text = format!("budget.concurrent = {{ ratio = \"29%\", debit = \"{debit}\" }}");
            let mut caller = Caller::with(&text);
            (0..100).for_each(|_| caller.rule.begin(&mut caller.bucket, caller.now));
            let mut claims = [Claim::None; 100];
            let mut allowed = 0;
            claims.iter_mut().for_each(|c| allowed += i32::from(caller.fails(c, Outcome::Failed)));
            assert_eq!(allowed, 29);
            assert!(caller.fails(&mut claims[0], Outcome::Failed), "it gave its place back first");
            for (index, claim) in claims.iter().enumerate() {
                caller.rule.end(&mut caller.bucket, *claim, debit == "send" && index >= 29);
            }
            let Tokens::Calls { under_way: 0, retrying: 0 } = caller.bucket else {
                panic!("{:?}", caller.bucket)
            };
            assert_eq!(caller.left(), 3.0);
        }
    }

    #[test]
    fn a_call_that_ends_in_back_off_gives_back_only_what_it_took() {
        for (debit, taken) in [("decision", 1), ("send", 0)] {
            let mut caller = Caller::with(&format!("budget.concurrent.debit = \"{debit}\""));
            caller.rule.begin(&mut caller.bucket, caller.now);
            let mut claim = Claim::None;
            let Caller { rule, bucket, now } = &mut caller;
            rule.failed(bucket, &mut claim, true);
            assert!(rule.decide(bucket, &mut claim, Outcome::Failed, *now));
            assert!(matches!(bucket, Tokens::Calls { retrying, .. } if *retrying == taken));
            rule.end(bucket, claim, true);
            assert!(matches!(bucket, Tokens::Calls { under_way: 0, retrying: 0 }));
        }
    }

    /// 100 requests a second that all want many retries, for a minute: a fifth of them and ten a
    /// second besides, in bursts one window apart.
    #[test]
    fn a_window_allows_its_ratio_and_its_floor_in_bursts() {
        let mut caller = Caller::with("budget.window = {}");
        let retries: Vec<u32> =
            (0..60_000).step_by(10).map(|millis| caller.at(millis).call_fails(1000)).collect();
        let per_window: Vec<u32> = retries.chunks(1000).map(|window| window.iter().sum()).collect();
        assert_eq!(per_window, [300; 6]);
        let bursts = retries.iter().step_by(1000).copied().collect::<Vec<_>>();
        assert!(bursts.iter().all(|burst| *burst >= 100), "{bursts:?}");
    }

    #[test]
    fn a_window_forgets_deposits_and_withdrawals_alike() {
        let mut caller = Caller::with("budget.window = { floor = \"1/s\", over = \"5s\" }");
        (0..50).for_each(|_| caller.rule.begin(&mut caller.bucket, caller.now));
        assert_eq!(caller.at(4_999).left(), 15.0);
        assert_eq!((0..20).filter(|_| asks(&mut caller)).count(), 15);
        assert_eq!(caller.at(5_000).left(), 0.0, "the deposits are gone, the debt is not");
        assert_eq!(caller.at(9_000).left(), 5.0);
        assert_eq!(caller.at(100_000).left(), 5.0);
    }
}
