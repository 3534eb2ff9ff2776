//! Sources at work: the beginning of each request.

use super::event::Event;
use super::{Next, Simulation};
use crate::document::TierId;
use crate::kernel::{Key, Lane, Purpose};
use crate::measure::Herd;
use crate::mechanism::arrival::{Arrivals, Source, SourceState, Upcoming};
use crate::mechanism::timer::Timer;
use crate::mechanism::trigger::Lever;

/// A source at work.
#[derive(Clone, Debug)]
pub struct SourceRun {
    /// Its rule.
    pub source: Source,
    /// How far it has come.
    pub state: SourceState,
    /// What its draws are keyed by.
    pub key: Key,
    /// The client tier whose requests it makes.
    pub tier: TierId,
    /// The clock of its clients.
    pub timer: Option<Timer>,
    /// The request that it makes next.
    pub upcoming: Upcoming,
    /// The one after that. To find it takes a chain of slow steps, which the processor so takes
    /// while it goes on with others; on the way to the next event they would all have to wait.
    pub after: Option<Upcoming>,
    /// Where its next request waits, unless in the wheel. Which of a request, a timeout and an end
    /// of work comes next, the processor cannot foresee; it is asked one question less where two of
    /// them wait in lanes, which are compared without a jump. A surge, most often soon over, has no
    /// lane: one more would be looked at to the end of the run.
    pub lane: Option<Lane>,
    /// Requests it has made, to number them.
    pub born: u64,
    /// The same by client, in a closed loop.
    pub turns: Vec<u32>,
    /// Number of the first of its clients in a closed loop; those before it belong to other sources
    /// of the tier.
    pub first_client: u32,
}

impl SourceRun {
    /// Finds the request after the next.
    #[inline(always)]
    pub fn look_ahead(&mut self) {
        self.after = self.source.next(&mut self.state, self.key, self.timer);
    }
}

impl Simulation<'_> {
    /// Base sources first, then the extra demand of each trigger; each has a key of its own.
    pub(super) fn build_sources(&mut self) {
        let model = self.model;
        for tier in model.tier_ids() {
            let Some(arrivals) = &model.tier(tier).arrivals else { continue };
            self.add_source(tier, 0, arrivals.source());
            if let Arrivals::Herd(herd) = arrivals {
                let herd = Herd::new(herd.clients(), model.criteria.healthy);
                self.tiers[tier.index()].herd = Some(herd);
                self.herded = true;
            }
        }
        for (number, trigger) in model.triggers.iter().enumerate() {
            let Lever::Demand(surges) = &trigger.lever else { continue };
            for (tier, surge) in surges {
                let arrivals = model.tier(*tier).arrivals.as_ref();
                if let Some(source) =
                    arrivals.and_then(|a| a.surge(*surge, trigger.at, trigger.until))
                {
                    self.add_source(*tier, 1 + number as u64, source);
                }
            }
        }
    }

    fn add_source(&mut self, tier: TierId, number: u64, source: Source) {
        let key = self.root.child(u64::from(tier.0)).child(number);
        let index = self.sources.len() as u32;
        let clients = source.loop_clients();
        let turns = vec![0; clients as usize];
        let earlier = self.sources.iter().filter(|run| run.tier == tier);
        let first_client = earlier.map(|run| run.source.loop_clients()).sum();
        if clients > 0 {
            self.grow_edges(tier, first_client + clients);
        }
        let one_by_one = number == 0 && clients == 0;
        let lane = if one_by_one { self.events.own_lane() } else { None };
        self.sources.push(SourceRun {
            source,
            state: SourceState::default(),
            key,
            tier,
            upcoming: Upcoming::default(),
            after: None,
            timer: self.tiers[tier.index()].rule.timer,
            lane,
            born: 0,
            turns,
            first_client,
        });
        if clients == 0 {
            self.sources[index as usize].look_ahead();
            self.plan_arrival(index);
        }
        for client in 0..clients {
            self.think(index as u16, key.child(u64::from(client)), first_client + client);
        }
    }

    #[inline(always)]
    fn plan_arrival(&mut self, source: u32) {
        let run = &mut self.sources[source as usize];
        if let Some(upcoming) = run.after {
            run.upcoming = upcoming;
            match run.lane {
                Some(lane) => self.events.push_in(lane, upcoming.time, Event::Arrival { source }),
                None => self.events.push(upcoming.time, Event::Arrival { source }),
            }
            run.look_ahead();
        }
    }

    #[inline(always)]
    pub(super) fn arrive(&mut self, source: u32) -> Next {
        let run = &mut self.sources[source as usize];
        let (tier, number, Upcoming { key, client, .. }) = (run.tier, run.born, run.upcoming);
        run.born += 1;
        self.plan_arrival(source);
        let client_tier = &self.tiers[tier.index()];
        if key.chance(Purpose::Thinning, 1.0 - client_tier.conditions.demand) {
            return None;
        }
        let clients = client_tier.rule.replicas;
        let client = match client {
            Some(client) => client,
            None if clients == 1 => 0,
            None => (key.unit(Purpose::Client) * f64::from(clients)) as u32,
        };
        self.begin_request(source as u16, tier, client, key, number)
    }

    /// Requests of one closed-loop client are keyed by the client and its own count, so that a slow
    /// answer to one client shifts nobody else's draws.
    pub(super) fn ask(&mut self, source: u16, client: u32) -> Next {
        let run = &mut self.sources[usize::from(source)];
        let own = client - run.first_client;
        let (number, turn) = (run.born, &mut run.turns[own as usize]);
        run.born += 1;
        *turn += 1;
        let key = run.key.child(u64::from(own)).child(u64::from(*turn));
        let tier = run.tier;
        self.begin_request(source, tier, client, key, number)
    }
}
