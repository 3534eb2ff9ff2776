//! What lives in a run: attempts, calls, and one record for each tier, with its rule, its
//! conditions, its counters and the state of its mechanisms. What an event needs of a tier lies
//! together, so that it is looked up once. (Edges have theirs in `edge`.)
//!
//! A user request is an attempt at a client tier, or, where it is one call and nothing else, that
//! call alone. It makes *calls*; a call makes attempts at its callee, one after the other; each of
//! these may make calls of its own. An attempt belongs to two parties, its caller and its callee,
//! and is freed when both are done with it.

use super::station::Station;
use crate::document::{EdgeId, TierId};
use crate::kernel::{Generation, Id, Key, Lane, Span, Time, record};
use crate::measure::{Herd, TierMeter};
use crate::mechanism::admission::{Limiter, Ramp};
use crate::mechanism::budget::Claim;
use crate::mechanism::conditions::TierConditions;
use crate::mechanism::idempotency::Ledger;
use crate::mechanism::optimistic::Version;
use crate::mechanism::outcome::Outcome;
use crate::mechanism::retry::RetryState;
use crate::mechanism::timeout::Abandoned;
use crate::mechanism::work::{Drawn, Work, failing_share};
use crate::model::{Op, Program, Tier};

/// One try of a call at its callee; or a user request, at its client. One cache line, since there
/// can be a million of them in flight: what it does in service, and what the trace tells of it,
/// stands elsewhere.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Attempt {
    /// What its draws are keyed by.
    pub key: Key,
    /// Who waits for it.
    pub caller: Caller,
    /// After this nobody waits, as far as the callee knows. In plain work, when that began: from
    /// then on nobody asks for the deadline.
    pub deadline: Time,
    /// When the first in the chain of callers, from its own up to the user, left; [`Time::NEVER`]
    /// while all of them wait. What it does from then on is wasted.
    pub alone_since: Time,
    /// Reached the callee.
    pub arrived: Time,
    /// Replica of the tier, or number of the client.
    pub replica: u32,
    /// Its [`Service`], from the start of service or from when its work is drawn; [`NO_SERVICE`]
    /// before, and in plain work.
    pub service: u32,
    /// The edge it came along; without meaning for a user request.
    pub edge: EdgeId,
    /// Its callee.
    pub tier: TierId,
    /// Its class.
    pub class: u16,
    /// Where in its life it is.
    pub state: State,
    /// The callee's answer, once there is one.
    pub answer: Option<Outcome>,
    /// Whether its caller has left.
    pub left: bool,
    /// Whether it holds a server.
    pub holds_server: bool,
    /// Whether a call it needs has failed.
    pub failed: Option<Blame>,
    /// Whether it goes into the trace.
    pub traced: bool,
    /// Of its name.
    pub generation: Generation,
}

const _: () = assert!(size_of::<Attempt>() == 64, "an attempt is one cache line");

record!(Attempt);

/// The name of no [`Service`].
pub const NO_SERVICE: u32 = u32::MAX;

/// What an attempt in service does.
#[derive(Clone, Debug, Default)]
pub struct Service {
    /// The first of its calls, [`Id::NONE`] without.
    pub first_call: Id,
    /// The work under way; of one that has not begun, its length as drawn before.
    pub piece: Piece,
    /// Where in the program it is.
    pub step: u16,
    /// Calls it waits for.
    pub pending: u16,
    /// The record of an optimistic tier, as it was read.
    pub read: Version,
}

impl Service {
    /// A piece of work without calls.
    #[inline(always)]
    pub fn of(piece: Piece) -> Self {
        Service { piece, ..Service::default() }
    }
}

/// A piece of work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Piece {
    /// It began.
    pub began: Time,
    /// Its length.
    pub length: Span,
    /// Pauses of the tier that its end has been reckoned with.
    pub pauses: Span,
}

impl Piece {
    /// How much later than planned it ends, at a tier whose pauses so far come to `paused`.
    #[inline(always)]
    pub fn put_off(&mut self, paused: Span) -> Option<Span> {
        if paused <= self.pauses {
            return None;
        }
        Some(paused - std::mem::replace(&mut self.pauses, paused))
    }
}

/// What few want to know of an attempt: caches, writes and the trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail {
    /// The operation it stands for: the same for all attempts of a call.
    pub operation: Key,
    /// Number of its user request: source in the upper 16 bits, number within it below.
    pub request: u64,
    /// Sent by the caller.
    pub sent: Time,
    /// Service began; [`Time::NEVER`] before.
    pub started: Time,
    /// 1 for the first of its call.
    pub number: u32,
}

/// Who waits for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A user, through this source.
    User {
        /// Number of the source.
        source: u16,
    },
    /// A call.
    Call(Id),
}

impl Default for Attempt {
    fn default() -> Self {
        Attempt {
            key: Key::default(),
            caller: Caller::User { source: 0 },
            deadline: Time::NEVER,
            alone_since: Time::NEVER,
            arrived: Time::NEVER,
            replica: 0,
            service: NO_SERVICE,
            edge: EdgeId(0),
            tier: TierId(0),
            class: 0,
            state: State::Running,
            answer: None,
            left: false,
            holds_server: false,
            failed: None,
            traced: false,
            generation: Generation::default(),
        }
    }
}

impl Attempt {
    /// Whether its caller still waits.
    #[inline]
    pub fn awaited(&self) -> bool {
        !self.left
    }

    /// Whether somebody in the chain of its callers has left.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.alone_since != Time::NEVER
    }

    /// Begins plain work: a piece that is all that it does, and whose end nothing puts off. It
    /// needs no [`Service`].
    #[inline(always)]
    pub fn begin_plain_work(&mut self, now: Time) {
        self.deadline = now;
        self.state = State::Working;
    }

    /// The plain work that ends now.
    #[inline(always)]
    pub fn plain_work(&self, now: Time) -> Piece {
        let began = self.deadline;
        Piece { began, length: now.since(began), pauses: Span::ZERO }
    }

    /// Whether it is a request whose user still waits.
    pub fn is_awaited_request(&self) -> bool {
        self.awaited() && matches!(self.caller, Caller::User { .. })
    }

    /// How it ended for its caller; `None` while it is under way.
    pub fn outcome(&self) -> Option<Outcome> {
        if self.awaited() { self.answer } else { Some(Outcome::TimedOut) }
    }

    /// Whether it stands in a queue.
    pub fn waits(&self) -> bool {
        matches!(self.state, State::Queued | State::Resuming)
    }
}

/// Why a call failed that an attempt needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// A rate limit turned it away.
    Admission,
    /// Anything else.
    Callee,
}

/// Where in its life an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a connection.
    PoolWaiting,
    /// On its way to the callee.
    Travelling,
    /// Kept by an outage that lets go at its end.
    Held,
    /// Waits for its first service.
    Queued,
    /// Waits to go on after a call, at a tier that freed its worker.
    Resuming,
    /// In service: runs its program.
    Running,
    /// In service: works until an event.
    Working,
    /// In service: waits for callees.
    Calling,
    /// Its answer is on the way back.
    Returning,
    /// No answer will ever come.
    Lost,
}

/// All attempts of one caller at one callee for one purpose. One cache line, since a herd has a
/// million of them in back-off: what only some calls need stands in their [`Errand`].
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Call {
    /// What its draws are keyed by.
    pub key: Key,
    /// Who made the call.
    pub parent: Parent,
    /// The slot of the attempt under way, which lives; [`NO_ATTEMPT`] between attempts.
    pub attempt: u32,
    /// After this the caller wants no answer.
    pub deadline: Time,
    /// Between attempts.
    pub retry: RetryState,
    /// Attempts made.
    pub made: u32,
    /// Replica of the caller, which has the pool and the budget.
    pub replica: u32,
    /// On which edge.
    pub edge: EdgeId,
    /// Class of the caller's request.
    pub class: u16,
    /// Whether the attempt that made the call is alone.
    pub alone: bool,
    /// Whether its attempts go into the trace.
    pub traced: bool,
    /// Whether it waits for its next attempt.
    pub backing_off: bool,
    /// What it has of its budget.
    pub claim: Claim,
    /// Of its name.
    pub generation: Generation,
}

const _: () = assert!(size_of::<Call>() == 64, "a call is one cache line");

/// The slot of no attempt.
pub const NO_ATTEMPT: u32 = u32::MAX;

record!(Call);

/// What a call is made for: kept of calls that an attempt makes, and of those that caches, writes
/// or the trace ask about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errand {
    /// Since when the attempt that made the call is alone; without meaning where it is not.
    pub alone_since: Time,
    /// What the caller wants done: the same whoever asks again.
    pub operation: Key,
    /// The next call of the same parent, [`Id::NONE`] for the last.
    pub sibling: Id,
    /// Number of the user request it is for.
    pub request: u64,
}

/// Who made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// An attempt, in its service.
    Attempt {
        /// Its name.
        id: Id,
        /// Its [`Service`].
        service: u32,
    },
    /// A user whose request is this one call, so that it needs no attempt of its own. It began at
    /// `began`.
    User { began: Time },
}

/// What a call takes from whoever makes it.
pub struct Party {
    pub key: Key,
    pub operation: Key,
    pub parent: Parent,
    pub sibling: Id,
    pub deadline: Time,
    pub alone_since: Time,
    pub replica: u32,
    pub class: u16,
    pub request: u64,
    pub traced: bool,
}

impl Default for Call {
    fn default() -> Self {
        Call {
            key: Key::default(),
            parent: Parent::User { began: Time::ZERO },
            attempt: NO_ATTEMPT,
            deadline: Time::NEVER,
            retry: RetryState::default(),
            made: 0,
            replica: 0,
            edge: EdgeId(0),
            class: 0,
            alone: false,
            traced: false,
            backing_off: false,
            claim: Claim::None,
            generation: Generation::default(),
        }
    }
}

/// A tier in a run.
#[derive(Clone, Debug)]
pub struct TierRun<'m> {
    /// Its rule.
    pub rule: &'m Tier,
    /// How it is moved right now; a copy of what [`Conditions`] say.
    pub conditions: TierConditions,
    /// Share of attempts that fail after their work, under these conditions.
    pub failing: f64,
    /// By class, the one call that is all that its requests do, where nothing else can befall them;
    /// client tiers only.
    pub direct: Vec<Option<EdgeId>>,
    /// By class, the work of an attempt that is this one piece of work and nothing else.
    pub leaf: Vec<Option<&'m Work>>,
    /// Whether nothing in the model ever makes it pause.
    pub steady: bool,
    /// The first constant length of work, and its lane.
    pub work: Option<(Span, Lane)>,
    /// Whether one that waits here needs no record once its caller has left, unless it is traced or
    /// carries a deadline: it waits on, nothing has been drawn for it, and nobody asks for its
    /// [`Detail`].
    pub forgetful: bool,
    /// Counters of the current window.
    pub meter: TierMeter,
    /// Replicas, those added by the operator too.
    pub replicas: u32,
    /// Their stations: one each, or one for all where they share a queue.
    pub stations: Vec<Station>,
    /// Attempts distributed so far.
    pub turn: u64,
    /// Rate limit in force.
    pub limiter: Option<Limiter>,
    /// Ramp under way: rule, rate at its start, steps taken.
    pub ramp: Option<(Ramp, f64, u32)>,
    /// Counts ramps, so that a replaced one is recognised.
    pub ramp_serial: u16,
    /// Kept by an outage.
    pub held: Vec<Id>,
    /// Down after a restart until then.
    pub down_until: Time,
    /// Paused until then.
    pub paused_until: Time,
    /// All pauses so far, the present one in full.
    pub paused: Span,
    /// Writes done.
    pub ledger: Ledger,
    /// The record that attempts of an optimistic tier work on.
    pub version: Version,
    /// Its clients, where each comes once.
    pub herd: Option<Herd>,
}

impl<'m> TierRun<'m> {
    /// A tier at the start of a run, without stations as yet.
    pub fn start(
        rule: &'m Tier,
        direct: Vec<Option<EdgeId>>,
        steady: bool,
        tells_operations: bool,
    ) -> Self {
        TierRun {
            rule,
            conditions: TierConditions::CALM,
            failing: failing_share(rule.errors, 0.0),
            direct,
            leaf: rule.programs.iter().map(|program| leaf(rule, program)).collect(),
            steady,
            work: None,
            forgetful: rule.abandoned != Abandoned::Interrupt
                && rule.queue.max_wait.is_none()
                && rule.drawn == Drawn::AtStart
                && !tells_operations,
            meter: TierMeter::default(),
            replicas: 0,
            stations: Vec::new(),
            turn: 0,
            limiter: rule.admission.map(|admission| admission.start(Time::ZERO)),
            ramp: None,
            ramp_serial: 0,
            held: Vec::new(),
            down_until: Time::ZERO,
            paused_until: Time::ZERO,
            paused: Span::ZERO,
            ledger: Ledger::default(),
            version: Version::default(),
            herd: None,
        }
    }

    /// The number of the station of a replica.
    #[inline]
    pub fn station(&self, replica: u32) -> u32 {
        replica.min(self.stations.len() as u32 - 1)
    }

    /// The replica for an attempt with this key.
    #[inline(always)]
    pub fn pick_replica(&mut self, key: Key) -> u32 {
        let turn = self.turn;
        self.turn += 1;
        if self.replicas == 1 {
            return 0;
        }
        let load = |replica: usize| {
            let station = &self.stations[replica];
            station.servers.busy() + station.waiting.len() as u32
        };
        self.rule.balance.pick(turn, key, self.replicas as usize, load) as u32
    }

    /// How many wait for service.
    pub fn waiting(&self) -> usize {
        self.stations.iter().map(|station| station.waiting.len()).sum()
    }
}

/// The work of an attempt at this tier that is one piece of work, of a length drawn at its start,
/// and nothing else. What a user does at a client holds no server and goes through its program.
fn leaf<'m>(rule: &Tier, program: &'m Program) -> Option<&'m Work> {
    let server = !rule.is_client() && rule.write.is_none() && !rule.optimistic;
    let leaf = server && rule.drawn == Drawn::AtStart && program.ops == [Op::Work(0), Op::End];
    if leaf { program.works.first() } else { None }
}
