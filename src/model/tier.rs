//! The tiers and edges of a model file.

use super::program::Program;
use super::{Edge, Tier, optional, or};
use crate::document::{EdgeId, Fault, Faults, Names, Section, TierId, Value};
use crate::kernel::Span;
use crate::mechanism::admission::Admission;
use crate::mechanism::arrival::Arrivals;
use crate::mechanism::balance::Balance;
use crate::mechanism::budget::Budget;
use crate::mechanism::cache::Cache;
use crate::mechanism::concurrency;
use crate::mechanism::idempotency::Write;
use crate::mechanism::network::Network;
use crate::mechanism::pool::Pool;
use crate::mechanism::queue::Queue;
use crate::mechanism::retry::{Backoff, Retry, RetryOn};
use crate::mechanism::timeout::{Abandoned, Patience};
use crate::mechanism::work::{Drawn, Work};

/// Tiers and edges, before triggers and playbook are read.
pub struct System {
    pub tiers: Vec<Tier>,
    pub edges: Vec<Edge>,
    pub classes: Vec<String>,
    pub names: Names,
}

/// Keys that only a tier with servers has.
const SERVER_KEYS: [&str; 11] = [
    "replicas",
    "concurrency",
    "queue",
    "balance",
    "abandoned",
    "drawn",
    "asynchronous",
    "min_remaining",
    "admission",
    "errors",
    "write",
];

const MOST_TIERS: usize = 1_000;

/// Reads `[tier.…]`, all of them.
pub fn read_all(
    section: &Section<'_>,
    faults: &Faults,
    file: &dyn Fn(&str) -> Result<String, String>,
) -> Option<System> {
    let entries = section.entries();
    if entries.len() > MOST_TIERS {
        section.fault(
            "the model has more than 1,000 tiers",
            "ids are small numbers",
            "merge tiers that behave alike",
        );
        return None;
    }
    let mut names = Names::default();
    for entry in &entries {
        names.add_tier(entry.key());
    }
    let sections: Vec<Option<Section<'_>>> = entries.iter().map(Value::section).collect();
    let mut edges = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        read_edges(TierId(index as u16), section.as_ref()?, &mut names, &mut edges);
    }
    let sections: Vec<Section<'_>> = sections.into_iter().flatten().collect();
    let classes = read_class_names(&sections);
    let mut reader =
        Reader { faults, file, classes: &classes, names: &mut names, edges: &mut edges };
    let tiers: Vec<Option<Tier>> = sections
        .iter()
        .enumerate()
        .map(|(index, section)| reader.tier(TierId(index as u16), section))
        .collect();
    let tiers: Vec<Tier> = tiers.into_iter().collect::<Option<_>>()?;
    if !tiers.iter().any(Tier::is_client) {
        section.fault(
            "no tier has `arrivals`",
            "without a client nothing ever happens",
            "add [tier.client] with arrivals.poisson = \"100/s\" and calls = [ … ]",
        );
        return None;
    }
    let edges: Option<Vec<Edge>> = edges.into_iter().collect();
    Some(System { tiers, edges: edges?, classes, names })
}

/// Declares the edges that have a table of their own.
fn read_edges(
    caller: TierId,
    section: &Section<'_>,
    names: &mut Names,
    edges: &mut Vec<Option<Edge>>,
) {
    let Some(calls) = section.get("call").and_then(|v| v.section()) else {
        return;
    };
    for entry in calls.entries() {
        let Some(callee) = names.tier(entry.key(), &entry) else {
            continue;
        };
        names.add_edge(caller, callee);
        edges.push(entry.section().and_then(|section| read_edge(caller, callee, &section)));
    }
}

fn read_edge(caller: TierId, callee: TierId, section: &Section<'_>) -> Option<Edge> {
    let timeout = optional(section, "timeout", Value::positive_duration);
    let deadline = optional(section, "deadline", Value::positive_duration);
    let pass = or(section, "pass_deadline", false, Value::flag);
    let attempts = or(section, "attempts", 1, |v| v.whole(1, 1_000));
    let backoff = section.get("backoff");
    let rule = backoff.as_ref().map_or(Some(Backoff::Immediate), Backoff::read);
    let on = or(section, "retry_on", RetryOn::ALL, RetryOn::read);
    let budget = optional(section, "budget", Budget::read);
    let pool = optional(section, "pool", Pool::read);
    let network = or(section, "network", Network::default(), Network::read);
    let cache = optional(section, "cache", Cache::read);
    let optional_call = or(section, "optional", false, Value::flag);
    let fallback = optional(section, "fallback", Work::read);
    section.finish();
    if let (Some(Some(_)), Some(false)) = (&fallback, optional_call) {
        section.fault(
            "`fallback` on a call that is not optional",
            "a required call that fails makes its caller fail, so the fallback would never run",
            "set optional = true, or remove fallback",
        );
        return None;
    }
    Some(Edge {
        caller,
        callee,
        patience: Patience { timeout: timeout?, deadline: deadline?, pass: pass? },
        retry: Retry { attempts: attempts? as u32, backoff: rule?, on: on? },
        budget: budget?,
        pool: pool?,
        network: network?,
        cache: cache?,
        optional: optional_call?,
        fallback: fallback?,
    })
}

/// An edge that is only named in `calls`: one attempt, endless patience.
fn plain_edge(caller: TierId, callee: TierId) -> Edge {
    Edge {
        caller,
        callee,
        patience: Patience::default(),
        retry: Retry::default(),
        budget: None,
        pool: None,
        network: Network::default(),
        cache: None,
        optional: false,
        fallback: None,
    }
}

/// The classes that clients declare; the first is that of clients without classes.
fn read_class_names(sections: &[Section<'_>]) -> Vec<String> {
    let mut classes = vec!["all".to_owned()];
    for section in sections.iter().filter(|section| section.get("arrivals").is_some()) {
        let declared = section.get("class").and_then(|v| v.section());
        for class in declared.iter().flat_map(Section::entries) {
            if !classes.iter().any(|known| known == class.key()) {
                classes.push(class.key().to_owned());
            }
        }
    }
    classes
}

struct Reader<'r> {
    faults: &'r Faults,
    file: &'r dyn Fn(&str) -> Result<String, String>,
    classes: &'r [String],
    names: &'r mut Names,
    edges: &'r mut Vec<Option<Edge>>,
}

impl Reader<'_> {
    fn tier(&mut self, id: TierId, section: &Section<'_>) -> Option<Tier> {
        let arrivals = optional(section, "arrivals", |v| Arrivals::read(v, self.file));
        let is_client = section.get("arrivals").is_some();
        let default = self.program(id, section);
        let (mix, programs) = self.classes(id, section, default.as_ref(), is_client);
        let tier = if is_client {
            self.client(section, arrivals, mix, programs, default)
        } else {
            server(section, programs)
        };
        section.finish();
        self.refuse_idle_edges(id, tier.as_ref());
        tier
    }

    fn client(
        &self,
        section: &Section<'_>,
        arrivals: Option<Option<Arrivals>>,
        mix: Option<Vec<(f64, u16)>>,
        programs: Option<Vec<Program>>,
        default: Option<Program>,
    ) -> Option<Tier> {
        for key in SERVER_KEYS {
            if let Some(value) = section.get(key) {
                value.key_fault(
                    &format!("`{key}` on a tier with `arrivals`"),
                    "a tier with arrivals stands for the users; it has no servers",
                    "move it to the tier that the client calls",
                );
            }
        }
        let clients = section.get("clients");
        let count = clients.as_ref().map_or(Some(1), |v| v.whole(1, 10_000_000));
        if let Some(work) = section.get("work") {
            work.key_fault(
                "`work` on a tier with `arrivals`",
                "users do not serve",
                "give the work to a tier it calls",
            );
        }
        let arrivals = arrivals??;
        if let (Some(value), Some(_)) = (&clients, arrivals.clients()) {
            value.key_fault(
                "`clients` given twice",
                "a closed loop states its clients itself",
                "remove this one",
            );
        }
        if default?.ops.len() == 1 && self.classes.len() == 1 {
            section.fault(
                "the client calls nobody",
                "its requests would end at once",
                "add calls = [\"api\"]",
            );
            return None;
        }
        let replicas = arrivals.clients().map_or(count, |clients| Some(u64::from(clients)));
        Some(Tier {
            arrivals: Some(arrivals),
            mix: mix?,
            replicas: replicas? as u32,
            concurrency: None,
            queue: Queue::UNBOUNDED,
            balance: Balance::Random,
            abandoned: Abandoned::Finish,
            drawn: Drawn::AtStart,
            asynchronous: false,
            min_remaining: Span::ZERO,
            admission: None,
            errors: 0.0,
            write: None,
            programs: programs?,
        })
    }

    /// The program of a tier or class: `steps`, or `work` and then `calls`.
    fn program(&mut self, id: TierId, section: &Section<'_>) -> Option<Program> {
        let mut edge = |value: &Value<'_>| self.edge_to(id, value);
        if let Some(steps) = section.get("steps") {
            for key in ["work", "calls"] {
                if let Some(value) = section.get(key) {
                    let what = format!("`{key}` beside `steps`");
                    value.key_fault(
                        &what,
                        "steps say the whole order by themselves",
                        "move it into the steps",
                    );
                }
            }
            return Program::read(&steps, &mut edge);
        }
        let work = optional(section, "work", Work::read);
        let calls = match section.get("calls") {
            Some(value) => read_calls(&value, &mut edge),
            None => Some(self.own_edges(id).into_iter().map(|edge| vec![edge]).collect()),
        };
        Some(Program::simple(work?, &calls?))
    }

    /// Programs by class, and for clients the shares of the classes.
    fn classes(
        &mut self,
        id: TierId,
        section: &Section<'_>,
        default: Option<&Program>,
        is_client: bool,
    ) -> (Option<Vec<(f64, u16)>>, Option<Vec<Program>>) {
        let mut programs = vec![default.cloned(); self.classes.len()];
        let mut shares = Vec::new();
        let mut sound = true;
        let class_table = section.get("class");
        for class in class_table.iter().filter_map(Value::section).flat_map(|s| s.entries()) {
            let Some(index) = self.classes.iter().position(|known| known == class.key()) else {
                let cure = crate::document::nearest(
                    class.key(),
                    self.classes[1..].iter().map(String::as_str),
                );
                class.key_fault(
                    &format!("no client has a class `{}`", class.key()),
                    "classes are declared by clients, with their share",
                    &cure,
                );
                continue;
            };
            let Some(section) = class.section() else { continue };
            if is_client {
                let share = section.require("share", "add share = \"50%\"").and_then(|v| v.share());
                sound &= share.is_some();
                shares.push((share.unwrap_or(0.0), index as u16));
            }
            programs[index] = self.program(id, &section);
            section.finish();
        }
        let total: f64 = shares.iter().map(|(share, _)| share).sum();
        if sound && !shares.is_empty() && (total - 1.0).abs() > 1e-9 {
            let value = class_table.as_ref().expect("shares come from it");
            let what = format!(
                "the shares of the classes add up to {}",
                crate::document::share_text(total)
            );
            value.key_fault(
                &what,
                "each request belongs to exactly one class",
                "make the shares add up to 100%",
            );
            sound = false;
        }
        let mut up_to = 0.0;
        let mut mix: Vec<(f64, u16)> = shares
            .into_iter()
            .map(|(share, class)| {
                up_to += share;
                (up_to, class)
            })
            .collect();
        if mix.is_empty() {
            mix.push((1.0, 0));
        }
        (sound.then_some(mix), programs.into_iter().collect())
    }

    /// The edge from `caller` to the callee that `value` names; made plain if it has no table.
    fn edge_to(&mut self, caller: TierId, value: &Value<'_>) -> Option<EdgeId> {
        let name = value.text()?;
        let Some(callee) = self.names.find_tier(name) else {
            let cure = crate::document::nearest(name, self.names.tiers());
            value.fault(
                &format!("there is no tier `{name}`"),
                "no [tier.…] of the model has this name",
                &cure,
            );
            return None;
        };
        Some(self.names.find_edge(caller, callee).unwrap_or_else(|| {
            self.edges.push(Some(plain_edge(caller, callee)));
            self.names.add_edge(caller, callee)
        }))
    }

    fn own_edges(&self, caller: TierId) -> Vec<EdgeId> {
        self.names.edges_of(caller).collect()
    }

    /// A `[tier.a.call.b]` that no program uses would be ignored in silence.
    fn refuse_idle_edges(&self, id: TierId, tier: Option<&Tier>) {
        let Some(tier) = tier else { return };
        for edge in self.own_edges(id) {
            let used =
                tier.programs.iter().any(|p| p.expectation().1.iter().any(|(e, _)| *e == edge));
            if !used {
                let name = self.names.edge_name(edge);
                self.faults.add(Fault::new(
                    format!("the edge `{name}` is never called"),
                    "it has a table of settings, but neither `calls` nor `steps` names it",
                    "add the callee to `calls`, or remove the table",
                ));
            }
        }
    }
}

fn server(section: &Section<'_>, programs: Option<Vec<Program>>) -> Option<Tier> {
    let replicas = or(section, "replicas", 1, |v| v.whole(1, 100_000));
    let concurrency = or(section, "concurrency", None, concurrency::read);
    let queue_value = section.get("queue");
    let queue = queue_value.as_ref().map_or(Some(Queue::UNBOUNDED), Queue::read);
    let balance = or(section, "balance", Balance::default(), Balance::read);
    let abandoned = or(section, "abandoned", Abandoned::default(), Abandoned::read);
    let drawn = or(section, "drawn", Drawn::default(), Drawn::read);
    let asynchronous = or(section, "asynchronous", false, Value::flag);
    let min_remaining = or(section, "min_remaining", Span::ZERO, Value::duration);
    let admission = optional(section, "admission", Admission::read);
    let errors = or(section, "errors", 0.0, Value::share);
    let write = optional(section, "write", Write::read);
    if let Some(clients) = section.get("clients") {
        clients.key_fault(
            "`clients` on a tier without `arrivals`",
            "only users are clients",
            "write replicas = …",
        );
    }
    if let (Some(value), Some(None)) = (&queue_value, &concurrency) {
        value.key_fault(
            "`queue` on a tier of unlimited concurrency",
            "everything is served at once, so nobody ever waits there",
            "add concurrency = 100, or remove the queue",
        );
        return None;
    }
    Some(Tier {
        arrivals: None,
        mix: Vec::new(),
        replicas: replicas? as u32,
        concurrency: concurrency?,
        queue: queue?,
        balance: balance?,
        abandoned: abandoned?,
        drawn: drawn?,
        asynchronous: asynchronous?,
        min_remaining: min_remaining?,
        admission: admission?,
        errors: errors?,
        write: write?,
        programs: programs?,
    })
}

/// Reads `calls = ["auth", ["stock", "price"]]`.
fn read_calls(
    value: &Value<'_>,
    edge: &mut dyn FnMut(&Value<'_>) -> Option<EdgeId>,
) -> Option<Vec<Vec<EdgeId>>> {
    let mut groups = Vec::new();
    for item in value.list()? {
        let members = if item.is_list() { item.list()? } else { vec![item] };
        let edges: Vec<Option<EdgeId>> = members.iter().map(&mut *edge).collect();
        groups.push(edges.into_iter().collect::<Option<Vec<EdgeId>>>());
    }
    groups.into_iter().collect()
}
