//! The settings of a run, the criteria of its verdict, and what is checked across tables: triggers
//! against tiers, the playbook against tiers. Also what `--set` does to a file.

use super::tier::{MOST_REQUESTS, System};
use super::{Tier, or};
use crate::document::{EdgeId, Section, TierId, Value, nearest};
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
    /// Longest mean response time, as a multiple of that of the untriggered twin.
    pub slower: f64,
    /// How long goodput must stay there to count as recovered.
    pub hold: Span,
}

/// More windows than this cost memory and show nothing more.
const MOST_WINDOWS: u64 = 20_000;

impl Default for Criteria {
    fn default() -> Self {
        Criteria { healthy: 0.9, slower: 10.0, hold: Span::from_secs(10) }
    }
}

impl Criteria {
    /// Reads `[verdict]`.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        let calm = Criteria::default();
        let healthy = or(section, "healthy", calm.healthy, Value::share);
        let slower = or(section, "slower", calm.slower, |v| v.number_above(1.0, 1e6));
        let hold = or(section, "hold", calm.hold, Value::positive_duration);
        section.finish();
        Some(Criteria { healthy: healthy?, slower: slower?, hold: hold? })
    }
}

impl Run {
    /// Reads `run = { … }`.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        let length = section.require("duration", "add duration = \"10m\"");
        let duration = length.as_ref().and_then(Value::positive_duration);
        let (window_value, warmup_value) = (section.get("window"), section.get("warmup"));
        let window = window_value.as_ref().map(Value::positive_duration);
        let warmup = warmup_value.as_ref().map_or(Some(Span::ZERO), Value::duration);
        let seed = or(section, "seed", 1, |v| v.whole(0, i64::MAX as u64));
        section.finish();
        let (length, duration, warmup) = (length?, duration?, warmup?);
        let window = window.map_or(Some(default_window(duration)), |window| window)?;
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
        let blamed = window_value.or(warmup_value).unwrap_or(length);
        if window > duration - warmup {
            let what = format!("the window of {window} is longer than what is measured");
            let cure = "choose a shorter window, or run longer";
            blamed.fault(&what, "not one window would be complete", cure);
            return None;
        }
        if (duration - warmup).nanos() / window.nanos() > MOST_WINDOWS {
            let what = format!("the run has more than {MOST_WINDOWS} windows");
            let why = "each costs memory, and no plot shows so many";
            blamed.fault(&what, why, "choose a longer window");
            return None;
        }
        Some(Run { duration, window, warmup, seed: seed? })
    }

    /// The end of the run.
    pub fn end(&self) -> Time {
        Time::ZERO + self.duration
    }
}

/// The shortest of 1 s, 10 s, 1 min … that makes at most 3,600 windows; a tenth of a second for
/// runs below 10 s.
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
    let ends = run.is_none_or(|run| ends_within(value, &trigger, run));
    let lever = value.below(&[trigger.lever.name()]);
    // What a faulty tier would be is not known, so nothing is concluded from it.
    let tier = |id: TierId| system.tiers[id.index()].as_ref();
    let name = |id: TierId| system.names.tier_name(id);
    let sound = match &trigger.lever {
        Lever::Demand(tiers) => all(tiers, |(id, surge)| {
            let entry = lever.below(&[name(*id)]);
            tier(*id).is_none_or(|tier| surges(&entry, tier, *surge, &trigger))
        }),
        Lever::Slow(tiers) | Lever::Fail(tiers) => {
            all(tiers, |(id, _)| serves(&lever, name(*id), tier(*id)))
        }
        Lever::Lose(tiers) => all(tiers, |(id, _)| {
            serves(&lever, name(*id), tier(*id)) && has_servers(&lever, name(*id), tier(*id))
        }),
        Lever::Down(tiers) => all(tiers, |(id, _)| serves(&lever, name(*id), tier(*id))),
        Lever::Pause(tiers) => all(tiers, |id| serves(&lever, name(*id), tier(*id))),
        Lever::Flush(edges) => all(edges, |edge| has_cache(&lever, system, *edge)),
        Lever::Delay(_) => true,
    };
    (ends && sound).then_some(trigger)
}

/// True when all hold; each is asked, so that each can tell of its fault.
fn all<T>(items: &[T], holds: impl FnMut(&T) -> bool) -> bool {
    items.iter().map(holds).filter(|held| !held).count() == 0
}

fn ends_within(value: &Value<'_>, trigger: &Trigger, run: &Run) -> bool {
    if trigger.at >= run.end() {
        let what =
            format!("the trigger begins at {}, and the run ends at {}", trigger.at, run.end());
        let cure = "begin earlier, or run longer";
        value.below(&["at"]).fault(&what, "it would never act", cure);
        return false;
    }
    if trigger.until > run.end() {
        value.below(&["lasts"]).fault(
            &format!("the trigger ends at {}, after the run at {}", trigger.until, run.end()),
            "what stays after a trigger is the question, and nothing would be left to see",
            "shorten it, or run longer",
        );
        return false;
    }
    true
}

/// Whether the demand of a tier can be moved so.
fn surges(entry: &Value<'_>, tier: &Tier, surge: Surge, trigger: &Trigger) -> bool {
    let Some(arrivals) = &tier.arrivals else {
        let what = format!("`{}` has no arrivals whose demand could change", entry.key());
        entry.key_fault(&what, "demand belongs to clients", "name the client tier");
        return false;
    };
    let (what, why, cure) = match arrivals {
        Arrivals::Trace(_) if !matches!(surge, Surge::Burst { .. }) => (
            "a trace has no rate to multiply".to_owned(),
            "its arrivals are fixed instants",
            "use a burst, or put the surge into the trace",
        ),
        Arrivals::Herd(_) => (
            "a herd has no demand to move".to_owned(),
            "each of its clients comes once",
            "give the herd more clients, or let others come from a client tier of their own",
        ),
        Arrivals::Closed { .. } if surge.top() < 1.0 => (
            "a closed loop cannot be thinned".to_owned(),
            "each of its clients waits for its own answer",
            "use a factor above 1",
        ),
        _ => {
            let lasts = trigger.until.since(trigger.at);
            let requests = arrivals.rate(lasts) * surge.top() * lasts.seconds();
            if requests <= MOST_REQUESTS {
                return true;
            }
            let what = format!("{requests:.0e} requests would arrive in {lasts}");
            (what, "more than 1e12 cannot be simulated in any reasonable time", "lower the factor")
        }
    };
    entry.fault(&what, why, cure);
    false
}

fn serves(lever: &Value<'_>, name: &str, tier: Option<&Tier>) -> bool {
    let serves = tier.is_none_or(|tier| !tier.is_client());
    if !serves {
        lever.entry(name).name_fault(
            name,
            &format!("`{name}` is a client and does not serve"),
            "users have neither service nor servers that could be moved",
            "name a tier that serves",
        );
    }
    serves
}

fn has_servers(lever: &Value<'_>, name: &str, tier: Option<&Tier>) -> bool {
    let bounded = tier.is_none_or(|tier| tier.concurrency.is_some());
    if !bounded {
        let what = format!("`{name}` has no servers to lose");
        let cure = format!("add concurrency = 100 to [tier.{name}]");
        lever.entry(name).name_fault(name, &what, "its concurrency is unlimited", &cure);
    }
    bounded
}

fn has_cache(list: &Value<'_>, system: &System, edge: EdgeId) -> bool {
    let cached = system.edges[edge.index()].as_ref().is_none_or(|edge| edge.cache.is_some());
    if !cached {
        let name = system.names.edge_name(edge);
        let what = format!("there is no cache on the edge `{name}`");
        let why = "nothing would be flushed or warmed";
        list.entry(&name).name_fault(
            &name,
            &what,
            why,
            "add cache = { keys = 10000 } to the \
        edge",
        );
    }
    cached
}

/// Reads a step of the playbook and holds it against the system.
pub fn step(value: &Value<'_>, system: &System) -> Option<Step> {
    let step = Step::read(value, &system.names)?;
    let sound = all(&step.actions, |action| {
        let (key, id) = match *action {
            Action::Limit(tier, _) => ("limit", tier),
            Action::Ramp(tier, _) => ("ramp", tier),
            Action::Flush(tier) => ("flush", tier),
            Action::Restart(tier, _) => ("restart", tier),
            Action::Add(tier, _) => ("add", tier),
            Action::Retries(_) => return true,
            Action::Warm(edge, _) => return has_cache(&value.below(&["warm"]), system, edge),
        };
        let tier = system.tiers[id.index()].as_ref();
        serves(&value.below(&[key]), system.names.tier_name(id), tier)
    });
    sound.then_some(step)
}

/// The text of a model with `path=value` settings written into it. Lines keep their numbers where a
/// value is replaced.
///
/// A value that is not TOML by itself is taken as a string, so that
/// `tier.api.queue.fifo.capacity=10` and `tier.client.call.api.timeout=250ms` both do what they
/// say.
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
        // Diagnostics write list elements as trigger[0]; both ways lead there.
        let plain = path.trim().replace('[', ".").replace(']', "");
        let mut item = document.as_item_mut();
        let mut names_something = false;
        for part in plain.split('.') {
            // A mistyped name would make a new tier that nobody calls, and the answer to the
            // what-if would be that nothing changes.
            if names_something
                && let Some(table) = item.as_table_like()
                && !table.contains_key(part)
            {
                let cure = nearest(part, table.iter().map(|(name, _)| name));
                return Err(format!("`{path}`: the model has no `{part}` there; {cure}"));
            }
            names_something = matches!(part, "tier" | "call" | "class");
            item =
                descend(item, part).ok_or_else(|| format!("`{path}` leads nowhere at `{part}`"))?;
        }
        // What has a [header] cannot become a value; it would vanish from the text. `queue.fifo =
        // …` can.
        let has_header = item.as_table().is_some_and(|table| !table.is_dotted());
        if has_header || item.is_array_of_tables() {
            return Err(format!("`{path}` is a table; set the values in it"));
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
    if part.is_empty() {
        return None;
    }
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
        assert_eq!(
            set("tier.api.queue=none"),
            text.replace("queue.fifo = { capacity = 5 }", "queue = \"none\"")
        );
    }

    #[test]
    fn a_setting_that_leads_nowhere_is_refused() {
        let text = "run = { duration = \"10m\" }\n[tier.api]\n\
            calls = [\"db\"]\n[[trigger]]\nat = \"1m\"\n";
        for setting in [
            "run.duration",
            "=5",
            "run..duration=1m",
            "run.=1m",
            "trigger.7.at=2m",
            "trigger.7=5",
            "trigger.at=2m",
            "tier.api.calls.1=cache",
            "run.duration.s=5",
            "trigger.0=5",
        ] {
            let changed = overridden(text, &[setting.to_owned()]);
            assert!(changed.is_err(), "{setting}: {changed:?}");
        }
        let set = |setting: &str| overridden(text, &[setting.to_owned()]).unwrap();
        assert_eq!(set("trigger.0.at=2m"), text.replace("1m", "2m"));
        assert_eq!(set("tier.api.calls.0=cache"), text.replace("db", "cache"));
        assert!(set("tier.api.call.db.timeout=1s").parse::<toml_edit::DocumentMut>().is_ok());
    }

    #[test]
    fn the_default_window_gives_neither_few_nor_many() {
        assert_eq!(default_window(Span::from_secs(5)), Span::from_millis(100));
        assert_eq!(default_window(Span::from_secs(40)), Span::from_secs(1));
        assert_eq!(default_window(Span::from_secs(3600)), Span::from_secs(1));
        assert_eq!(default_window(Span::from_secs(86_400)), Span::from_secs(60));
    }
}
