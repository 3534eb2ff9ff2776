//! The passing disturbance: one lever moved, at an instant, for a while.
//!
//! A trigger only writes [`Conditions`]; extra demand is a source of its own, and a flush happens
//! once.

use crate::document::{EdgeId, Names, Section, TierId, Value, by_edge, by_tier, list_of, listing};
use crate::kernel::{Span, Time};
use crate::mechanism::arrival::Surge;
use crate::mechanism::conditions::{Conditions, Outage};

/// One `[[trigger]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// Begins.
    pub at: Time,
    /// Ends.
    pub until: Time,
    /// What it moves.
    pub lever: Lever,
}

/// What a trigger moves.
#[derive(Clone, Debug, PartialEq)]
pub enum Lever {
    /// Demand of client tiers.
    Demand(Vec<(TierId, Surge)>),
    /// Service takes so many times as long.
    Slow(Vec<(TierId, f64)>),
    /// Share of the servers lost.
    Lose(Vec<(TierId, f64)>),
    /// Share of attempts that fail.
    Fail(Vec<(TierId, f64)>),
    /// Outage.
    Down(Vec<(TierId, Outage)>),
    /// Extra network delay, each way.
    Delay(Vec<(EdgeId, Span)>),
    /// Everything stands still, as in a stop-the-world collection.
    Pause(Vec<TierId>),
    /// Caches emptied, once.
    Flush(Vec<EdgeId>),
}

/// The keys of the levers.
pub const LEVERS: [&str; 8] = ["demand", "slow", "lose", "fail", "down", "delay", "pause", "flush"];

impl Trigger {
    /// Reads one `[[trigger]]`.
    pub fn read(value: &Value<'_>, names: &Names) -> Option<Self> {
        let section = value.section()?;
        let at = section.require("at", "add at = \"2m\"").and_then(|v| v.instant());
        let lasts = section.get("lasts").map(|v| v.positive_duration());
        let given: Vec<Value<'_>> = LEVERS.iter().filter_map(|&lever| section.get(lever)).collect();
        let known = section.finish();
        // Every lever is read, so that too many of them do not hide what is wrong within.
        let mut levers: Vec<Option<Lever>> =
            given.iter().map(|lever| Lever::read(lever, names)).collect();
        let [lever] = &given[..] else {
            if known || !given.is_empty() {
                refuse_lever_count(&section, &given);
            }
            return None;
        };
        let lever_read = levers.pop()?;
        if lasts.is_none() && lever.key() != "flush" {
            // A mistyped key is told already, and may have been this one.
            if known {
                section.fault(
                    "`lasts` is missing in the trigger",
                    "a trigger passes; what stays is the normal state",
                    "add lasts = \"1m\"",
                );
            }
            return None;
        }
        let at = at?;
        let until = lasts.map_or(Some(at), |span| span.map(|span| at + span))?;
        Some(Trigger { at, until, lever: lever_read? })
    }
}

/// None, or more than one: then the second is the one too many.
fn refuse_lever_count(section: &Section<'_>, given: &[Value<'_>]) {
    let what = match given.len() {
        0 => "the trigger moves no lever".to_owned(),
        count => format!("the trigger moves {count} levers at once"),
    };
    let why = format!("it moves exactly one of {}", listing(&LEVERS));
    match given.get(1) {
        None => section.fault(&what, &why, "add a lever such as demand = { client = 2.5 }"),
        Some(second) => second.key_fault(
            &what,
            &why,
            "move this one into a [[trigger]] of its own, with the same `at` and `lasts`",
        ),
    }
}

impl Lever {
    fn read(value: &Value<'_>, names: &Names) -> Option<Self> {
        let factor = |v: &Value<'_>| v.number_above(0.0, 1e6);
        Some(match value.key() {
            "demand" => Lever::Demand(by_tier(value, names, Surge::read)?),
            "slow" => Lever::Slow(by_tier(value, names, factor)?),
            "lose" => Lever::Lose(by_tier(value, names, Value::share)?),
            "fail" => Lever::Fail(by_tier(value, names, Value::share)?),
            "down" => Lever::Down(by_tier(value, names, |v| {
                v.word(&[
                    ("fail", Outage::Fail),
                    ("black-hole", Outage::BlackHole),
                    ("hold", Outage::Hold),
                ])
            })?),
            "delay" => Lever::Delay(by_edge(value, names, Value::positive_duration)?),
            "pause" => Lever::Pause(list_of(value, |name, v| names.tier(name, v))?),
            _ => Lever::Flush(list_of(value, |name, v| names.edge(name, v))?),
        })
    }

    /// Moves the levers.
    pub fn apply(&self, conditions: &mut Conditions) {
        match self {
            Lever::Demand(tiers) => {
                for (tier, surge) in tiers {
                    conditions.tier_mut(*tier).demand *= surge.top().min(1.0);
                }
            }
            Lever::Slow(tiers) => {
                tiers.iter().for_each(|(tier, f)| conditions.tier_mut(*tier).slow *= f)
            }
            Lever::Lose(tiers) => {
                for (tier, share) in tiers {
                    let lost = &mut conditions.tier_mut(*tier).lost;
                    *lost = (*lost + share).min(1.0);
                }
            }
            Lever::Fail(tiers) => {
                for (tier, share) in tiers {
                    let fail = &mut conditions.tier_mut(*tier).fail;
                    *fail += share - *fail * share;
                }
            }
            Lever::Down(tiers) => {
                tiers
                    .iter()
                    .for_each(|(tier, outage)| conditions.tier_mut(*tier).outage = Some(*outage));
            }
            Lever::Delay(edges) => edges.iter().for_each(|(edge, span)| {
                let delay = conditions.delay_mut(*edge);
                *delay = *delay + *span;
            }),
            Lever::Pause(tiers) => {
                tiers.iter().for_each(|tier| conditions.tier_mut(*tier).paused = true)
            }
            Lever::Flush(_) => {}
        }
    }

    /// As the log of a run says it: "demand of client x 2.5".
    pub fn describe(&self, names: &Names) -> String {
        let tier = |tier: &TierId| names.tier_name(*tier).to_owned();
        let share = crate::document::share_text;
        let parts: Vec<String> = match self {
            Lever::Demand(tiers) => tiers
                .iter()
                .map(|(id, surge)| match surge {
                    Surge::Burst { requests, .. } => format!("{} + {requests}", tier(id)),
                    _ => format!("{} x {}", tier(id), surge.top()),
                })
                .collect(),
            Lever::Slow(tiers) => {
                tiers.iter().map(|(id, f)| format!("{} x {f}", tier(id))).collect()
            }
            Lever::Lose(tiers) | Lever::Fail(tiers) => {
                tiers.iter().map(|(id, part)| format!("{} {}", tier(id), share(*part))).collect()
            }
            Lever::Down(tiers) => tiers.iter().map(|(id, _)| tier(id)).collect(),
            Lever::Delay(edges) => {
                edges.iter().map(|(id, by)| format!("{} + {by}", names.edge_name(*id))).collect()
            }
            Lever::Pause(tiers) => tiers.iter().map(tier).collect(),
            Lever::Flush(edges) => edges.iter().map(|id| names.edge_name(*id)).collect(),
        };
        format!("{} ({})", self.name(), parts.join(", "))
    }

    /// The key of the model file, for logs and plots.
    pub fn name(&self) -> &'static str {
        match self {
            Lever::Demand(_) => "demand",
            Lever::Slow(_) => "slow",
            Lever::Lose(_) => "lose",
            Lever::Fail(_) => "fail",
            Lever::Down(_) => "down",
            Lever::Delay(_) => "delay",
            Lever::Pause(_) => "pause",
            Lever::Flush(_) => "flush",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_triggers_on_one_lever_combine() {
        let tier = TierId(0);
        let mut conditions = Conditions::calm(1, 0);
        Lever::Slow(vec![(tier, 2.0)]).apply(&mut conditions);
        Lever::Slow(vec![(tier, 3.0)]).apply(&mut conditions);
        Lever::Lose(vec![(tier, 0.7)]).apply(&mut conditions);
        Lever::Lose(vec![(tier, 0.7)]).apply(&mut conditions);
        Lever::Fail(vec![(tier, 0.5)]).apply(&mut conditions);
        Lever::Fail(vec![(tier, 0.5)]).apply(&mut conditions);
        let levers = conditions.tier(tier);
        assert_eq!((levers.slow, levers.lost, levers.fail), (6.0, 1.0, 0.75));
        conditions.calm_down();
        assert_eq!(conditions.tier(tier).slow, 1.0);
    }

    #[test]
    fn more_demand_leaves_the_base_source_alone_and_less_thins_it() {
        let tier = TierId(0);
        let mut conditions = Conditions::calm(1, 0);
        Lever::Demand(vec![(tier, Surge::Step(2.5))]).apply(&mut conditions);
        assert_eq!(conditions.tier(tier).demand, 1.0);
        Lever::Demand(vec![(tier, Surge::Step(0.4))]).apply(&mut conditions);
        assert_eq!(conditions.tier(tier).demand, 0.4);
    }
}
