//! The model: a TOML document made sound. Names have become indices, defaults are filled in, all
//! faults are known.
//!
//! [`Model::parse`] reads the whole file and gives either a model that can run or every fault of
//! it.

mod assumptions;
mod check;
mod edge;
mod expect;
mod graph;
mod policy;
mod preset;
mod program;
mod settings;
mod syntax;
mod tier;

use std::collections::HashMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::document::{EdgeId, Fault, Faults, Names, Section, TierId, Value};
use crate::kernel::{Key, Span, Time};
use crate::mechanism::admission::Admission;
use crate::mechanism::arrival::Arrivals;
use crate::mechanism::balance::Balance;
use crate::mechanism::breaker::Breaker;
use crate::mechanism::budget::Budget;
use crate::mechanism::cache::Cache;
use crate::mechanism::idempotency::Write;
use crate::mechanism::leave;
use crate::mechanism::network::Network;
use crate::mechanism::outcome::{Outcome, Status};
use crate::mechanism::pace::Pace;
use crate::mechanism::playbook::Step;
use crate::mechanism::pool::Pool;
use crate::mechanism::queue::Queue;
use crate::mechanism::refusal::Refusal;
use crate::mechanism::retry::{Retry, Setback};
use crate::mechanism::throttle::Throttle;
use crate::mechanism::timeout::{Abandoned, Patience};
use crate::mechanism::timer::Timer;
use crate::mechanism::trigger::Trigger;
use crate::mechanism::work::{Drawn, Work};

pub use assumptions::assumptions;
pub use check::check;
pub use expect::{Expect, Range as ExpectedRange};
pub use policy::{Policies, Policy};
pub use preset::{PRESETS, Preset};
pub use program::{Op, Program};
pub use settings::{Criteria, Run, overridden};

/// A model that can run.
#[derive(Clone, Debug)]
pub struct Model {
    /// One line.
    pub title: String,
    /// Where its numbers come from.
    pub source: String,
    /// Length, windows, seed.
    pub run: Run,
    /// In order of the file.
    pub tiers: Vec<Tier>,
    /// In order of the file.
    pub edges: Vec<Edge>,
    /// Request classes; the first is that of clients without classes.
    pub classes: Vec<String>,
    /// Retry policies of its own.
    pub policies: Policies,
    /// In order of the file.
    pub triggers: Vec<Trigger>,
    /// What the operator does, in order.
    pub playbook: Vec<Step>,
    /// When goodput counts as healthy.
    pub criteria: Criteria,
    /// What must come out.
    pub expect: Expect,
    /// Names of tiers and edges.
    pub names: Names,
    places: HashMap<String, Range<usize>>,
}

/// A named group of replicas, or of clients.
#[derive(Clone, Debug)]
pub struct Tier {
    /// Where its user requests come from; `None` for servers.
    pub arrivals: Option<Arrivals>,
    /// Shares of the classes of its requests, added up; clients only.
    pub mix: Vec<(f64, u16)>,
    /// Replicas, or client identities.
    pub replicas: u32,
    /// In service at once, for each replica; `None`: unlimited.
    pub concurrency: Option<u32>,
    /// Who waits.
    pub queue: Queue,
    /// Which replica.
    pub balance: Balance,
    /// What becomes of work whose caller has left.
    pub abandoned: Abandoned,
    /// When the length of service is fixed.
    pub drawn: Drawn,
    /// Whether the worker is free while it waits for a callee.
    pub asynchronous: bool,
    /// Least remaining time before a passed deadline for which it still begins a step.
    pub min_remaining: Span,
    /// Rate limit.
    pub admission: Option<Admission>,
    /// What it answers when it turns an attempt away.
    pub refusal: Refusal,
    /// Share of attempts that end in an error after their work.
    pub errors: f64,
    /// The status of such an error.
    pub error_status: Status,
    /// Whether its attempts work on one record, and conflict.
    pub optimistic: bool,
    /// Writes, and whether they are keyed.
    pub write: Option<Write>,
    /// What it does, by class.
    pub programs: Vec<Program>,
    /// The clock by which its clients act; `None`: one without grain. Clients only.
    pub timer: Option<Timer>,
    /// How long its users wait; `None`: for ever. Clients only.
    pub leave: Option<leave::Patience>,
}

/// What a tier does about one callee.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Who calls.
    pub caller: TierId,
    /// Who is called.
    pub callee: TierId,
    /// Timeout and deadline.
    pub patience: Patience,
    /// Attempts, back-off, what is retried.
    pub retry: Retry,
    /// Cap on the total of retries.
    pub budget: Option<Budget>,
    /// Attempts that the caller turns away itself.
    pub throttle: Option<Throttle>,
    /// When it calls no more for a while.
    pub breaker: Option<Breaker>,
    /// Whether it slows down where it is throttled.
    pub pace: Option<Pace>,
    /// Connections.
    pub pool: Option<Pool>,
    /// The way there.
    pub network: Network,
    /// Answers kept by the caller.
    pub cache: Option<Cache>,
    /// Whether the caller can do without the answer.
    pub optional: bool,
    /// Work done in place of a failed optional call.
    pub fallback: Option<Work>,
}

impl Model {
    /// Reads a model from its text; `file` gives the text of files that the model names.
    ///
    /// # Errors
    /// Every fault of the file, in order of place.
    pub fn parse(
        text: &str,
        file: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Model, Vec<Fault>> {
        let faults = Faults::default();
        let (table, errors) = DeTable::parse_recoverable(text);
        if !syntax::note(text, &errors, &faults) {
            return Err(faults.into_sorted());
        }
        let mut places = HashMap::new();
        note_places("", table.get_ref(), &mut places);
        let model = read(&Section::root(table.get_ref(), &faults), &faults, file, places);
        match model {
            Some(model) if faults.is_empty() => Ok(model),
            _ => {
                debug_assert!(!faults.is_empty(), "a model is refused for a reason");
                Err(faults.into_sorted())
            }
        }
    }

    /// The tier of an id.
    #[inline]
    pub fn tier(&self, tier: TierId) -> &Tier {
        &self.tiers[tier.index()]
    }

    /// The edge of an id.
    #[inline]
    pub fn edge(&self, edge: EdgeId) -> &Edge {
        &self.edges[edge.index()]
    }

    /// All tiers with their ids.
    pub fn tier_ids(&self) -> impl Iterator<Item = TierId> + use<> {
        (0..self.tiers.len()).map(|index| TierId(index as u16))
    }

    /// All edges with their ids.
    pub fn edge_ids(&self) -> impl Iterator<Item = EdgeId> + use<> {
        (0..self.edges.len()).map(|index| EdgeId(index as u16))
    }

    /// The same system left in peace: no trigger, and so no operator.
    pub fn untriggered(&self) -> Model {
        Model { triggers: Vec::new(), playbook: Vec::new(), ..self.clone() }
    }

    /// The same system with this retry policy on some edges.
    pub fn under(&self, edges: &[EdgeId], policy: &Policy) -> Model {
        let mut model = self.clone();
        for edge in edges {
            let edge = &mut model.edges[edge.index()];
            edge.retry = policy.retry.clone();
            (edge.budget, edge.throttle) = (policy.budget, policy.throttle);
            (edge.breaker, edge.pace) = (policy.breaker, policy.pace);
        }
        model
    }

    /// From the beginning of the first trigger to the end of the last; `None` without triggers.
    pub fn trigger_span(&self) -> Option<(Time, Time)> {
        let first = self.triggers.iter().map(|trigger| trigger.at).min()?;
        let last = self.triggers.iter().map(|trigger| trigger.until).max()?;
        Some((first, last))
    }

    /// Where the value of a dotted path stands, or the nearest table above it.
    pub fn place(&self, path: &str) -> Range<usize> {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return place.clone();
            }
            match path.rsplit_once('.') {
                Some((above, _)) => path = above,
                None => return 0..0,
            }
        }
    }

    /// Whether the file has something at a dotted path.
    pub fn is_given(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }

    /// The retry policy of an edge.
    pub fn policy(&self, edge: EdgeId) -> Policy {
        let Edge { retry, budget, throttle, breaker, pace, .. } = self.edge(edge);
        Policy {
            retry: retry.clone(),
            budget: *budget,
            throttle: *throttle,
            breaker: *breaker,
            pace: *pace,
        }
    }

    /// The path of an edge's table in the file.
    pub fn edge_path(&self, edge: EdgeId) -> String {
        let Edge { caller, callee, .. } = self.edge(edge);
        format!("tier.{}.call.{}", self.names.tier_name(*caller), self.names.tier_name(*callee))
    }
}

impl Tier {
    /// True for a tier that user requests come from.
    pub fn is_client(&self) -> bool {
        self.arrivals.is_some()
    }

    /// What a caller learns from the failure of an attempt, whose key is asked for where it counts.
    #[inline]
    pub fn setback(&self, outcome: Outcome, key: impl FnOnce() -> Key) -> Setback {
        let (status, retry_after) = match outcome {
            Outcome::Refused(reason) => {
                (self.refusal.status(reason), self.refusal.retry_after(reason, key))
            }
            _ => (self.error_status, None),
        };
        Setback { outcome, status, retry_after }
    }

    /// True for a client tier whose clients come once each.
    pub fn is_herd(&self) -> bool {
        matches!(self.arrivals, Some(Arrivals::Herd(_)))
    }

    /// Servers of all replicas; `None`: unlimited.
    pub fn servers(&self) -> Option<u32> {
        self.concurrency.map(|limit| limit.saturating_mul(self.replicas))
    }
}

fn note_places(path: &str, table: &DeTable<'_>, places: &mut HashMap<String, Range<usize>>) {
    for (key, value) in table {
        let path = if path.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{path}.{}", key.get_ref())
        };
        let span = match value.get_ref() {
            DeValue::Table(inner) => {
                note_places(&path, inner, places);
                key.span()
            }
            _ => key.span().start..value.span().end,
        };
        places.insert(path, span);
    }
}

fn read(
    root: &Section<'_>,
    faults: &Faults,
    file: &dyn Fn(&str) -> Result<String, String>,
    places: HashMap<String, Range<usize>>,
) -> Option<Model> {
    let title = root.get("title").and_then(|v| v.text());
    let source = root.get("source").and_then(|v| v.text());
    let run = root
        .require("run", "add run = { duration = \"10m\" }")
        .and_then(|v| Run::read(&v.section()?));
    let policies = root
        .get("policy")
        .map_or(Some(Policies::default()), |v| v.section().map(|section| Policies::read(&section)));
    let tiers =
        root.require("tier", "add a [tier.client] with arrivals and a [tier.…] that it calls");
    let known = policies.clone().unwrap_or_default();
    let system =
        tiers.and_then(|v| tier::read_all(&v.section()?, faults, file, run.as_ref(), &known));
    let triggers = root.get("trigger").map_or(Some(Vec::new()), |v| v.list());
    let playbook = root.get("playbook").map_or(Some(Vec::new()), |v| v.list());
    let criteria =
        root.get("verdict").map_or(Some(Criteria::default()), |v| Criteria::read(&v.section()?));
    let expect = root.get("expect");
    root.finish();

    let system = system?;
    let names = &system.names;
    let read_trigger = |value: &Value<'_>| settings::trigger(value, &system, run.as_ref());
    let triggers: Option<Vec<Option<Trigger>>> =
        triggers.map(|list| list.iter().map(read_trigger).collect());
    let playbook: Option<Vec<Option<Step>>> =
        playbook.map(|list| list.iter().map(|value| settings::step(value, &system)).collect());
    let expect = expect.map_or(Some(Expect::default()), |v| Expect::read(&v.section()?, names));
    graph::refuse_cycles(&system, faults);
    let tier::System { tiers, edges, classes, names, .. } = system;
    Some(Model {
        title: title.unwrap_or("untitled").to_owned(),
        source: source.unwrap_or_default().to_owned(),
        run: run?,
        tiers: tiers.into_iter().collect::<Option<_>>()?,
        edges: edges.into_iter().collect::<Option<_>>()?,
        classes,
        policies: policies?,
        triggers: triggers?.into_iter().collect::<Option<_>>()?,
        playbook: playbook?.into_iter().collect::<Option<_>>()?,
        criteria: criteria?,
        expect: expect?,
        names,
        places,
    })
}

/// Reads an optional key; an outer `None` is a fault that has been noted.
fn optional<'a, T>(
    section: &Section<'a>,
    key: &'static str,
    read: impl Fn(&Value<'a>) -> Option<T>,
) -> Option<Option<T>> {
    section.get(key).map_or(Some(None), |value| read(&value).map(Some))
}

/// Reads an optional key with a default.
fn or<'a, T>(
    section: &Section<'a>,
    key: &'static str,
    default: T,
    read: impl Fn(&Value<'a>) -> Option<T>,
) -> Option<T> {
    section.get(key).map_or(Some(default), |value| read(&value))
}
