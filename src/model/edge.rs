//! The edges of a model file: what a tier does about one callee.

use super::policy::{Policies, Policy};
use super::{Edge, optional, or};
use crate::document::{Section, TierId, Value};
use crate::mechanism::cache::Cache;
use crate::mechanism::network::Network;
use crate::mechanism::pool::Pool;
use crate::mechanism::retry::Retry;
use crate::mechanism::timeout::Patience;
use crate::mechanism::work::Work;

/// Reads `[tier.CALLER.call.CALLEE]`.
pub fn read(
    (caller, callee): (TierId, TierId),
    section: &Section<'_>,
    policies: &Policies,
) -> Option<Edge> {
    let timeout = optional(section, "timeout", Value::positive_duration);
    let deadline = optional(section, "deadline", Value::positive_duration);
    let pass = or(section, "pass_deadline", false, Value::flag);
    let policy = Policy::read(section, policies);
    let pool = optional(section, "pool", Pool::read);
    let network = or(section, "network", Network::default(), Network::read);
    let cache = optional(section, "cache", Cache::read);
    let optional_call = or(section, "optional", false, Value::flag);
    let fallback = optional(section, "fallback", Work::read);
    let fallback_value = section.get("fallback");
    // What seems to be missing may be there under a mistyped key, and that is told already.
    let known = section.finish();
    if let (true, Some(value), Some(false)) = (known, &fallback_value, optional_call) {
        value.key_fault(
            "`fallback` on a call that is not optional",
            "a required call that fails makes its caller fail, so the fallback would never run",
            "set optional = true, or remove fallback",
        );
        return None;
    }
    let Policy { retry, budget, throttle, breaker, pace } = policy?;
    Some(Edge {
        caller,
        callee,
        patience: Patience { timeout: timeout?, deadline: deadline?, pass: pass? },
        retry,
        budget,
        throttle,
        breaker,
        pace,
        pool: pool?,
        network: network?,
        cache: cache?,
        optional: optional_call?,
        fallback: fallback?,
    })
}

/// An edge that is only named in `calls`: one attempt, endless patience.
pub fn plain(caller: TierId, callee: TierId) -> Edge {
    Edge {
        caller,
        callee,
        patience: Patience::default(),
        retry: Retry::default(),
        budget: None,
        throttle: None,
        breaker: None,
        pace: None,
        pool: None,
        network: Network::default(),
        cache: None,
        optional: false,
        fallback: None,
    }
}
