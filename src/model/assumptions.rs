//! The settings that decide verdicts, as a model uses them: each run lists them, the defaults among
//! them.

use super::{Edge, Model, Tier};
use crate::document::{EdgeId, rate_text, share_text};
use crate::kernel::Span;
use crate::mechanism::budget::{Budget, Debit, Deposit, Rule, Scope};
use crate::mechanism::cache::Late;
use crate::mechanism::pool::Clock;
use crate::mechanism::queue::Discipline;
use crate::mechanism::work::Drawn;

/// One line for each tier and each edge.
pub fn assumptions(model: &Model) -> Vec<String> {
    let tiers = model.tier_ids().map(|id| {
        let name = model.names.tier_name(id);
        match &model.tier(id).arrivals {
            Some(arrivals) => {
                let rule = model.tier(id);
                let timer = rule.timer.map(|timer| timer.describe());
                let leave = rule.leave.map(|leave| leave.describe());
                let parts: Vec<String> = [timer, leave].into_iter().flatten().collect();
                let told = std::iter::once(arrivals.describe()).chain(parts);
                format!("{name}: arrivals are {}", told.collect::<Vec<String>>().join("; "))
            }
            None => format!("{name}: {}", tier(model.tier(id))),
        }
    });
    let edges =
        model.edge_ids().map(|id| format!("{}: {}", model.names.edge_name(id), edge(model, id)));
    tiers.chain(edges).collect()
}

fn tier(tier: &Tier) -> String {
    let mut parts = vec![match tier.concurrency {
        None => "unlimited concurrency".to_owned(),
        Some(limit) => {
            let discipline = match tier.queue.discipline {
                Discipline::Fifo => "FIFO",
                Discipline::Lifo => "LIFO",
            };
            let queue = match tier.queue.capacity {
                None => format!("{discipline} queue without bound"),
                Some(0) => "no queue".into(),
                Some(capacity) => format!("{discipline} queue of {capacity}"),
            };
            format!("{limit} in service, {queue}")
        }
    }];
    if tier.replicas > 1 {
        parts.push(format!("{} replicas by {}", tier.replicas, tier.balance.name()));
    }
    if tier.concurrency.is_some() {
        parts.push(format!("abandoned work is {}", tier.abandoned.name()));
        let held = if tier.asynchronous { "freed" } else { "held" };
        parts.push(format!("worker {held} while it waits for a callee"));
    }
    parts.push(match tier.drawn {
        Drawn::AtStart => "service drawn at its start".into(),
        Drawn::AtEnqueue => "service drawn at enqueue".into(),
    });
    if tier.min_remaining > Span::ZERO {
        parts.push(format!("no step begins with less than {} left", tier.min_remaining));
    }
    if let Some(admission) = &tier.admission {
        let (rate, burst) = (rate_text(admission.rate), admission.burst);
        parts.push(match admission.window {
            None => format!("rate limit {rate} with bursts of {burst:.0}"),
            Some(window) => format!("rate limit {burst} in each {window}"),
        });
    }
    if tier.errors > 0.0 {
        parts.push(format!("{} fail after their work", share_text(tier.errors)));
    }
    if tier.optimistic {
        parts.push("attempts work on one record, and those that overlap a write fail".into());
    }
    if let Some(write) = &tier.write {
        parts.push(if write.keyed { "writes are keyed" } else { "writes are not keyed" }.into());
    }
    parts.join("; ")
}

fn edge(model: &Model, id: EdgeId) -> String {
    let edge = model.edge(id);
    let mut parts = vec![patience(edge)];
    parts.extend(model.policy(id).describe());
    if let Some(budget) = &edge.budget {
        parts.push(retries_paid(budget));
    }
    if let Some(pool) = &edge.pool {
        let clock = match pool.clock {
            Clock::Attempt => "inside the attempt's clock",
            Clock::Own => "on a clock of its own",
        };
        parts.push(format!("pool of {} for each caller, waited for {clock}", pool.size));
    }
    if let Some(cache) = &edge.cache {
        let late = match cache.late {
            Late::Discard => "thrown away",
            Late::Fill => "kept",
        };
        let age = cache.ttl.map_or("for ever".into(), |ttl| format!("for {ttl}"));
        let start = share_text(cache.start);
        parts.push(format!(
            "cache of {} keys kept {age}, {start} of them at the start, late answers {late}",
            cache.keys
        ));
    }
    if edge.optional {
        let fallback = if edge.fallback.is_some() { " with a fallback" } else { "" };
        parts.push(format!("optional{fallback}"));
    }
    parts.join("; ")
}

fn retries_paid(budget: &Budget) -> String {
    let paid = match budget.debit {
        Debit::Decision => "at decision",
        Debit::Send => "when sent",
    };
    let scope = match budget.scope {
        Scope::Instance => "per instance",
        Scope::Fleet => "for the fleet",
    };
    let rule = match budget.rule {
        Rule::Ratio(rule) => {
            let earned = match rule.deposit {
                Deposit::Success => "successes",
                Deposit::Request => "requests",
            };
            format!("retry budget of {} of {earned}", share_text(rule.ratio))
        }
        Rule::Grpc { max_tokens, token_ratio } => format!(
            "gRPC retry throttling above half of {} tokens, {} for a success",
            f64::from(max_tokens) / 1000.0,
            f64::from(token_ratio) / 1000.0
        ),
        Rule::Aws { tokens, retry_cost, timeout_cost } => format!(
            "AWS retry quota of {tokens} tokens, {retry_cost} for a retry and {timeout_cost} after \
             a timeout"
        ),
        Rule::Concurrent { ratio, least } => format!(
            "retries under way at most {} of calls under way, or {least}",
            share_text(ratio)
        ),
        Rule::Window { ratio, floor, over } => format!(
            "retry budget of {} of the requests of {over}, and {}",
            share_text(ratio),
            rate_text(floor)
        ),
    };
    format!("{rule}, paid {paid}, {scope}")
}

fn patience(edge: &Edge) -> String {
    let mut text = match edge.patience.timeout {
        Some(timeout) => format!("timeout {timeout} for each attempt"),
        None => "no timeout".to_owned(),
    };
    if let Some(deadline) = edge.patience.deadline {
        text.push_str(&format!(", {deadline} for all"));
    }
    text.push_str(if edge.patience.pass {
        ", deadline passed on"
    } else {
        ", deadline not passed on"
    });
    text
}
