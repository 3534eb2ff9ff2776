//! What acts on the whole: windows that end, triggers that come and go, the operator and his
//! playbook.

use super::event::Event;
use super::station::{Station, StationId};
use super::world::TierRun;
use super::{Next, Simulation};
use crate::document::TierId;
use crate::kernel::{Span, Time};
use crate::measure::{LogEntry, Window};
use crate::mechanism::admission::{Admission, Ramp};
use crate::mechanism::balance::Balance;
use crate::mechanism::concurrency::{Servers, kept};
use crate::mechanism::playbook::{Action, Progress, Signals, Step};
use crate::mechanism::trigger::Lever;
use crate::mechanism::work::failing_share;

/// The operator at work.
#[derive(Clone, Debug)]
pub struct Operator<'m> {
    playbook: &'m [Step],
    progress: Progress,
    /// What there was to see at the end of each window: another operator may be asked what he would
    /// have done.
    seen: Vec<Sight>,
}

/// What the operator sees at the end of a window, of the whole and of each tier.
#[derive(Clone, Debug)]
struct Sight {
    signals: Signals,
    waiting: Vec<usize>,
    limited: Vec<bool>,
}

/// A playbook cannot branch off here: it, or that of the run so far, has already acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operator has acted at {at}, before the branch")]
pub struct TooLate {
    /// When the first step was taken, or would have been.
    pub at: Time,
}

impl<'m> Operator<'m> {
    /// At the first step of a playbook.
    pub fn at_work(playbook: &'m [Step]) -> Self {
        Operator { playbook, progress: Progress::default(), seen: Vec::new() }
    }

    /// Another operator, who has seen all that this one has.
    ///
    /// # Errors
    /// One of the two has acted before now, or would have.
    pub fn relieved_by(&self, playbook: &'m [Step]) -> Result<Self, TooLate> {
        self.watch_with(self.playbook)?;
        let progress = self.watch_with(playbook)?;
        Ok(Operator { playbook, progress, seen: self.seen.clone() })
    }

    /// How far one with this playbook would have come by looking on.
    fn watch_with(&self, playbook: &[Step]) -> Result<Progress, TooLate> {
        let mut progress = Progress::default();
        for sight in &self.seen {
            let waiting = |tier: TierId| sight.waiting[tier.index()];
            let limited = |tier: TierId| sight.limited[tier.index()];
            if progress.due(playbook, &sight.signals, waiting, limited).is_some() {
                return Err(TooLate { at: sight.signals.now });
            }
        }
        Ok(progress)
    }
}

impl Simulation<'_> {
    /// Ends the window that closes now: its rows go into the record, and the operator looks at it.
    pub(super) fn close_window(&mut self) {
        let run = &self.model.run;
        let next = Window { from: self.now, to: (self.now + run.window).min(run.end()) };
        let signals = self.signals();
        self.note_levels();
        self.left = next.to.since(next.from);
        let kept = self.now != Time::ZERO + run.warmup;
        if kept {
            self.record.windows.push(self.window);
        }
        for (tier, rows) in self.tiers.iter_mut().zip(&mut self.record.tiers) {
            let row = tier.meter.close(self.left);
            rows.extend(kept.then_some(row));
        }
        for (edge, rows) in self.edges.iter_mut().zip(&mut self.record.edges) {
            let row = edge.meter.close(self.left);
            rows.extend(kept.then_some(row));
        }
        self.window = next;
        self.operate(&signals);
    }

    /// Levels that a row shows as they are at its end.
    fn note_levels(&mut self) {
        for tier in &mut self.tiers {
            let mut limits = tier.stations.iter().map(|station| station.servers.limit());
            tier.meter.counts.servers = tier
                .rule
                .concurrency
                .and_then(|_| limits.try_fold(0u32, |all, limit| Some(all.saturating_add(limit?))));
            tier.meter.counts.limit = tier.limiter.map(|limiter| limiter.rate());
        }
        for edge in &mut self.edges {
            let now = self.now;
            edge.meter.counts.tokens = edge
                .rule
                .budget
                .as_ref()
                .map(|budget| edge.buckets.iter().map(|bucket| budget.left(bucket, now)).sum());
        }
    }

    fn signals(&self) -> Signals {
        let (mut good, mut finished) = (0, 0);
        for client in self.tiers.iter().filter(|tier| tier.rule.is_client()) {
            let counts = &client.meter.counts;
            good += counts.good;
            finished += counts.finished - counts.turned_away;
        }
        Signals {
            now: self.now,
            window: self.model.run.window,
            trigger_end: self.model.trigger_span().map_or(Time::ZERO, |(_, end)| end),
            goodput: (finished > 0).then(|| good as f64 / finished as f64),
        }
    }

    fn operate(&mut self, signals: &Signals) {
        self.operator.seen.push(Sight {
            signals: *signals,
            waiting: self.tiers.iter().map(TierRun::waiting).collect(),
            limited: self.tiers.iter().map(|tier| tier.limiter.is_some()).collect(),
        });
        loop {
            let tiers = &self.tiers;
            let waiting = |tier: TierId| tiers[tier.index()].waiting();
            let limited = |tier: TierId| tiers[tier.index()].limiter.is_some();
            let Operator { playbook, progress, .. } = &mut self.operator;
            let Some(step) = progress.due(playbook, signals, waiting, limited) else { return };
            for action in &step.actions {
                self.log(action.describe(&self.model.names), true);
                self.act(*action);
            }
            while let Some(station) = self.freed.pop() {
                self.serve_queue(station);
            }
        }
    }

    fn act(&mut self, action: Action) {
        let now = self.now;
        match action {
            Action::Limit(tier, rate) => self.limit(tier, rate),
            Action::Ramp(tier, ramp) => self.start_ramp(tier, ramp),
            Action::Retries(on) => self.conditions.retries = on,
            Action::Flush(tier) => self.drop_queue(tier),
            Action::Restart(tier, down) => {
                self.restart_tier(tier, now + down);
                self.events.push(now + down, Event::Revival(tier.0));
            }
            Action::Add(tier, count) => {
                self.add_stations(tier, count);
                self.wake(tier);
            }
            Action::Warm(edge, share) => {
                if let Some(entries) = &mut self.edges[edge.index()].cache {
                    entries.warm(share, now);
                }
            }
        }
    }

    fn limit(&mut self, tier: TierId, rate: Option<f64>) {
        let state = &mut self.tiers[tier.index()];
        state.ramp = None;
        state.limiter = rate.map(|rate| Admission::at(rate).start(self.now));
    }

    fn start_ramp(&mut self, tier: TierId, ramp: Ramp) {
        let state = &mut self.tiers[tier.index()];
        let Some(limiter) = &state.limiter else { return };
        state.ramp = Some((ramp, limiter.rate(), 0));
        state.ramp_serial += 1;
        let serial = state.ramp_serial;
        self.events.push(self.now + ramp.every, Event::RampStep { tier: tier.0, serial });
    }

    /// The rate limit of a tier rises by a step, or is lifted at the end of its ramp.
    pub(super) fn step_ramp(&mut self, tier: u16, serial: u16) -> Next {
        let state = &mut self.tiers[usize::from(tier)];
        let (ramp, from, steps) = state.ramp.filter(|_| serial == state.ramp_serial)?;
        let rate = ramp.rate(from, steps + 1);
        state.limiter = rate.map(|rate| Admission::at(rate).start(self.now));
        state.ramp = rate.map(|_| (ramp, from, steps + 1));
        let name = self.model.names.tier_name(TierId(tier)).to_owned();
        match rate {
            Some(rate) => {
                self.events.push(self.now + ramp.every, Event::RampStep { tier, serial });
                self.log(
                    format!("limit of {name} up to {}", crate::document::rate_text(rate)),
                    true,
                );
            }
            None => self.log(format!("limit of {name} lifted"), true),
        }
        None
    }

    /// A restarted tier is up again.
    pub(super) fn revive(&mut self, tier: u16) -> Next {
        let name = self.model.names.tier_name(TierId(tier)).to_owned();
        self.log(format!("{name} is up again"), true);
        None
    }

    /// Puts the beginning and the end of each trigger into the event list.
    /// Plans the triggers that last from the very start, or the others. Those of the start are
    /// planned before the first requests, so that they act before what comes in the same instant.
    pub(super) fn plan_triggers(&mut self, from_start: bool) {
        for (number, trigger) in self.model.triggers.iter().enumerate() {
            if (trigger.at == Time::ZERO) != from_start {
                continue;
            }
            self.events.push(trigger.at, Event::TriggerBegin(number as u16));
            if trigger.until > trigger.at {
                self.events.push(trigger.until, Event::TriggerEnd(number as u16));
            }
        }
    }

    pub(super) fn begin_trigger(&mut self, number: u16) -> Next {
        let trigger = &self.model.triggers[usize::from(number)];
        self.log(format!("{} begins", trigger.lever.describe(&self.model.names)), false);
        match &trigger.lever {
            Lever::Flush(edges) => {
                for edge in edges {
                    if let Some(entries) = &mut self.edges[edge.index()].cache {
                        entries.flush();
                    }
                }
                return None;
            }
            Lever::Pause(tiers) => {
                for tier in tiers {
                    let state = &mut self.tiers[tier.index()];
                    let until = state.paused_until.max(trigger.until);
                    state.paused = state.paused + self.now.max(state.paused_until).until(until);
                    state.paused_until = until;
                }
            }
            _ => {}
        }
        self.active[usize::from(number)] = true;
        self.apply_triggers();
        None
    }

    pub(super) fn end_trigger(&mut self, number: u16) -> Next {
        let trigger = &self.model.triggers[usize::from(number)];
        self.log(format!("{} ends", trigger.lever.describe(&self.model.names)), false);
        self.active[usize::from(number)] = false;
        self.apply_triggers();
        for tier in self.model.tier_ids() {
            if self.tiers[tier.index()].conditions.outage.is_none() {
                for held in std::mem::take(&mut self.tiers[tier.index()].held) {
                    if self.attempts.lives(held) {
                        let next = self.enter(held);
                        self.go_on(next);
                    }
                }
            }
            self.wake(tier);
        }
        None
    }

    fn apply_triggers(&mut self) {
        self.conditions.calm_down();
        for (trigger, _) in
            self.model.triggers.iter().zip(&self.active).filter(|(_, active)| **active)
        {
            trigger.lever.apply(&mut self.conditions);
        }
        for tier in self.model.tier_ids() {
            let run = &mut self.tiers[tier.index()];
            run.conditions = *self.conditions.tier(tier);
            run.failing = failing_share(run.rule.errors, run.conditions.fail);
            self.take_losses(tier);
        }
        for edge in self.model.edge_ids() {
            let delay = self.conditions.delay(edge);
            self.edges[edge.index()].set_delay(delay, self.tells_operations);
        }
    }

    /// Leaves each station the servers that are not lost.
    fn take_losses(&mut self, tier: TierId) {
        let tier = &mut self.tiers[tier.index()];
        let replicas = tier.stations.len();
        for (replica, Station { servers, .. }) in tier.stations.iter_mut().enumerate() {
            let lost = tier.conditions.lost;
            let able = servers.limit().map(|limit| kept(limit, lost, replica, replicas));
            servers.keep(able);
        }
    }

    /// Servers of a tier may have come free by other ways than an answer.
    fn wake(&mut self, tier: TierId) {
        let stations = self.tiers[tier.index()].stations.len() as u32;
        self.freed.extend((0..stations).map(|index| StationId { tier, index }));
    }

    /// Adds replicas, or servers where all replicas share one queue.
    pub(super) fn add_stations(&mut self, tier: TierId, replicas: u32) {
        let run = &mut self.tiers[tier.index()];
        run.replicas += replicas;
        let concurrency = run.rule.concurrency;
        let shared = run.rule.balance == Balance::Shared;
        match run.stations.first_mut() {
            Some(station) if shared => station.servers.grow(concurrency, replicas),
            _ => {
                let (stations, times) = if shared { (1, replicas) } else { (replicas, 1) };
                let limit = concurrency.map(|limit| limit.saturating_mul(times));
                let queues = &mut self.queues;
                let station = |_| Station {
                    servers: Servers::new(limit),
                    waiting: queues.pop().unwrap_or_default(),
                    debt: Span::ZERO,
                };
                run.stations.extend((0..stations).map(station));
            }
        }
        let all = run.replicas;
        self.grow_edges(tier, all);
        self.take_losses(tier);
    }

    fn log(&mut self, what: String, operator: bool) {
        self.record.log.push(LogEntry { at: self.now, what, operator });
    }
}
