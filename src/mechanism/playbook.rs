//! What the operator does, in order: each step waits until its condition has held for a while, then
//! acts.
//!
//! The operator looks at the end of every window, so steps come at whole windows. Nobody looks
//! before the step before has been taken.

use crate::document::{EdgeId, Names, Section, TierId, Value, by_edge, by_tier, list_of};
use crate::kernel::{Span, Time};
use crate::mechanism::admission::Ramp;

/// One `[[playbook]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What the operator waits for.
    pub when: When,
    /// How long it must have held.
    pub held: Span,
    /// What the operator then does, all at once.
    pub actions: Vec<Action>,
}

/// What the operator waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// An instant.
    At(Time),
    /// Time since the last trigger ended.
    AfterTrigger(Span),
    /// Time since the step before.
    After(Span),
    /// Share of finished user requests answered in time, those that a rate limit turned away left
    /// out.
    GoodputAtLeast(f64),
    /// The same, below a share.
    GoodputBelow(f64),
    /// Nobody waits at the tier.
    QueueEmpty(TierId),
    /// The tier has no rate limit any more.
    LimitLifted(TierId),
}

/// What the operator does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Sets the rate limit [1/s] of a tier, or lifts it.
    Limit(TierId, Option<f64>),
    /// Raises the rate limit step by step.
    Ramp(TierId, Ramp),
    /// Switches all retries off or on.
    Retries(bool),
    /// Drops all that wait at a tier.
    Flush(TierId),
    /// Restarts a tier: queue, service and in-process caches are lost; it is down for the given
    /// time.
    Restart(TierId, Span),
    /// Adds replicas.
    Add(TierId, u32),
    /// Fills a share of a cache.
    Warm(EdgeId, f64),
}

/// How far the operator has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    next: usize,
    holding_since: Option<Time>,
    taken_at: Time,
}

/// What the operator sees at the end of a window.
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    /// The end of the window.
    pub now: Time,
    /// Its length.
    pub window: Span,
    /// End of the last trigger.
    pub trigger_end: Time,
    /// Share of finished user requests answered in time, without those a rate limit turned away;
    /// `None` when none finished.
    pub goodput: Option<f64>,
}

impl Progress {
    /// The step that is due, if any; it counts as taken. `waiting` and `limited` tell of a tier.
    pub fn due<'s>(
        &mut self,
        steps: &'s [Step],
        signals: &Signals,
        waiting: impl Fn(TierId) -> usize,
        limited: impl Fn(TierId) -> bool,
    ) -> Option<&'s Step> {
        let step = steps.get(self.next)?;
        let now = signals.now;
        let holds = match step.when {
            When::At(at) => now >= at,
            When::AfterTrigger(span) => now >= signals.trigger_end + span,
            When::After(span) => now >= self.taken_at + span,
            When::GoodputAtLeast(share) => signals.goodput.is_some_and(|goodput| goodput >= share),
            When::GoodputBelow(share) => signals.goodput.is_some_and(|goodput| goodput < share),
            When::QueueEmpty(tier) => waiting(tier) == 0,
            When::LimitLifted(tier) => !limited(tier),
        };
        if !holds {
            self.holding_since = None;
            return None;
        }
        // A window that has just ended in this state counts as held.
        let window_start = Time::ZERO + (now.since(Time::ZERO) - signals.window);
        let since = *self.holding_since.get_or_insert(window_start.max(self.taken_at));
        if now.since(since) < step.held {
            return None;
        }
        *self = Progress { next: self.next + 1, holding_since: None, taken_at: now };
        Some(step)
    }
}

impl Step {
    /// Reads one `[[playbook]]`.
    pub fn read(value: &Value<'_>, names: &Names) -> Option<Self> {
        let section = value.section()?;
        let when = section
            .require("when", "add when = { after_trigger = \"2m\" }")
            .and_then(|v| read_when(&v.section()?, names));
        let actions = read_actions(&section, names);
        let known = section.finish();
        let actions = actions?;
        if actions.is_empty() && known {
            section.fault(
                "the step does nothing",
                "a step is a condition and at least one action",
                "add an action such as limit = { api = \"5000/s\" }",
            );
            return None;
        }
        let (when, held) = when?;
        Some(Step { when, held, actions })
    }
}

fn read_when(section: &Section<'_>, names: &Names) -> Option<(When, Span)> {
    let held = section.get("for").map_or(Some(Span::ZERO), |v| v.duration());
    let mut given = Vec::new();
    for key in ["at", "after_trigger", "after", "goodput", "queue_empty", "limit_lifted"] {
        if let Some(value) = section.get(key) {
            given.push(match key {
                "at" => value.instant().map(When::At),
                "after_trigger" => value.duration().map(When::AfterTrigger),
                "after" => value.duration().map(When::After),
                "goodput" => goodput(&value),
                "queue_empty" => {
                    value.text().and_then(|name| names.tier(name, &value)).map(When::QueueEmpty)
                }
                _ => value.text().and_then(|name| names.tier(name, &value)).map(When::LimitLifted),
            });
        }
    }
    let known = section.finish();
    let [when] = given[..] else {
        if given.is_empty() && !known {
            return None;
        }
        section.fault(
            "a step waits for exactly one condition",
            "conditions are `at`, `after_trigger`, `after`, `goodput`, `queue_empty` and \
            `limit_lifted`",
            "give one, with `for` if it must hold for a while",
        );
        return None;
    };
    Some((when?, held?))
}

/// Reads ">= 99%" or "< 50%".
fn goodput(value: &Value<'_>) -> Option<When> {
    let text = value.text()?.trim();
    let share = |text: &str| {
        let number = text.trim().strip_suffix('%')?.trim().parse::<f64>().ok()?;
        (0.0..=100.0).contains(&number).then_some(number / 100.0)
    };
    let parsed = match (text.strip_prefix(">="), text.strip_prefix('<')) {
        (Some(rest), _) => share(rest).map(When::GoodputAtLeast),
        (_, Some(rest)) => share(rest).map(When::GoodputBelow),
        _ => None,
    };
    if parsed.is_none() {
        let what = format!("`{}` = \"{text}\" is no condition", value.path());
        value.fault(
            &what,
            "it compares the share of requests answered in time",
            "write \">= 99%\" or \"< 50%\"",
        );
    }
    parsed
}

fn read_actions(section: &Section<'_>, names: &Names) -> Option<Vec<Action>> {
    let limit = |v: &Value<'_>| {
        let lifted = v.is_text() && v.text() == Some("none");
        if lifted { Some(None) } else { v.rate().map(Some) }
    };
    let mut parts: Vec<Option<Vec<Action>>> = Vec::new();
    if let Some(value) = section.get("limit") {
        let read = by_tier(&value, names, limit);
        parts.push(
            read.map(|all| all.into_iter().map(|(tier, rate)| Action::Limit(tier, rate)).collect()),
        );
    }
    if let Some(value) = section.get("ramp") {
        let read = by_tier(&value, names, Ramp::read);
        parts.push(
            read.map(|all| all.into_iter().map(|(tier, ramp)| Action::Ramp(tier, ramp)).collect()),
        );
    }
    if let Some(value) = section.get("retries") {
        parts.push(value.word(&[("on", true), ("off", false)]).map(|on| vec![Action::Retries(on)]));
    }
    if let Some(value) = section.get("flush") {
        let read = list_of(&value, |name, v| names.tier(name, v));
        parts.push(read.map(|all| all.into_iter().map(Action::Flush).collect()));
    }
    if let Some(value) = section.get("restart") {
        let read = by_tier(&value, names, Value::duration);
        parts.push(
            read.map(|all| {
                all.into_iter().map(|(tier, down)| Action::Restart(tier, down)).collect()
            }),
        );
    }
    if let Some(value) = section.get("add") {
        let read = by_tier(&value, names, |v| v.whole(1, 10_000));
        parts.push(
            read.map(|all| all.into_iter().map(|(tier, n)| Action::Add(tier, n as u32)).collect()),
        );
    }
    if let Some(value) = section.get("warm") {
        let read = by_edge(&value, names, Value::share);
        parts.push(
            read.map(|all| {
                all.into_iter().map(|(edge, share)| Action::Warm(edge, share)).collect()
            }),
        );
    }
    let parts: Option<Vec<Vec<Action>>> = parts.into_iter().collect();
    parts.map(|parts| parts.into_iter().flatten().collect())
}

impl Action {
    /// As the log of a run says it.
    pub fn describe(&self, names: &Names) -> String {
        let rate = crate::document::rate_text;
        match *self {
            Action::Limit(tier, Some(limit)) => {
                format!("limit {} to {}", names.tier_name(tier), rate(limit))
            }
            Action::Limit(tier, None) => format!("lift the limit of {}", names.tier_name(tier)),
            Action::Ramp(tier, ramp) => {
                let by = crate::document::share_text(ramp.by);
                format!("ramp {} by {by} every {}", names.tier_name(tier), ramp.every)
            }
            Action::Retries(on) => format!("retries {}", if on { "on" } else { "off" }),
            Action::Flush(tier) => format!("flush the queue of {}", names.tier_name(tier)),
            Action::Restart(tier, _) => format!("restart {}", names.tier_name(tier)),
            Action::Add(tier, count) => {
                format!("add {count} replicas to {}", names.tier_name(tier))
            }
            Action::Warm(edge, share) => {
                format!("warm {} to {}", names.edge_name(edge), crate::document::share_text(share))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn signals(now: u64, goodput: Option<f64>) -> Signals {
        Signals { now: at(now), window: Span::from_secs(1), trigger_end: at(10), goodput }
    }

    fn step(when: When, held: u64) -> Step {
        Step { when, held: Span::from_secs(held), actions: vec![Action::Retries(true)] }
    }

    #[test]
    fn a_condition_must_hold_without_a_break() {
        let steps = [step(When::GoodputAtLeast(0.99), 3)];
        let mut progress = Progress::default();
        let mut due = |now, goodput| {
            progress.due(&steps, &signals(now, Some(goodput)), |_| 0, |_| false).is_some()
        };
        assert!(!due(1, 1.0) && !due(2, 1.0));
        assert!(!due(3, 0.5));
        assert!(!due(4, 1.0) && !due(5, 1.0) && due(6, 1.0));
        assert!(!due(7, 1.0));
    }

    #[test]
    fn steps_are_taken_in_order_and_one_at_a_time() {
        let steps = [step(When::AfterTrigger(Span::from_secs(2)), 0), step(When::At(at(3)), 0)];
        let mut progress = Progress::default();
        let mut due = |now| progress.due(&steps, &signals(now, None), |_| 0, |_| false).is_some();
        assert!(!due(5) && !due(11) && due(12) && due(13) && !due(14));
    }

    #[test]
    fn without_finished_requests_no_goodput_condition_holds() {
        let steps = [step(When::GoodputBelow(0.5), 0)];
        let mut progress = Progress::default();
        assert!(progress.due(&steps, &signals(5, None), |_| 0, |_| false).is_none());
    }
}
