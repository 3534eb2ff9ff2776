//! The simulation: the loop, and the one world that changes.
//!
//! Read `event` (what can happen), then this file (the loop), then `source` and `user` (a request,
//! its beginning and the rest), `calling` (a call and its attempts up to their departure, the
//! caller's side), `serving` and `working` (an attempt from delivery to the start of service, and
//! on to its answer, the callee's side), `concluding` (what the caller makes of an answer or a
//! timeout), `refusing` (who is turned away), `leaving` (who leaves before the end), `forgotten`
//! (who is served for nobody), `control` (windows, triggers, operator). What they do it to is in
//! `world`, `edge` and `station`. These say *what happens*; how much and whether is decided by
//! mechanisms.
//!
//! Small steps that every attempt takes are always inlined: together they are the hot path, and a
//! call costs as much as such a step. What seldom happens is kept out of it.

mod calling;
mod concluding;
mod control;
mod edge;
mod event;
mod forgotten;
mod leaving;
mod refusing;
mod serving;
mod source;
mod station;
mod trace;
mod user;
mod working;
mod world;

use std::mem;
use std::ops::ControlFlow;

use crate::document::{EdgeId, TierId};
use crate::kernel::pages;
use crate::kernel::{Arena, Distribution, EventList, Id, Key, Slab, Span, Time};
use crate::measure::{AttemptRow, Herd, Record, Window};
use crate::mechanism::arrival::Arrivals;
use crate::mechanism::conditions::Conditions;
use crate::mechanism::playbook::Step;
use crate::mechanism::queue::Waiting;
use crate::mechanism::trigger::Lever;
use crate::model::{Model, Op, Program, Tier};

use control::Operator;
pub use control::TooLate;
use edge::EdgeRun;
use event::Event;
use forgotten::Forgotten;
use source::SourceRun;
use station::{StationId, Waiter};
use trace::Trace;
use world::{Attempt, Call, Caller, Detail, Errand, Parent};
use world::{Service, TierRun};

/// A run of a model.
///
/// A clone goes on exactly like the original: whoever wants to try many continuations of one past
/// runs up to it once and clones.
#[derive(Clone, Debug)]
pub struct Simulation<'m> {
    model: &'m Model,
    root: Key,
    now: Time,
    /// What is still to come of the window: the weight of a change of level now.
    left: Span,
    window: Window,
    events: EventList<Event>,
    attempts: Slab<Attempt>,
    calls: Slab<Call>,
    /// Of attempts in service.
    services: Arena<Service>,
    /// In service, with nobody to answer.
    forgotten: Slab<Forgotten>,
    /// By slot of attempts, while somebody wants to know.
    details: Vec<Detail>,
    /// By slot of calls, for those that have one.
    errands: Vec<Errand>,
    /// For stations to come.
    queues: Vec<Waiting<Waiter>>,
    tiers: Vec<TierRun<'m>>,
    edges: Vec<EdgeRun<'m>>,
    sources: Vec<SourceRun>,
    conditions: Conditions,
    active: Vec<bool>,
    operator: Operator<'m>,
    record: Record,
    /// Stations at which a server has come free in this event. They serve their queue after it, so
    /// that no chain of answers and starts can grow with the length of a queue.
    freed: Vec<StationId>,
    /// Whether some cache or write wants to know which operation an attempt stands for.
    tells_operations: bool,
    /// Whether some clients come once each, and are looked at one by one.
    herded: bool,
    trace: Trace,
}

/// What a run needs much memory for.
#[derive(Default)]
struct Room {
    events: EventList<Event>,
    attempts: Slab<Attempt>,
    calls: Slab<Call>,
    services: Arena<Service>,
    forgotten: Slab<Forgotten>,
    errands: Vec<Errand>,
    /// Queues, those of the first stations last.
    queues: Vec<Waiting<Waiter>>,
}

impl Room {
    fn clear(&mut self) {
        self.events.clear();
        self.attempts.clear();
        self.calls.clear();
        self.services.clear();
        self.forgotten.clear();
        self.errands.clear();
        self.queues.iter_mut().for_each(Waiting::clear);
    }
}

/// The attempt that goes on with its program after what has just happened, if one does: what it
/// waited for has come. It does so from the loop, so that no chain of answers, up the call graph
/// and on, is a chain of calls.
type Next = Option<Id>;

/// Who looks on while a run goes on.
pub trait Watch {
    /// Attempts of the trace, in the order in which their story ended.
    fn attempts(&mut self, _rows: &[AttemptRow]) {}

    /// Time has come so far; a break ends the run here.
    fn progress(&mut self, _now: Time) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Nobody looks on.
impl Watch for () {}

/// Attempts, at 64 bytes each, that a processor's nearest cache holds together with all else.
const SOME: usize = 1 << 9;

/// The same for its nearer caches.
const MANY: usize = 1 << 13;

/// Rows of the trace that are handed over at once.
const TRACE_BATCH: usize = 131_072;

impl<'m> Simulation<'m> {
    /// A run of `model` from its start, with the given seed; `trace` is the share of user requests
    /// to be traced.
    pub fn new(model: &'m Model, seed: u64, trace: f64) -> Self {
        Self::in_room(model, seed, trace, Room::default())
    }

    /// The same as [`Self::new`] in the room of a run that is over, which spares the memory of a
    /// large one being asked for again.
    pub fn restart(&mut self, model: &'m Model, seed: u64, trace: f64) {
        let mut room = Room {
            events: mem::take(&mut self.events),
            attempts: mem::take(&mut self.attempts),
            calls: mem::take(&mut self.calls),
            services: mem::take(&mut self.services),
            forgotten: mem::take(&mut self.forgotten),
            errands: mem::take(&mut self.errands),
            queues: mem::take(&mut self.queues),
        };
        let stations = self.tiers.drain(..).flat_map(|tier| tier.stations).rev();
        room.queues.extend(stations.map(|station| station.waiting));
        room.clear();
        *self = Self::in_room(model, seed, trace, room);
    }

    fn in_room(model: &'m Model, seed: u64, trace: f64, room: Room) -> Self {
        let Room { events, attempts, calls, services, forgotten, errands, queues } = room;
        let run = &model.run;
        let first = if run.warmup > Span::ZERO { run.warmup } else { run.window };
        let first = first.min(run.duration);
        let record = Record {
            seed,
            tiers: vec![Vec::new(); model.tiers.len()],
            edges: vec![Vec::new(); model.edges.len()],
            ..Record::default()
        };
        let tells_operations = model.edges.iter().any(|edge| edge.cache.is_some())
            || model.tiers.iter().any(|tier| tier.write.is_some());
        let mut simulation = Simulation {
            model,
            root: Key::root(seed),
            now: Time::ZERO,
            left: first,
            window: Window { from: Time::ZERO, to: Time::ZERO + first },
            events,
            attempts,
            calls,
            services,
            forgotten,
            details: Vec::new(),
            errands,
            queues,
            tiers: model.tier_ids().map(|tier| start_tier(model, tier, tells_operations)).collect(),
            edges: model.edge_ids().map(|edge| start_edge(model, edge, tells_operations)).collect(),
            sources: Vec::new(),
            conditions: Conditions::calm(model.tiers.len(), model.edges.len()),
            active: vec![false; model.triggers.len()],
            operator: Operator::at_work(&model.playbook),
            record,
            freed: Vec::new(),
            tells_operations,
            herded: false,
            trace: Trace { share: trace, rows: Vec::new() },
        };
        simulation.open_lanes();
        simulation.open_stations();
        simulation.plan_triggers(true);
        simulation.build_sources();
        simulation.plan_triggers(false);
        simulation
    }

    /// This run, as far as it has come, under another playbook: it goes on exactly like a run of
    /// the same model with that playbook from the start. Many playbooks so share the way up to the
    /// point where they begin to differ.
    ///
    /// # Errors
    /// The playbook of either would have acted before now.
    pub fn branch(&self, playbook: &'m [Step]) -> Result<Self, TooLate> {
        let operator = self.operator.relieved_by(playbook)?;
        Ok(Simulation { operator, ..self.clone() })
    }

    /// Runs to the end and gives the record. After that only [`Self::restart`] makes sense.
    pub fn run(&mut self, watch: &mut impl Watch) -> Record {
        self.run_to(self.model.run.end(), watch);
        self.finish(watch)
    }

    /// Runs to the end of the window in which `time` lies, or until the watcher breaks.
    pub fn run_to(&mut self, time: Time, watch: &mut impl Watch) {
        let end = time.min(self.model.run.end());
        while self.now < end && !self.record.interrupted {
            self.run_window(watch);
            self.record.interrupted =
                self.now < self.model.run.end() && watch.progress(self.now).is_break();
        }
    }

    fn run_window(&mut self, watch: &mut impl Watch) {
        while !self.run_until(self.window.to) {
            watch.attempts(&self.trace.rows);
            self.trace.rows.clear();
        }
        self.now = self.window.to;
        self.close_window();
    }

    /// Handles the events before `end`; false when it stopped before them all, since the trace is
    /// full. It knows no watcher, so that there is one such loop and everything small goes into it.
    fn run_until(&mut self, end: Time) -> bool {
        while let Some(due) = self.events.pop_before(end) {
            self.now = due.time;
            self.left = end.since(due.time);
            self.record.totals.events += 1;
            if is_crowded(&self.attempts) {
                self.foresee(self.events.ahead(&due));
            } else if due.kind() == Event::TIMEOUT && self.attempts.room() >= SOME {
                self.foresee_timeouts(self.events.ahead(&due));
            }
            let next = self.handle(due.event());
            self.go_on(next);
            while let Some(station) = self.freed.pop() {
                self.serve_queue(station);
            }
            if self.trace.rows.len() >= TRACE_BATCH {
                return false;
            }
        }
        true
    }

    #[inline(always)]
    fn handle(&mut self, event: Event) -> Next {
        match event {
            Event::Arrival { source } => self.arrive(source),
            Event::Ask { source, client } => self.ask(source, client),
            Event::Connected(attempt) => self.connect(attempt),
            Event::Delivery(attempt) => self.deliver(attempt),
            Event::WorkEnd(attempt) => self.end_work(attempt),
            Event::QueueWaitEnd(attempt) => self.end_queue_wait(attempt),
            Event::RefusalsDone(station) => self.end_refusals(station),
            Event::Reply(attempt) => self.receive(attempt),
            Event::Timeout(attempt) => self.time_out(attempt),
            Event::PoolWaitEnd(attempt) => self.end_pool_wait(attempt),
            Event::Token { edge, replica } => self.send_held(edge, replica),
            Event::RetryDue(call) => self.retry(call),
            Event::LookupEnd(call) => self.end_lookup(call),
            Event::PauseEnd(attempt) => self.end_pause(attempt),
            Event::Leave(request) => self.user_leaves(request),
            Event::TriggerBegin(trigger) => self.begin_trigger(trigger),
            Event::TriggerEnd(trigger) => self.end_trigger(trigger),
            Event::RampStep { tier, serial } => self.step_ramp(tier, serial),
            Event::Revival(tier) => self.revive(tier),
            Event::ForgottenEnd(forgotten) => {
                self.end_forgotten(forgotten);
                None
            }
        }
    }

    /// Fetches what events to come are about: where there are many attempts, most have lain
    /// untouched for long. First the attempt, and when it is there, what it names. Events about
    /// something else, which are few or about what is in service and at hand, fetch an attempt for
    /// nothing: to tell them apart costs more.
    #[inline(always)]
    fn foresee(&self, [next, later]: [(u8, u64); 2]) {
        let (next_slot, later_slot) = (next.1 as u32, later.1 as u32);
        if later.0 == Event::RETRY_DUE {
            self.foresee_call(later_slot);
        } else {
            self.attempts.prefetch(later_slot);
        }
        if next.0 != Event::RETRY_DUE
            && let Some(attempt) = self.attempts.at(next_slot)
        {
            self.services.prefetch(attempt.service);
            if let Caller::Call(call) = attempt.caller {
                self.foresee_call(call.slot);
            }
        }
    }

    /// The same where only those have left the nearest cache that have lain untouched from their
    /// sending to their timeout. After one timeout, those ahead are timeouts, too.
    #[inline(always)]
    fn foresee_timeouts(&self, [next, later]: [(u8, u64); 2]) {
        self.attempts.prefetch(later.1 as u32);
        if let Some(attempt) = self.attempts.at(next.1 as u32)
            && let Caller::Call(call) = attempt.caller
        {
            self.calls.prefetch(call.slot);
        }
    }

    #[inline(always)]
    fn foresee_call(&self, slot: u32) {
        self.calls.prefetch(slot);
        pages::prefetch_at(&self.errands, slot);
    }

    /// Constant spans of the model get lanes, the most used first: timeouts, then work.
    fn open_lanes(&mut self) {
        for edge in &mut self.edges {
            let lane = |span: Span| Some((span, self.events.lane(span)?));
            edge.timeout = edge.rule.patience.timeout.and_then(lane);
        }
        for tier in &mut self.tiers {
            let mut works = tier.rule.programs.iter().flat_map(|program| &program.works);
            let constant = works.find_map(|work| match work.law {
                Distribution::Constant(span) => Some(span),
                _ => None,
            });
            let lane = |span: Span| Some((span, self.events.lane(span)?));
            tier.work = constant.and_then(lane);
        }
    }

    fn open_stations(&mut self) {
        for tier in self.model.tier_ids() {
            let rule = self.tiers[tier.index()].rule;
            if !rule.is_client() {
                self.add_stations(tier, rule.replicas);
            }
        }
    }

    /// Pools and budgets for so many replicas, or clients, of a tier.
    fn grow_edges(&mut self, tier: TierId, replicas: u32) {
        for edge in self.edges.iter_mut().filter(|edge| edge.rule.caller == tier) {
            edge.grow(replicas as usize);
        }
    }

    fn finish(&mut self, watch: &mut impl Watch) -> Record {
        if self.trace.share > 0.0 {
            let under_way: Vec<Id> = self.attempts.iter().map(|(id, _)| id).collect();
            under_way.into_iter().for_each(|id| self.note_in_trace(id));
        }
        let requests = match self.tiers.iter().any(has_requests) {
            true => self.attempts.iter().filter(|(_, a)| a.is_awaited_request()).count(),
            false => 0,
        };
        let direct =
            self.calls.iter().filter(|(_, c)| matches!(c.parent, Parent::User { .. })).count();
        self.record.totals.in_flight = (requests + direct) as u64;
        self.record.herds = self.tiers.iter_mut().map(|tier| tier.herd.take()).collect();
        self.record.herds.iter_mut().flatten().for_each(Herd::close);
        watch.attempts(&self.trace.rows);
        let totals = &self.record.totals;
        assert_eq!(
            totals.requests,
            totals.answered + totals.failed + totals.in_flight,
            "every request ends exactly once or is still in flight"
        );
        mem::take(&mut self.record)
    }
}

/// Whether there are or were more attempts than lie at hand.
#[inline(always)]
fn is_crowded(attempts: &Slab<Attempt>) -> bool {
    attempts.room() >= MANY
}

/// Whether requests of this tier are attempts, and not all of them calls alone.
fn has_requests(tier: &TierRun<'_>) -> bool {
    tier.rule.is_client() && tier.direct.contains(&None)
}

fn start_tier(model: &Model, id: TierId, tells_operations: bool) -> TierRun<'_> {
    let pauses = |lever: &Lever| matches!(lever, Lever::Pause(tiers) if tiers.contains(&id));
    let steady = !model.triggers.iter().any(|trigger| pauses(&trigger.lever));
    let tier = model.tier(id);
    TierRun::start(tier, direct_calls(model, tier), steady, tells_operations)
}

fn start_edge(model: &Model, id: EdgeId, tells_operations: bool) -> EdgeRun<'_> {
    let edge = model.edge(id);
    EdgeRun::start(edge, model.tier(edge.caller), model.tier(edge.callee), tells_operations)
}

/// By class of a client tier, the one call that is all that a request does: no work, no second
/// step, no chance of failing of its own, and nothing that can stop it on the way.
fn direct_calls(model: &Model, tier: &Tier) -> Vec<Option<EdgeId>> {
    let levers = model.triggers.iter().map(|trigger| &trigger.lever);
    let disturbed =
        levers.into_iter().any(|lever| matches!(lever, Lever::Fail(_) | Lever::Pause(_)));
    let open = tier.arrivals.as_ref().is_some_and(Arrivals::is_open);
    let plain =
        open && !disturbed && tier.errors == 0.0 && tier.write.is_none() && tier.leave.is_none();
    let direct = |program: &Program| match program.ops[..] {
        [Op::Call(edge), Op::End] if plain && !model.edge(edge).optional => Some(edge),
        _ => None,
    };
    tier.programs.iter().map(direct).collect()
}
