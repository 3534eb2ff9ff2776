//! The tiers and edges of a model file.

use std::ops::Range;

use super::edge;
use super::policy::Policies;
use super::program::{self, Program};
use super::{Edge, Run, Tier, optional, or};
use crate::document::{EdgeId, Fault, Faults, Names, Section, TierId, Value};
use crate::kernel::Span;
use crate::mechanism::admission::Admission;
use crate::mechanism::arrival::Arrivals;
use crate::mechanism::balance::Balance;
use crate::mechanism::concurrency;
use crate::mechanism::idempotency::Write;
use crate::mechanism::leave;
use crate::mechanism::outcome::Status;
use crate::mechanism::queue::Queue;
use crate::mechanism::refusal::Refusal;
use crate::mechanism::timeout::Abandoned;
use crate::mechanism::timer::Timer;
use crate::mechanism::work::{Drawn, Work};

/// Tiers and edges, before triggers and playbook are read. What has a fault is `None`, so that
/// nothing is concluded from it; names stay known, so that those who use them are still checked.
#[derive(Default)]
pub struct System {
    pub tiers: Vec<Option<Tier>>,
    pub edges: Vec<Option<Edge>>,
    pub edge_places: Vec<Range<usize>>,
    pub classes: Vec<String>,
    pub names: Names,
}

/// Shares of classes, added up.
type Mix = Vec<(f64, u16)>;

/// Keys that only a tier with servers has.
const SERVER_KEYS: [&str; 13] = [
    "replicas",
    "concurrency",
    "queue",
    "balance",
    "abandoned",
    "drawn",
    "asynchronous",
    "min_remaining",
    "admission",
    "refusal",
    "errors",
    "optimistic",
    "write",
];

const MOST_TIERS: usize = 1_000;
const MOST_EDGES: usize = 60_000;

/// A run of more requests than this would not end in a lifetime.
pub const MOST_REQUESTS: f64 = 1e12;

/// Reads `[tier.…]`, all of them.
pub fn read_all(
    section: &Section<'_>,
    faults: &Faults,
    file: &dyn Fn(&str) -> Result<String, String>,
    run: Option<&Run>,
    policies: &Policies,
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
    let mut system = System::default();
    for entry in &entries {
        refuse_odd_name(entry);
        system.names.add_tier(entry.key());
    }
    let sections: Vec<Option<Section<'_>>> = entries.iter().map(Value::section).collect();
    system.classes = read_class_names(&sections);
    let clients = sections
        .iter()
        .map(|section| section.as_ref().is_some_and(|section| section.get("arrivals").is_some()))
        .collect();
    let mut reader = Reader { faults, file, run, policies, clients, system };
    for (id, section) in reader.ids().zip(&sections) {
        if let Some(section) = section {
            reader.edge_tables(id, section);
        }
    }
    for (id, section) in reader.ids().zip(&sections) {
        let before = faults.count();
        let tier = section.as_ref().and_then(|section| reader.tier(id, section));
        let sound = faults.count() == before;
        reader.system.tiers.push(tier.filter(|_| sound));
    }
    // A tier with a fault may be the client.
    if reader.system.tiers.iter().flatten().all(|tier| !tier.is_client())
        && reader.system.tiers.iter().all(Option::is_some)
    {
        section.fault(
            "no tier has `arrivals`",
            "without a client nothing ever happens",
            "add [tier.client] with arrivals.poisson = \"100/s\" and calls = [ … ]",
        );
    }
    Some(reader.system)
}

/// Names stand in "caller->callee", in paths of `--set` and in tables of results.
fn refuse_odd_name(entry: &Value<'_>) {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if entry.key().is_empty() || !entry.key().chars().all(plain) {
        let what = format!("{:?} is no name for a tier", entry.key());
        let why = "names stand in \"caller->callee\" and in dotted paths";
        entry.key_fault(&what, why, "use letters, digits, `_` and `-` only");
    }
}

/// The classes that clients declare; the first is that of clients without classes.
fn read_class_names(sections: &[Option<Section<'_>>]) -> Vec<String> {
    let mut classes = vec!["all".to_owned()];
    let tiers = sections.iter().flatten();
    for section in tiers.filter(|section| section.get("arrivals").is_some()) {
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
    run: Option<&'r Run>,
    policies: &'r Policies,
    /// By tier: whether it has arrivals.
    clients: Vec<bool>,
    system: System,
}

impl Reader<'_> {
    fn ids(&self) -> impl Iterator<Item = TierId> + use<> {
        (0..self.clients.len()).map(|index| TierId(index as u16))
    }

    /// Declares the edges that have a table of their own.
    fn edge_tables(&mut self, caller: TierId, section: &Section<'_>) {
        let Some(value) = section.get("call") else { return };
        let Some(calls) = value.section() else {
            self.system.names.doubt(caller);
            return;
        };
        for entry in calls.entries() {
            let before = self.faults.count();
            // The table is read even where its callee is not known, for the sake of its own faults.
            let callee = self.callee(caller, entry.key(), &entry);
            let ends = (caller, callee.unwrap_or(caller));
            let edge =
                entry.section().and_then(|section| edge::read(ends, &section, self.policies));
            let sound = self.faults.count() == before;
            if callee.is_some() {
                self.add_edge(ends, &entry.key_place(), edge.filter(|_| sound));
            }
        }
    }

    /// The tier that a call names; a call that cannot be read leaves doubt about what its caller
    /// calls.
    fn callee(&mut self, caller: TierId, name: &str, value: &Value<'_>) -> Option<TierId> {
        let found = self.system.names.tier(name, value);
        let called = found.filter(|callee| !self.clients[callee.index()]);
        if found.is_some() && called.is_none() {
            value.name_fault(
                name,
                &format!("`{name}` has `arrivals` and cannot be called"),
                "a tier with arrivals stands for the users, who do not serve",
                "call a tier that serves",
            );
        }
        let room = self.system.names.edges().len() < MOST_EDGES;
        if !room {
            let what = format!("the model has more than {MOST_EDGES} calls");
            value.fault(&what, "ids are small numbers", "merge tiers that behave alike");
        }
        let callee = called.filter(|_| room);
        if callee.is_none() {
            self.system.names.doubt(caller);
        }
        callee
    }

    fn add_edge(
        &mut self,
        ends: (TierId, TierId),
        place: &Range<usize>,
        edge: Option<Edge>,
    ) -> EdgeId {
        self.system.edges.push(edge);
        self.system.edge_places.push(place.clone());
        self.system.names.add_edge(ends.0, ends.1)
    }

    fn tier(&mut self, id: TierId, section: &Section<'_>) -> Option<Tier> {
        let arrivals = optional(section, "arrivals", |v| Arrivals::read(v, self.file));
        let is_client = self.clients[id.index()];
        let default = self.program(id, section);
        let (mix, programs) = self.classes(id, section, default.as_ref(), is_client);
        let tier = if is_client {
            self.client(id, section, arrivals, mix, programs)
        } else {
            server(section, programs)
        };
        self.refuse_idle_edges(id, tier.as_ref());
        tier
    }

    fn client(
        &self,
        id: TierId,
        section: &Section<'_>,
        arrivals: Option<Option<Arrivals>>,
        mix: Option<Mix>,
        programs: Option<Vec<Program>>,
    ) -> Option<Tier> {
        refuse_server_keys(section);
        let clients = section.get("clients");
        let count = clients.as_ref().map_or(Some(1), |v| v.whole(1, 10_000_000));
        let timer = optional(section, "timer", Timer::read);
        let leave = optional(section, "patience", leave::Patience::read);
        if let Some(work) = section.get("work") {
            work.key_fault(
                "`work` on a tier with `arrivals`",
                "users do not serve",
                "give the work to a tier it calls",
            );
        }
        let known = section.finish();
        let arrivals = arrivals??;
        if let (Some(value), Some(_)) = (&clients, arrivals.clients()) {
            value.key_fault(
                "`clients` given twice",
                "a closed loop states its clients itself",
                "remove this one",
            );
        }
        self.refuse_absurd_demand(section, &arrivals);
        self.refuse_herd_in_warmup(section, &arrivals);
        let (mix, programs) = (mix?, programs?);
        let idle = mix.iter().any(|(_, class)| programs[usize::from(*class)].ops.len() == 1);
        if idle && known && !self.system.names.in_doubt(id) {
            let place = section.get("calls").or(section.get("steps"));
            let place = place.map_or(section.place(), |value| value.place());
            let what = "the client calls nobody";
            let why = "its requests would end at once";
            let cure = "name the tier that users call, as in calls = [\"api\"]";
            self.faults.add(Fault::new(what, why, cure).at(place, "here"));
            return None;
        }
        let replicas = arrivals.clients().map_or(count, |clients| Some(u64::from(clients)));
        Some(Tier {
            arrivals: Some(arrivals),
            mix,
            replicas: replicas? as u32,
            concurrency: None,
            queue: Queue::UNBOUNDED,
            balance: Balance::Random,
            abandoned: Abandoned::Finish,
            drawn: Drawn::AtStart,
            asynchronous: false,
            min_remaining: Span::ZERO,
            admission: None,
            refusal: Refusal::default(),
            errors: 0.0,
            error_status: Status::INTERNAL,
            optimistic: false,
            write: None,
            programs,
            timer: timer?,
            leave: leave?,
        })
    }

    /// A herd is looked at from its first send on.
    fn refuse_herd_in_warmup(&self, section: &Section<'_>, arrivals: &Arrivals) {
        let warms_up = self.run.is_some_and(|run| run.warmup > Span::ZERO);
        if let (Arrivals::Herd(_), true, Some(value)) =
            (arrivals, warms_up, section.get("arrivals"))
        {
            value.below(&["herd"]).key_fault(
                "a herd in a run with a warm-up",
                "its clients come once, and part of what they send would not be measured",
                "remove `warmup` from the run",
            );
        }
    }

    /// Too many requests to simulate, or none.
    fn refuse_absurd_demand(&self, section: &Section<'_>, arrivals: &Arrivals) {
        let (Some(run), Some(value)) = (self.run, section.get("arrivals")) else { return };
        let value = value.below(&["poisson"]).below(&["even"]).below(&["profile"]);
        let requests = arrivals.rate(run.duration) * run.duration.seconds();
        if requests > MOST_REQUESTS {
            value.fault(
                &format!("{requests:.0e} requests would arrive in {}", run.duration),
                "more than 1e12 cannot be simulated in any reasonable time",
                "lower the rate, or run shorter",
            );
        } else if requests <= 0.0 && !value.is_text() {
            let what = format!("nothing arrives in the {} of the run", run.duration);
            value.fault(&what, "there would be nothing to see", "begin earlier, or run longer");
        }
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
        let program = Program::simple(work?, &calls?);
        if !program.fits() {
            let place = section.get("calls").map_or(section.place(), |calls| calls.place());
            self.faults.add(program::too_long().at(place, ""));
            return None;
        }
        Some(program)
    }

    /// Programs by class, and for clients the shares of the classes.
    fn classes(
        &mut self,
        id: TierId,
        section: &Section<'_>,
        default: Option<&Program>,
        is_client: bool,
    ) -> (Option<Mix>, Option<Vec<Program>>) {
        let mut programs = vec![default.cloned(); self.system.classes.len()];
        let mut shares = Vec::new();
        let mut sound = true;
        let class_table = section.get("class");
        for class in class_table.iter().filter_map(Value::section).flat_map(|s| s.entries()) {
            let Some(index) = self.system.classes.iter().position(|known| known == class.key())
            else {
                let cure = match &self.system.classes[1..] {
                    [] => format!("add class.{}.share = \"50%\" to a client", class.key()),
                    known => {
                        crate::document::nearest(class.key(), known.iter().map(String::as_str))
                    }
                };
                class.key_fault(
                    &format!("no client has a class `{}`", class.key()),
                    "classes are declared by clients, with their share",
                    &cure,
                );
                continue;
            };
            let Some(section) = class.section() else { continue };
            if is_client {
                let share = section
                    .require(
                        "share",
                        "add share = \
                \"50%\"",
                    )
                    .and_then(|v| v.share());
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
        let mut mix: Mix = shares
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
        let callee = self.callee(caller, name, value)?;
        Some(self.system.names.find_edge(caller, callee).unwrap_or_else(|| {
            let edge = edge::plain(caller, callee);
            self.add_edge((caller, callee), &value.place(), Some(edge))
        }))
    }

    fn own_edges(&self, caller: TierId) -> Vec<EdgeId> {
        self.system.names.edges_of(caller).collect()
    }

    /// A `[tier.a.call.b]` that no program uses would be ignored in silence.
    fn refuse_idle_edges(&self, id: TierId, tier: Option<&Tier>) {
        let Some(tier) = tier else { return };
        for edge in self.own_edges(id) {
            let used =
                tier.programs.iter().any(|p| p.expectation().1.iter().any(|(e, _)| *e == edge));
            if !used {
                let what =
                    format!("the edge `{}` is never called", self.system.names.edge_name(edge));
                let why = "it has a table of settings, but neither `calls` nor `steps` names it";
                let cure = "add the callee to `calls`, or remove the table";
                let place = self.system.edge_places[edge.index()].clone();
                self.faults.add(Fault::new(what, why, cure).at(place, "here"));
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
    let refusal = or(section, "refusal", Refusal::default(), Refusal::read);
    let refusal_value = section.get("refusal");
    let optimistic = or(section, "optimistic", false, Value::flag);
    let status = if optimistic == Some(true) { Status::CONFLICT } else { Status::INTERNAL };
    let errors = or(section, "errors", (0.0, status), read_errors);
    let write = optional(section, "write", Write::read);
    if let Some(clients) = section.get("clients") {
        clients.key_fault(
            "`clients` on a tier without `arrivals`",
            "only users are clients",
            "write replicas = …",
        );
    }
    if let (true, Some(value), Some(None)) = (section.finish(), &queue_value, &concurrency) {
        value.key_fault(
            "`queue` on a tier of unlimited concurrency",
            "everything is served at once, so nobody ever waits there",
            "add concurrency = 100, or remove the queue",
        );
        return None;
    }
    let refusal = refusal?;
    if let (Some(value), Some(None)) = (&refusal_value, &concurrency)
        && refusal.cost > Span::ZERO
    {
        value.below(&["cost"]).key_fault(
            "`cost` of a refusal on a tier of unlimited concurrency",
            "there is always a server for it, so it would keep nobody waiting",
            "add concurrency = 100, or remove the cost",
        );
        return None;
    }
    let (errors, error_status) = errors?;
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
        refusal,
        errors,
        error_status,
        optimistic: optimistic?,
        write: write?,
        programs: programs?,
        timer: None,
        leave: None,
    })
}

fn refuse_server_keys(section: &Section<'_>) {
    for key in SERVER_KEYS {
        if let Some(value) = section.get(key) {
            value.key_fault(
                &format!("`{key}` on a tier with `arrivals`"),
                "a tier with arrivals stands for the users; it has no servers",
                "move it to the tier that the client calls",
            );
        }
    }
}

/// Reads `errors = "1%"` or `errors = { share = "1%", status = 400 }`.
fn read_errors(value: &Value<'_>) -> Option<(f64, Status)> {
    if !value.is_section() {
        return Some((value.share()?, Status::INTERNAL));
    }
    let section = value.section()?;
    let share = section.require("share", "add share = \"1%\"").and_then(|v| v.share());
    let status = or(&section, "status", Status::INTERNAL, Status::read);
    section.finish();
    Some((share?, status?))
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
