//! The settings of a run, the criteria of its verdict, and what is checked across tables: triggers against tiers, the
//! playbook against tiers. Also what `--set` does to a file.

use super::or;
use super::tier::System;
use crate::document::{Section, Value};
use crate::kernel::{Span, Time};
use crate::mechanism::arrival::{Arrivals, Surge};
use crate::mechanism::playbook::{Action, Step};
use crate::mechanism::trigger::{Lever, Trigger};

/// `run = { … }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Length of the run.
    pub duration: Span,
    /// Length of a window of measurement.
    pub window: Span,
    /// Time at the start that is not measured.
    pub warmup: Span,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// `[verdict]`: when a stretch of the run counts as healthy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criteria {
    /// Least goodput as a share of demand.
    pub healthy: f64,
    /// How long goodput must stay there to count as recovered.
    pub hold: Span,
}

/// More windows than this cost memory and show nothing more.
const MOST_WINDOWS: u64 = 20_000;

impl Default for Criteria {
    fn default() -> Self {
        Criteria { healthy: 0.9, hold: Span::from_secs(10) }
    }
}

impl Criteria {
    /// Reads `[verdict]`.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        let calm = Criteria::default();
        let healthy = or(section, "healthy", calm.healthy, Value::share);
        let hold = or(section, "hold", calm.hold, Value::positive_duration);
        section.finish();
        Some(Criteria { healthy: healthy?, hold: hold? })
    }
}

impl Run {
    /// Reads `run = { … }`.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        let duration = section
            .require("duration", "add duration = \"10m\"")
            .and_then(|v| v.positive_duration());
        let window_value = section.get("window");
        let warmup_value = section.get("warmup");
        let seed = or(section, "seed", 1, |v| v.whole(0, i64::MAX as u64));
        section.finish();
        let duration = duration?;
        let window = window_value
            .as_ref()
            .map_or(Some(default_window(duration)), Value::positive_duration)?;
        let warmup = warmup_value.as_ref().map_or(Some(Span::ZERO), Value::duration)?;
        if let Some(value) = &warmup_value
            && warmup >= duration
        {
            value.fault(
                "the warm-up is as long as the run",
                "nothing would be measured",
                "shorten it, or run longer",
            );
            return None;
        }
        if window > duration - warmup {
            let what = "the window is longer than what is measured";
            section.fault(what, "not one window would be complete", "choose a shorter window");
            return None;
        }
        if (duration - warmup).nanos() / window.nanos() > MOST_WINDOWS {
            let what = format!("the run has more than {MOST_WINDOWS} windows");
            section.fault(
                &what,
                "each costs memory, and no plot shows so many",
                "choose a longer window",
            );
            return None;
        }
        Some(Run { duration, window, warmup, seed: seed? })
    }

    /// The end of the run.
    pub fn end(&self) -> Time {
        Time::ZERO + self.duration
    }
}

/// The shortest of 1 s, 10 s, 1 min … that makes at most 3,600 windows; a tenth of a second for runs below 10 s.
fn default_window(duration: Span) -> Span {
    let choices =
        [Span::from_millis(100), Span::from_secs(1), Span::from_secs(10), Span::from_secs(60)];
    let most = |window: &Span| {
        let least_worthwhile = if *window < Span::from_secs(1) { 100 } else { 3_600 };
        duration.nanos() / window.nanos() <= least_worthwhile
    };
    choices.into_iter().find(most).unwrap_or(Span::from_nanos(duration.nanos() / 3_600))
}

/// Reads a trigger and holds it against the system.
pub fn trigger(value: &Value<'_>, system: &System, run: Option<&Run>) -> Option<Trigger> {
    let trigger = Trigger::read(value, &system.names)?;
    let mut sound = true;
    let mut refuse = |what: &str, why: &str, cure: &str| {
        value.fault(what, why, cure);
        sound = false;
    };
    if run.is_some_and(|run| trigger.at >= run.end()) {
        refuse(
            "the trigger begins after the end of the run",
            "it would never act",
            "begin earlier, or run longer",
        );
    } else if run.is_some_and(|run| trigger.until > run.end()) {
        refuse(
            "the trigger outlives the run",
            "what stays after a trigger is the question, and nothing would be left to see",
            "shorten it, or run longer",
        );
    }
    let name = |tier| system.names.tier_name(tier).to_owned();
    let client = |tier: crate::document::TierId| system.tiers[tier.index()].arrivals.as_ref();
    match &trigger.lever {
        Lever::Demand(tiers) => {
            for (tier, surge) in tiers {
                match client(*tier) {
                    None => refuse(
                        &format!("`{}` has no arrivals whose demand could change", name(*tier)),
                        "demand belongs to clients",
                        "name the client tier",
                    ),
                    Some(Arrivals::Trace(_)) if !matches!(surge, Surge::Burst { .. }) => refuse(
                        "a trace has no rate to multiply",
                        "its arrivals are fixed instants",
                        "use a burst, or put the surge into the trace",
                    ),
                    Some(Arrivals::Closed { .. }) if surge.top() < 1.0 => refuse(
                        "a closed loop cannot be thinned",
                        "each of its clients waits for its own answer",
                        "use a factor above 1",
                    ),
                    Some(_) => {}
                }
            }
        }
        Lever::Slow(tiers) | Lever::Lose(tiers) | Lever::Fail(tiers) => {
            for (tier, _) in tiers {
                if client(*tier).is_some() {
                    refuse(
                        &format!("`{}` is a client and does not serve", name(*tier)),
                        "it has neither service nor servers",
                        "name a tier that serves",
                    );
                }
                if matches!(trigger.lever, Lever::Lose(_))
                    && system.tiers[tier.index()].concurrency.is_none()
                {
                    refuse(
                        &format!("`{}` has no servers to lose", name(*tier)),
                        "its concurrency is unlimited",
                        "give it a concurrency",
                    );
                }
            }
        }
        Lever::Down(tiers) => tiers.iter().for_each(|(tier, _)| {
            if client(*tier).is_some() {
                refuse("a client cannot be down", "it is not called", "name a tier that serves");
            }
        }),
        Lever::Flush(edges) => edges.iter().for_each(|edge| {
            if !has_cache(system, *edge) {
                refuse(
                    "there is no cache on this edge",
                    "nothing would be flushed",
                    "add cache = { … } to the edge",
                );
            }
        }),
        Lever::Pause(_) | Lever::Delay(_) => {}
    }
    sound.then_some(trigger)
}

/// Reads a step of the playbook and holds it against the system.
pub fn step(value: &Value<'_>, system: &System) -> Option<Step> {
    let step = Step::read(value, &system.names)?;
    let mut sound = true;
    for action in &step.actions {
        let served = match *action {
            Action::Limit(tier, _) | Action::Ramp(tier, _) | Action::Flush(tier) => Some(tier),
            Action::Restart(tier, _) | Action::Add(tier, _) => Some(tier),
            Action::Retries(_) | Action::Warm(..) => None,
        };
        if served.is_some_and(|tier| system.tiers[tier.index()].is_client()) {
            let what = "the operator cannot act on a client";
            value.fault(what, "users are not under control", "name a tier that serves");
            sound = false;
        }
        if let Action::Warm(edge, _) = *action
            && !has_cache(system, edge)
        {
            value.fault(
                "there is no cache on this edge",
                "nothing would be warmed",
                "add cache = { … } to the edge",
            );
            sound = false;
        }
    }
    sound.then_some(step)
}

fn has_cache(system: &System, edge: crate::document::EdgeId) -> bool {
    system.edges[edge.index()].cache.is_some()
}

/// The text of a model with `path=value` settings written into it. Lines keep their numbers where a value is replaced.
///
/// A value that is not TOML by itself is taken as a string, so that `tier.api.queue.fifo.capacity=10` and
/// `tier.client.call.api.timeout=250ms` both do what they say.
///
/// # Errors
/// A sentence that says what is wrong with the setting.
pub fn overridden(text: &str, settings: &[String]) -> Result<String, String> {
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    for setting in settings {
        let (path, value) = setting.split_once('=').ok_or_else(|| {
            format!("`{setting}` is no setting; write path=value, such as run.duration=1m")
        })?;
        let value = value.trim();
        let value: toml_edit::Value = value.parse().unwrap_or_else(|_| value.into());
        let mut item = document.as_item_mut();
        for part in path.trim().split('.') {
            item = descend(item, part)
                .ok_or_else(|| format!("`{path}` leads through something that is no table"))?;
        }
        let decor = item.as_value().map(|old| old.decor().clone());
        *item = toml_edit::Item::Value(value);
        if let (Some(decor), Some(new)) = (decor, item.as_value_mut()) {
            *new.decor_mut() = decor;
        }
    }
    Ok(document.to_string())
}

/// The entry `part` of a table, made if it is missing, or the item of that number of a list.
fn descend<'i>(item: &'i mut toml_edit::Item, part: &str) -> Option<&'i mut toml_edit::Item> {
    if let Ok(index) = part.parse::<usize>()
        && (item.is_array_of_tables() || item.is_array())
    {
        return item.get_mut(index);
    }
    if item.is_none() {
        *item =
            toml_edit::Item::Value(toml_edit::Value::InlineTable(toml_edit::InlineTable::new()));
    }
    item.is_table_like().then(|| &mut item[part])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_replaces_a_value_and_leaves_the_lines() {
        let text =
            "run = { duration = \"10m\" } # long\n[tier.api]\nqueue.fifo = { capacity = 5 }\n";
        let set = |setting: &str| overridden(text, &[setting.to_owned()]).unwrap();
        assert_eq!(set("tier.api.queue.fifo.capacity=7"), text.replace("= 5", "= 7"));
        assert_eq!(set("run.duration=1m"), text.replace("10m", "1m"));
        assert!(set("tier.api.work.constant=5ms").contains("constant = \"5ms\""));
    }

    #[test]
    fn the_default_window_gives_neither_few_nor_many() {
        assert_eq!(default_window(Span::from_secs(5)), Span::from_millis(100));
        assert_eq!(default_window(Span::from_secs(40)), Span::from_secs(1));
        assert_eq!(default_window(Span::from_secs(3600)), Span::from_secs(1));
        assert_eq!(default_window(Span::from_secs(86_400)), Span::from_secs(60));
    }
}
