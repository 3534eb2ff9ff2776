//! Policies that reproduce what well-known libraries and proxies do by default, so that a model can
//! say `retry = "envoy"`.
//!
//! Each states where its numbers come from. What a library decides by more than a status (which
//! methods are idempotent, which exceptions a program throws, whether a body may be sent twice) is
//! not in a model: its callers are taken to be allowed to retry.

use super::policy::Policy;
use crate::kernel::Span;
use crate::mechanism::budget::{Budget, Debit, Rule, Scope};
use crate::mechanism::pace::Pace;
use crate::mechanism::retry::{Backoff, Heed, Jitter, Retry, RetryOn};

/// A policy with a name and a source.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// As a model names it.
    pub name: &'static str,
    /// Where its numbers come from, and what of it is left out.
    pub source: &'static str,
    policy: fn() -> Policy,
}

impl Preset {
    /// What it says.
    pub fn policy(&self) -> Policy {
        (self.policy)()
    }
}

/// The plain ones, which people write themselves, then those of libraries by name.
pub const PRESETS: [Preset; 17] = [
    Preset { name: "none", source: "one attempt", policy: Policy::default },
    Preset { name: "immediate", source: "three attempts at once", policy: immediate },
    Preset { name: "fixed", source: "three attempts, 2 s apart", policy: fixed },
    Preset { name: "exponential", source: "1, 2, 4, 8 s", policy: exponential },
    Preset {
        name: "exponential-additive",
        source: "1, 2, 4, 8 s, each up to a fifth longer",
        policy: exponential_additive,
    },
    Preset {
        name: "aws-standard",
        source: "AWS SDKs, standard mode before 2026 (botocore 1.40.0, retries/standard.py): \
                 U[0, 1) x min(2^n, 20 s), quota of 500 tokens, 5 a retry, 10 after a timeout",
        policy: aws_standard,
    },
    Preset {
        name: "aws-standard-2026",
        source: "AWS SDKs, standard mode of 2026 (botocore 1.44.8): base 50 ms, 14 tokens a retry. \
                 Left out: 1 s and 5 tokens after throttling, x-amz-retry-after",
        policy: aws_standard_2026,
    },
    Preset {
        name: "aws-adaptive",
        source: "AWS SDKs, adaptive mode before 2026 (botocore 1.40.0, retries/adaptive.py): the \
                 standard mode, and a caller that slows down to 0.7 of its rate when throttled",
        policy: aws_adaptive,
    },
    Preset {
        name: "axios-retry",
        source: "axios-retry 4.5.0 (index.js): 3 retries without delay, or as Retry-After says; \
                 network errors, 429 and 5xx; a timeout of axios is final",
        policy: axios_retry,
    },
    Preset {
        name: "envoy",
        source: "Envoy (retry_policy_impl.cc, backoff_strategy.cc, circuit_breaker.proto): one \
                 retry, 25 ms doubling to 250 ms with full jitter, retry_on 5xx, retry budget of \
                 20 % of the requests under way and 3 at least",
        policy: envoy,
    },
    Preset {
        name: "grpc",
        source: "gRPC proposal A6, the example of its retry guide: 4 attempts, 100 ms doubling to \
                 1 s, +- 20 % (proposal of 2024), UNAVAILABLE, throttling of 10 tokens at 0.1",
        policy: grpc,
    },
    Preset {
        name: "herd-safe",
        source: "section on herds of the founding figures: decorrelated 1 to 60 s, 6 attempts, \
                 Retry-After as a floor of 1x to 2x, up to 1 s more by device",
        policy: herd_safe,
    },
    Preset {
        name: "istio-default",
        source: "Istio up to 1.23 (route/retry/retry.go): 2 retries by Envoy's back-off, broken \
                 connections and 503. Since 1.24 a 503 is final, unless it is asked for",
        policy: istio_default,
    },
    Preset {
        name: "linkerd",
        source: "Linkerd ServiceProfile (profile_translator.go): at once, within a budget of 20 % \
                 and 10/s over 10 s. Broken connections and timeouts are final",
        policy: linkerd,
    },
    Preset {
        name: "p-retry",
        source: "p-retry 9.0.0 on node-retry's rule: 10 retries, 1 s doubling without a cap, no \
                 jitter, any error",
        policy: p_retry,
    },
    Preset {
        name: "polly",
        source: "Polly 8 RetryStrategyOptions (RetryConstants.cs): 3 retries, 2 s apart, any \
                 exception",
        policy: polly,
    },
    Preset {
        name: "resilience4j",
        source: "resilience4j RetryConfig: 3 attempts, 500 ms apart, any exception",
        policy: resilience4j,
    },
];

const SERVER_ERRORS: [u16; 4] = [500, 502, 503, 504];
const TROUBLE: [u16; 5] = [429, 500, 502, 503, 504];

/// The policy of a name.
pub fn policy(name: &str) -> Option<Policy> {
    PRESETS.iter().find(|preset| preset.name == name).map(Preset::policy)
}

fn retrying(attempts: u32, backoff: Backoff, on: RetryOn) -> Policy {
    let retry = Retry { attempts, backoff, on, ..Retry::default() };
    Policy { retry, ..Policy::default() }
}

fn doubling(base: Span, cap: Span, jitter: Jitter) -> Backoff {
    Backoff::Exponential { base, factor: 2.0, cap, jitter }
}

fn constant(wait: Span) -> Backoff {
    Backoff::Fixed { wait, jitter: Jitter::None }
}

fn budget(rule: Rule) -> Option<Budget> {
    Some(Budget { rule, debit: Debit::Decision, scope: Scope::Instance })
}

fn immediate() -> Policy {
    retrying(3, Backoff::Immediate, RetryOn::statuses(&TROUBLE))
}

fn fixed() -> Policy {
    retrying(3, constant(Span::from_secs(2)), RetryOn::statuses(&TROUBLE))
}

fn exponential() -> Policy {
    let backoff = doubling(Span::from_secs(1), Span::MAX, Jitter::None);
    retrying(5, backoff, RetryOn::statuses(&TROUBLE))
}

fn exponential_additive() -> Policy {
    let backoff = doubling(Span::from_secs(1), Span::MAX, Jitter::Additive(0.2));
    retrying(5, backoff, RetryOn::statuses(&TROUBLE))
}

fn aws_standard() -> Policy {
    let backoff = doubling(Span::from_secs(1), Span::from_secs(20), Jitter::Full);
    // Throttling comes with an error code, which a model tells by its status, 429.
    let quota = Rule::Aws { tokens: 500, retry_cost: 5, timeout_cost: 10 };
    Policy { budget: budget(quota), ..retrying(3, backoff, RetryOn::statuses(&TROUBLE)) }
}

fn aws_adaptive() -> Policy {
    Policy { pace: Some(Pace), ..aws_standard() }
}

fn aws_standard_2026() -> Policy {
    let backoff = doubling(Span::from_millis(50), Span::from_secs(20), Jitter::Full);
    let quota = Rule::Aws { tokens: 500, retry_cost: 14, timeout_cost: 14 };
    Policy { budget: budget(quota), ..retrying(3, backoff, RetryOn::statuses(&TROUBLE)) }
}

fn axios_retry() -> Policy {
    let mut policy = retrying(4, Backoff::Immediate, RetryOn::statuses(&TROUBLE).but_timeouts());
    policy.retry.retry_after = Heed::Exact;
    policy
}

fn envoy_backoff() -> Backoff {
    doubling(Span::from_millis(25), Span::from_millis(250), Jitter::Full)
}

fn envoy() -> Policy {
    let share = Rule::Concurrent { ratio: 0.2, least: 3 };
    let on = RetryOn::statuses(&SERVER_ERRORS);
    Policy { budget: budget(share), ..retrying(2, envoy_backoff(), on) }
}

fn grpc() -> Policy {
    let jitter = Jitter::Spread(0.2);
    let backoff = doubling(Span::from_millis(100), Span::from_secs(1), jitter);
    // Tokens are kept in thousandths.
    let throttle = Rule::Grpc { max_tokens: 10_000, token_ratio: 100 };
    let on = RetryOn::statuses(&[503]).but_timeouts();
    Policy { budget: budget(throttle), ..retrying(4, backoff, on) }
}

fn herd_safe() -> Policy {
    let (base, cap) = (Span::from_secs(1), Span::from_secs(60));
    let on = RetryOn::statuses(&[408, 425, 429, 500, 502, 503, 504]);
    let mut policy = retrying(6, Backoff::Decorrelated { base, cap }, on);
    policy.retry.retry_after = Heed::Floor(2.0);
    policy.retry.offset = Span::from_secs(1);
    policy
}

fn istio_default() -> Policy {
    retrying(3, envoy_backoff(), RetryOn::statuses(&[503]).but_timeouts())
}

fn linkerd() -> Policy {
    let share = Rule::Window { ratio: 0.2, floor: 10.0, over: Span::from_secs(10) };
    let on = RetryOn::answers(&SERVER_ERRORS);
    // The budget alone bounds them.
    Policy { budget: budget(share), ..retrying(1_000, Backoff::Immediate, on) }
}

fn p_retry() -> Policy {
    let backoff = doubling(Span::from_secs(1), Span::MAX, Jitter::None);
    retrying(11, backoff, RetryOn::ALL)
}

fn polly() -> Policy {
    retrying(4, constant(Span::from_secs(2)), RetryOn::ALL)
}

fn resilience4j() -> Policy {
    retrying(3, constant(Span::from_millis(500)), RetryOn::ALL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Key, Time};
    use crate::mechanism::outcome::{Outcome, Reason, Status};
    use crate::mechanism::retry::{RetryState, Setback, device};

    fn setback(number: u16, retry_after: Option<Span>) -> Setback {
        let status = Status::of(number).expect("a known status");
        Setback { outcome: Outcome::Failed, status, retry_after }
    }

    /// Shortest and longest wait (s) before each retry, over many calls.
    fn waits(name: &str, setback: Setback) -> Vec<(f64, f64)> {
        let retry = policy(name).expect("a preset").retry;
        let mut ranges: Vec<(f64, f64)> = Vec::new();
        for call in 0..4_000 {
            let (key, mut state) = (Key::root(call), RetryState::default());
            for made in 1.. {
                let Some(wait) = retry.next_wait(&mut state, made, &setback, key, 0) else { break };
                let wait = wait.seconds();
                match ranges.get_mut(made as usize - 1) {
                    Some(range) => *range = (range.0.min(wait), range.1.max(wait)),
                    None => ranges.push((wait, wait)),
                }
            }
        }
        ranges
    }

    /// The waits span these ranges, to a hundredth of their width (4,000 uniform draws).
    fn assert_ranges(name: &str, wanted: &[(f64, f64)]) {
        let got = waits(name, setback(503, None));
        assert_eq!(got.len(), wanted.len(), "{name}: {got:?}");
        for (got, wanted) in got.iter().zip(wanted) {
            let width = wanted.1 - wanted.0;
            let (low, high) = (got.0 - wanted.0, wanted.1 - got.1);
            let within = |off: f64| off >= -1e-9 && off <= 0.01 * width + 1e-9;
            assert!(within(low) && within(high), "{name}: {got:?} for {wanted:?}");
        }
    }

    fn covers(name: &str, outcome: Outcome, number: u16) -> bool {
        let on = policy(name).expect("a preset").retry.on;
        on.covers(&Setback { outcome, ..setback(number, None) })
    }

    fn answers(name: &str) -> Vec<u16> {
        let covered = |number: &u16| covers(name, Outcome::Failed, *number);
        Status::ALL.into_iter().filter(covered).collect()
    }

    #[test]
    fn the_plain_ones_wait_as_people_write_them() {
        assert_ranges("immediate", &[(0.0, 0.0); 2]);
        assert_ranges("fixed", &[(2.0, 2.0); 2]);
        assert_ranges("exponential", &[1.0, 2.0, 4.0, 8.0].map(|wait| (wait, wait)));
        let additive = [1.0, 2.0, 4.0, 8.0].map(|wait| (wait, 1.2 * wait));
        assert_ranges("exponential-additive", &additive);
        assert_eq!(answers("exponential"), [429, 500, 502, 503, 504], "a 400 is final");
    }

    /// botocore: U[0, 1) x min(2^i, 20 s); of 500 tokens at 5 each, 100 retries; 50 after timeouts;
    /// a clean success earns 1, so five of them buy a retry.
    #[test]
    fn aws_standard_has_the_delays_and_the_quota_of_botocore() {
        assert_ranges("aws-standard", &[(0.0, 1.0), (0.0, 2.0)]);
        assert_eq!((retries("aws-standard", Outcome::Failed), 100), (100, 100));
        assert_eq!(retries("aws-standard", Outcome::TimedOut), 50);
        assert_ranges("aws-standard-2026", &[(0.0, 0.05), (0.0, 0.1)]);
        assert_eq!(retries("aws-standard-2026", Outcome::Failed), 35, "500 / 14");
    }

    #[test]
    fn aws_adaptive_is_the_standard_mode_with_a_pace() {
        let (adaptive, standard) = (aws_adaptive(), aws_standard());
        assert_eq!((adaptive.retry, adaptive.budget), (standard.retry, standard.budget));
        assert_eq!((adaptive.pace, standard.pace), (Some(Pace), None));
    }

    /// Retries that the budget lets through when nothing but failures comes.
    fn retries(name: &str, outcome: Outcome) -> u32 {
        let budget = policy(name).and_then(|policy| policy.budget).expect("it has a budget");
        let mut bucket = budget.start();
        let mut allowed = 0;
        for _ in 0..10_000 {
            budget.begin(&mut bucket, Time::ZERO);
            let mut claim = Default::default();
            budget.failed(&mut bucket, &mut claim, true);
            let granted = budget.decide(&mut bucket, &mut claim, outcome, Time::ZERO);
            allowed += u32::from(granted);
            if granted {
                budget.send(&mut bucket, claim, Time::ZERO);
            }
            budget.end(&mut bucket, claim, false);
        }
        allowed
    }

    /// gRPC guide: 100 ms doubling to 1 s, +- 20 %, four attempts, UNAVAILABLE (503) alone; of 10
    /// tokens, calls that fail once each let the first four retry: 9, 8, 7, 6 are above 5.
    #[test]
    fn grpc_has_the_delays_and_the_throttle_of_its_guide() {
        assert_ranges("grpc", &[(0.08, 0.12), (0.16, 0.24), (0.32, 0.48)]);
        assert_eq!((answers("grpc"), retries("grpc", Outcome::Failed)), (vec![503], 4));
        assert!(!covers("grpc", Outcome::TimedOut, 503));
    }

    /// Envoy: below 25 ms; 25 ms x 10 is the cap. Three retries at once where little is under way.
    #[test]
    fn envoy_and_istio_wait_by_full_jitter_from_25_ms() {
        assert_ranges("envoy", &[(0.0, 0.025)]);
        assert_ranges("istio-default", &[(0.0, 0.025), (0.0, 0.05)]);
        assert_eq!(
            (answers("envoy"), answers("istio-default")),
            (vec![500, 502, 503, 504], vec![503])
        );
        let rule = policy("envoy").and_then(|policy| policy.budget).expect("it has a budget").rule;
        assert_eq!(rule, Rule::Concurrent { ratio: 0.2, least: 3 });
    }

    /// Linkerd: an idle client has 10/s x 10 s = 100 retries to spend; 1,000 requests in ten
    /// seconds earn 200 more.
    #[test]
    fn linkerd_retries_at_once_within_its_budget() {
        let first = waits("linkerd", setback(503, None))[0];
        assert_eq!(first, (0.0, 0.0));
        assert!(!covers("linkerd", Outcome::Refused(Reason::Down), 503), "nobody has answered");
        assert!(!covers("linkerd", Outcome::TimedOut, 503));
        let budget = policy("linkerd").and_then(|policy| policy.budget).expect("it has a budget");
        let mut bucket = budget.start();
        (0..1_000).for_each(|_| budget.begin(&mut bucket, Time::ZERO));
        let granted = (0..1_000).filter(|_| {
            budget.decide(&mut bucket, &mut Default::default(), Outcome::Failed, Time::ZERO)
        });
        assert_eq!(granted.count(), 300);
    }

    #[test]
    fn resilience4j_polly_and_p_retry_wait_as_documented() {
        assert_ranges("resilience4j", &[(0.5, 0.5); 2]);
        assert_ranges("polly", &[(2.0, 2.0); 3]);
        let doubling: Vec<(f64, f64)> =
            (0..10).map(|n| (f64::from(1 << n), f64::from(1 << n))).collect();
        assert_ranges("p-retry", &doubling);
        // The documentation of node-retry says 17 min 3 s.
        let total = policy("p-retry").expect("a preset").retry.longest_total();
        assert_eq!(total, Span::from_secs(17 * 60 + 3));
    }

    #[test]
    fn axios_retry_waits_for_nothing_but_a_retry_after() {
        assert_ranges("axios-retry", &[(0.0, 0.0); 3]);
        let told = waits("axios-retry", setback(429, Some(Span::from_secs(5))));
        assert_eq!(told, [(5.0, 5.0); 3]);
        assert_eq!(answers("axios-retry"), [429, 500, 502, 503, 504]);
        assert!(!covers("axios-retry", Outcome::TimedOut, 503));
    }

    /// A server that says 429 with Retry-After: 1 three times, then 200: three waits, each between
    /// 1 and 2 s plus the offset of the device.
    #[test]
    fn herd_safe_takes_a_retry_after_as_a_floor() {
        let own = device::share(&device::install_id(0));
        let told = waits("herd-safe", setback(429, Some(Span::from_secs(1))));
        assert_eq!(told.len(), 5, "six attempts");
        for (shortest, longest) in &told[..3] {
            assert!(*shortest >= 1.0 + own && *longest < 2.0 + own, "{shortest} {longest}");
        }
        assert_eq!(answers("herd-safe"), [408, 425, 429, 500, 502, 503, 504]);
        let plain = waits("herd-safe", setback(503, None));
        assert!(plain.iter().all(|(low, high)| *low >= 1.0 + own && *high < 60.0 + own + 1e-9));
    }

    #[test]
    fn no_two_presets_share_a_name() {
        let mut names = PRESETS.map(|preset| preset.name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
