//! The checklist: settings that let an outage begin, spread or stay, each with this model's own
//! numbers.
//!
//! Nothing runs here. Rates are those of the normal state ([`Model::normal_flow`]); times held are
//! means without queueing, calls one after the other, so that what is found is there even on a calm
//! day.
//!
//! Source: the checklist is that of the field's incident reports: nested timeouts, passed
//! deadlines, one retrying layer, back-off with jitter and a budget, bounded queues, a rehearsed
//! ramp, keyed writes.

use super::{Edge, Model};
use crate::document::{EdgeId, Fault, TierId, rate_text, share_text};
use crate::kernel::Span;
use crate::mechanism::playbook::Action;
use crate::mechanism::timeout::Abandoned;

/// Above this share of a pool or of servers the wait for one grows without measure.
const BUSY: f64 = 0.8;

/// Everything about a model that is dangerous, in order of place.
pub fn check(model: &Model) -> Vec<Fault> {
    let mut findings = Vec::new();
    for edge in model.edge_ids() {
        findings.extend(nested_timeouts(model, edge));
        findings.extend(patience_without_end(model, edge));
        findings.extend(retries_in_step(model, edge));
        findings.extend(idle_backoff(model, edge));
        findings.extend(retries_without_budget(model, edge));
        findings.extend(small_pool(model, edge));
    }
    for tier in model.tier_ids().filter(|&tier| !model.tier(tier).is_client()) {
        findings.extend(multiplied_retries(model, tier));
        findings.extend(short_capacity(model, tier));
        findings.extend(unbounded_queue(model, tier));
        findings.extend(stale_queue(model, tier));
        findings.extend(unkeyed_write(model, tier));
        findings.extend(unused(model, tier));
    }
    findings.extend(deadline_not_passed(model));
    findings.extend(no_ramp(model));
    findings.sort_by_key(|finding| finding.marks.first().map_or(0, |mark| mark.range.start));
    findings
}

/// The longest that a caller spends on one call; `None`: without end.
fn longest(edge: &Edge) -> Option<Span> {
    let attempts = edge.retry.attempts;
    let own_clock = edge.pool.filter(|pool| pool.clock == crate::mechanism::pool::Clock::Own);
    let wait = own_clock.map_or(Some(Span::ZERO), |pool| pool.wait);
    let all = edge.patience.timeout.zip(wait).map(|(timeout, wait)| {
        (timeout + wait).scaled(f64::from(attempts)) + edge.retry.longest_total()
    });
    match (all, edge.patience.deadline) {
        (Some(all), Some(deadline)) => Some(all.min(deadline)),
        (all, deadline) => all.or(deadline),
    }
}

/// 1a. What a callee may spend on a call of its own must fit into its caller's patience.
fn nested_timeouts(model: &Model, inner: EdgeId) -> Vec<Fault> {
    let rule = model.edge(inner);
    let Some(spent) = longest(rule) else { return Vec::new() };
    let outer = model.edge_ids().filter(|&outer| model.edge(outer).callee == rule.caller);
    outer
        .filter(|&outer| !model.edge(outer).patience.pass)
        .filter_map(|outer| {
            let timeout = model.edge(outer).patience.timeout.filter(|timeout| spent > *timeout)?;
            let (inner_name, outer_name) =
                (model.names.edge_name(inner), model.names.edge_name(outer));
            let attempts = rule.retry.attempts;
            let finding = Fault::finding(
                "nested timeouts",
                format!(
                    "`{inner_name}` may take {spent}, longer than the {timeout} for which \
                `{outer_name}` waits"
                ),
                format!(
                    "with {attempts} attempt{} and their back-off; for up to {} {} works for a \
                    caller that has left",
                    plural(attempts),
                    spent - timeout,
                    model.names.tier_name(rule.caller),
                ),
                format!(
                    "make it fit into {timeout}: a shorter timeout, fewer attempts, a \
                `deadline`, or pass the deadline down"
                ),
            );
            let finding = finding.at(
                edge_place(model, inner, "timeout"),
                format!(
                    "up to \
            {spent}"
                ),
            );
            Some(finding.at(
                edge_place(model, outer, "timeout"),
                format!(
                    "the caller waits \
            {timeout}"
                ),
            ))
        })
        .collect()
}

/// 1b. A call that nobody ever gives up.
fn patience_without_end(model: &Model, edge: EdgeId) -> Option<Fault> {
    let patience = model.edge(edge).patience;
    let inherits = model.edge_ids().any(|outer| {
        model.edge(outer).callee == model.edge(edge).caller && model.edge(outer).patience.pass
    });
    if patience.timeout.is_some() || patience.deadline.is_some() || inherits {
        return None;
    }
    let (name, callee) =
        (model.names.edge_name(edge), model.names.tier_name(model.edge(edge).callee));
    let finding = Fault::finding(
        "no timeout",
        format!("`{name}` waits without end"),
        format!(
            "when {callee} hangs, each call holds its caller's memory, worker and connection for \
            ever"
        ),
        format!("add timeout = \"…\" from the measured p99.9 of {callee}"),
    );
    Some(finding.at(model.place(&model.edge_path(edge)), "no timeout, no deadline"))
}

/// 4a. Callers that fail together come back together.
fn retries_in_step(model: &Model, edge: EdgeId) -> Option<Fault> {
    let retry = &model.edge(edge).retry;
    if retry.attempts < 2 || !retry.in_step() {
        return None;
    }
    let finding = Fault::finding(
        "back-off with jitter",
        format!("`{}` retries without jitter", model.names.edge_name(edge)),
        "callers that fail together try again together, and meet the same full queue".into(),
        "write backoff.exponential = { base = \"100ms\", cap = \"2s\", jitter = \"full\" }".into(),
    );
    Some(finding.at(edge_place(model, edge, "backoff"), "in step"))
}

/// A back-off that never acts.
fn idle_backoff(model: &Model, edge: EdgeId) -> Option<Fault> {
    let path = format!("{}.backoff", model.edge_path(edge));
    if model.edge(edge).retry.attempts > 1 || !model.is_given(&path) {
        return None;
    }
    let finding = Fault::finding(
        "idle back-off",
        format!("`{}` has a back-off and no second attempt", model.names.edge_name(edge)),
        "with attempts = 1 nothing is ever retried".into(),
        "set attempts = 3, or remove the back-off".into(),
    );
    Some(finding.at(model.place(&path), "never acts"))
}

/// 4b. Retries whose total nothing limits.
fn retries_without_budget(model: &Model, edge: EdgeId) -> Option<Fault> {
    let rule = model.edge(edge);
    if rule.retry.attempts < 2 || rule.budget.is_some() {
        return None;
    }
    let normal = model.normal_flow().edges[edge.index()];
    let worst = normal * f64::from(rule.retry.attempts);
    let callee = model.names.tier_name(rule.callee);
    let finding = Fault::finding(
        "retry budget",
        format!("`{}` retries without a budget", model.names.edge_name(edge)),
        format!(
            "when {callee} fails, {} become {} on this edge alone, and stay as long as it fails",
            rate_text(normal),
            rate_text(worst)
        ),
        "add budget = { ratio = \"10%\" }: retries are then at most a tenth of the successes"
            .into(),
    );
    Some(
        finding
            .at(edge_place(model, edge, "attempts"), format!("{} attempts", rule.retry.attempts)),
    )
}

/// 3. Attempts multiply down the path.
fn multiplied_retries(model: &Model, tier: TierId) -> Option<Fault> {
    let (path, product) = model.steepest_path(tier);
    let retrying: Vec<EdgeId> =
        path.iter().copied().filter(|&edge| model.edge(edge).retry.attempts > 1).collect();
    // Said once, at the tier where the product is complete: the last edge is itself one that
    // retries.
    if retrying.len() < 2 || path.last() != retrying.last() {
        return None;
    }
    let factors: Vec<String> =
        retrying.iter().map(|&edge| model.edge(edge).retry.attempts.to_string()).collect();
    let worst = model.worst_flow().tiers[tier.index()];
    let mut finding = Fault::finding(
        "one layer retries",
        format!("{} layers retry on the way {}", retrying.len(), model.path_text(&path)),
        format!(
            "{} = {product} attempts reach {} for one request when it fails: {} in a full \
            outage{}",
            factors.join(" x "),
            model.names.tier_name(tier),
            rate_text(worst),
            against_capacity(model, tier),
        ),
        "retry at one layer alone, best the one nearest to the user".into(),
    );
    for &edge in retrying.iter().rev() {
        finding = finding.at(
            edge_place(model, edge, "attempts"),
            format!("x {}", model.edge(edge).retry.attempts),
        );
    }
    Some(finding)
}

/// 9. Demand, and demand times attempts, against what a tier can do.
fn short_capacity(model: &Model, tier: TierId) -> Option<Fault> {
    let capacity = model.capacity(tier)?;
    let (normal, worst) =
        (model.normal_flow().tiers[tier.index()], model.worst_flow().tiers[tier.index()]);
    let name = model.names.tier_name(tier);
    let place = tier_place(model, tier, "concurrency");
    if normal >= capacity * BUSY {
        let finding = Fault::finding(
            "capacity",
            format!("{name} is {} busy on a calm day", percent(normal / capacity)),
            format!(
                "{} reach it and it can do {}; near its limit queues grow without measure",
                rate_text(normal),
                rate_text(capacity)
            ),
            "add replicas or concurrency, or shorten the work".into(),
        );
        return Some(finding.at(place, rate_text(capacity)));
    }
    if worst <= capacity {
        return None;
    }
    let finding = Fault::finding(
        "vulnerable",
        format!("retries alone can keep {name} down"),
        format!(
            "it can do {} and gets {}, but {} once every attempt fails: a short trigger can \
            start an outage that stays",
            rate_text(capacity),
            rate_text(normal),
            rate_text(worst)
        ),
        format!(
            "cap retries with a budget, or keep attempts x demand below {}",
            rate_text(capacity)
        ),
    );
    Some(finding.at(place, rate_text(capacity)))
}

/// 5a. A queue that takes everyone.
fn unbounded_queue(model: &Model, tier: TierId) -> Option<Fault> {
    let rule = model.tier(tier);
    let capacity = model.capacity(tier)?;
    if rule.queue.capacity.is_some() || rule.queue.max_wait.is_some() {
        return None;
    }
    let patience = shortest_patience(model, tier);
    let wait = patience.map_or(0.5, |(_, timeout)| timeout.seconds() / 2.0);
    let per_replica = wait * capacity / f64::from(rule.replicas);
    let name = model.names.tier_name(tier);
    let finding = Fault::finding(
        "bounded queue",
        format!("the queue of {name} has no bound"),
        "under overload everyone waits longer than anyone will wait, and only the dead are served"
            .into(),
        format!(
            "write queue.fifo = {{ capacity = {:.0} }}: {wait} s of work at {} for each of {} \
            replica{}",
            per_replica.max(1.0),
            rate_text(capacity / f64::from(rule.replicas)),
            rule.replicas,
            plural(rule.replicas),
        ),
    );
    Some(finding.at(tier_place(model, tier, "queue"), "no bound"))
}

/// 5b. A queue that holds more work than its callers wait for, and serves them all the same.
fn stale_queue(model: &Model, tier: TierId) -> Option<Fault> {
    let rule = model.tier(tier);
    let queued = rule.queue.capacity?;
    let capacity = model.capacity(tier)?;
    let (edge, timeout) = shortest_patience(model, tier)?;
    let wait = f64::from(queued) * f64::from(rule.replicas) / capacity;
    if wait <= timeout.seconds() || rule.queue.max_wait.is_some_and(|most| most <= timeout) {
        return None;
    }
    let name = model.names.tier_name(tier);
    let served = match rule.abandoned {
        Abandoned::Finish => "and is served all the same",
        Abandoned::Skip | Abandoned::Interrupt => "and leaves just before its turn",
    };
    let fits = f64::from(queued) * timeout.seconds() / wait / 2.0;
    let finding = Fault::finding(
        "queue against patience",
        format!("the queue of {name} holds {wait:.2} s of work, its callers wait {timeout}"),
        format!("who joins a full queue has left before his turn, {served}"),
        format!(
            "make it capacity = {fits:.0}: half of what `{}` waits for",
            model.names.edge_name(edge)
        ),
    );
    let finding = finding.at(
        tier_place(model, tier, "queue"),
        format!("{queued} waiting x replicas / {}", rate_text(capacity)),
    );
    Some(finding.at(edge_place(model, edge, "timeout"), format!("waits {timeout}")))
}

/// 7. A write that is retried without a key.
fn unkeyed_write(model: &Model, tier: TierId) -> Option<Fault> {
    let write = model.tier(tier).write.as_ref().filter(|write| !write.keyed)?;
    let (path, product) = model.steepest_path(tier);
    if product < 2 {
        return None;
    }
    let lost = path.last().map_or(0.0, |&edge| model.edge(edge).network.reply_loss);
    let rate = model.normal_flow().tiers[tier.index()] * lost;
    let numbers = if lost > 0.0 {
        format!(" ({} of answers are lost: {:.0} a day)", share_text(lost), rate * 86_400.0)
    } else {
        String::new()
    };
    let name = model.names.tier_name(tier);
    let finding = Fault::finding(
        "idempotency key",
        format!("writes of {name} are retried without an idempotency key"),
        format!(
            "an attempt whose answer is lost has had its effect, and the retry has it \
            again{numbers}"
        ),
        format!(
            "write = {{ keyed = true, keep = \"{}\" }}: one key for each operation, re-sent on \
            every attempt",
            write.keep
        ),
    );
    Some(finding.at(tier_place(model, tier, "write"), "not keyed"))
}

/// Nobody calls the tier.
fn unused(model: &Model, tier: TierId) -> Option<Fault> {
    if !model.reaching_clients()[tier.index()].is_empty() {
        return None;
    }
    let name = model.names.tier_name(tier);
    let finding = Fault::finding(
        "unused tier",
        format!("no client reaches {name}"),
        "it stays idle for the whole run".into(),
        "name it in the `calls` of a tier, or remove it".into(),
    );
    Some(finding.at(model.place(&format!("tier.{name}")), "never called"))
}

/// 8. Little's law for a pool: rate times time held.
fn small_pool(model: &Model, edge: EdgeId) -> Option<Fault> {
    let rule = model.edge(edge);
    let pool = rule.pool?;
    let replicas = f64::from(model.tier(rule.caller).replicas);
    let rate = model.normal_flow().edges[edge.index()] / replicas;
    let held = held_seconds(model, rule.callee) + 2.0 * rule.network.delay.mean_seconds();
    let needed = rate * held;
    if needed <= BUSY * f64::from(pool.size) {
        return None;
    }
    let finding = Fault::finding(
        "pool size",
        format!("the pool of `{}` is too small", model.names.edge_name(edge)),
        format!(
            "{} x {:.3} s held = {needed:.1} connections in use on average, of {}",
            rate_text(rate),
            held,
            pool.size
        ),
        format!(
            "make it size = {:.0}, or hold connections for a shorter time",
            (needed / BUSY * 1.25).ceil()
        ),
    );
    Some(finding.at(edge_place(model, edge, "pool"), format!("{} connections", pool.size)))
}

/// Mean time that one attempt is at a tier when it never waits (s).
fn held_seconds(model: &Model, tier: TierId) -> f64 {
    let calls: f64 = model
        .edge_ids()
        .filter(|&edge| model.edge(edge).caller == tier)
        .map(|edge| {
            let flow = model.normal_flow();
            let calls = flow.edges[edge.index()] / flow.tiers[tier.index()].max(1e-12);
            let rule = model.edge(edge);
            calls * (held_seconds(model, rule.callee) + 2.0 * rule.network.delay.mean_seconds())
        })
        .sum();
    model.mean_work(tier) + calls
}

/// 2. and 5c. Deadlines that stay with the caller.
fn deadline_not_passed(model: &Model) -> Option<Fault> {
    let kept: Vec<EdgeId> = model
        .edge_ids()
        .filter(|&edge| {
            let rule = model.edge(edge);
            let impatient = rule.patience.timeout.is_some() || rule.patience.deadline.is_some();
            let told = model.tier(rule.callee).abandoned == Abandoned::Interrupt;
            impatient && !rule.patience.pass && !told
        })
        .collect();
    let first = *kept.first()?;
    let names: Vec<String> = kept.iter().map(|&edge| model.names.edge_name(edge)).collect();
    let mut finding = Fault::finding(
        "deadline passed down",
        format!("the deadline stays with the caller on {}", names.join(", ")),
        "a callee that does not know it works on for callers that have left, and drops nothing \
        before work"
            .into(),
        "add pass_deadline = true here, and min_remaining = \"50ms\" to the callee".into(),
    );
    finding = finding.at(edge_place(model, first, "timeout"), "");
    for &edge in &kept[1..] {
        finding = finding.at(edge_place(model, edge, "timeout"), "");
    }
    Some(finding)
}

/// 6. A trigger without a rehearsed way back.
fn no_ramp(model: &Model) -> Option<Fault> {
    let ramped =
        model.playbook.iter().flat_map(|step| &step.actions).any(|a| matches!(a, Action::Ramp(..)));
    if model.triggers.is_empty() || ramped {
        return None;
    }
    let path = if model.playbook.is_empty() { "trigger" } else { "playbook" };
    let finding = Fault::finding(
        "admission ramp",
        "the playbook has no admission ramp".into(),
        "if this outage stays, the way back is to limit admission and give it back step by step; \
        one that was never \
         rehearsed fails when it is needed"
            .into(),
        "add a [[playbook]] with limit, and one with ramp = { … = { by = \"10%\", every = \
        \"2m\", to = \"…/s\" } }"
            .into(),
    );
    Some(finding.at(model.place(path), ""))
}

/// The caller with the shortest timeout.
fn shortest_patience(model: &Model, tier: TierId) -> Option<(EdgeId, Span)> {
    let into = model.edge_ids().filter(|&edge| model.edge(edge).callee == tier);
    into.filter_map(|edge| Some((edge, model.edge(edge).patience.timeout?)))
        .min_by_key(|(_, timeout)| *timeout)
}

fn against_capacity(model: &Model, tier: TierId) -> String {
    model
        .capacity(tier)
        .map_or(String::new(), |rate| format!(", and it can do {}", rate_text(rate)))
}

fn edge_place(model: &Model, edge: EdgeId, key: &str) -> std::ops::Range<usize> {
    model.place(&format!("{}.{key}", model.edge_path(edge)))
}

fn tier_place(model: &Model, tier: TierId, key: &str) -> std::ops::Range<usize> {
    model.place(&format!("tier.{}.{key}", model.names.tier_name(tier)))
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}
