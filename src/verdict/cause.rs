//! Why it is so: the loop that sustains a bad state, or the shortage that needs no loop.
//!
//! The most fundamental explanation comes first: a tier that cannot do what users ask for, even
//! without a single retry, explains everything else.

use std::ops::Range;

use super::evidence::frame;
use crate::document::{EdgeId, TierId, rate_text, share_text};
use crate::measure::{EdgeRow, Record, TierRow};
use crate::mechanism::outcome::Reason;
use crate::model::Model;

/// A named cause.
pub struct Cause {
    /// The edge that adds the load, where one does.
    pub edge: Option<EdgeId>,
    /// In words, to follow a colon.
    pub words: String,
}

/// Some windows of a run and of its twin.
pub struct Scene<'s> {
    /// The model.
    pub model: &'s Model,
    /// The run.
    pub record: &'s Record,
    /// The same seed without triggers, as far as it has these windows.
    pub twin: Option<&'s Record>,
    /// The windows.
    pub windows: Range<usize>,
    /// User requests of all clients (1/s).
    pub demand_per_s: f64,
}

impl Scene<'_> {
    /// The first explanation that holds.
    pub fn cause(&self) -> Option<Cause> {
        self.shortage()
            .or_else(|| self.rate_limit())
            .or_else(|| self.broken_tier())
            .or_else(|| self.retries())
            .or_else(|| self.cold_cache())
            .or_else(|| self.stale_queue())
    }

    /// The deepest tier at which less than half of what reaches it succeeds, whether users notice
    /// or not: they may be served from a fallback.
    pub fn down(&self) -> Option<(TierId, TierRow)> {
        let rows = self.servers().map(|tier| (tier, self.tier(tier)));
        rows.filter(|(_, row)| row.good * 2 < row.offered).last()
    }

    /// Attempts a second.
    pub fn rate(&self, count: u64) -> f64 {
        let seconds = frame(self.model, self.record, TierId(0), &self.windows).seconds;
        count as f64 / seconds
    }

    fn tier(&self, tier: TierId) -> TierRow {
        self.record.tier_sum(tier, self.windows.clone())
    }

    /// Tiers that serve, callers before callees.
    fn servers(&self) -> impl Iterator<Item = TierId> {
        let model = self.model;
        model.top_down().into_iter().filter(|&tier| !model.tier(tier).is_client())
    }

    fn name(&self, tier: TierId) -> &str {
        self.model.names.tier_name(tier)
    }

    /// The deepest tier that gets more than it can do though nobody retries.
    fn shortage(&self) -> Option<Cause> {
        let usual: f64 = {
            let rate = |tier: &crate::model::Tier| {
                tier.arrivals.as_ref().map_or(0.0, |a| a.rate(self.model.run.duration))
            };
            self.model.tiers.iter().map(rate).sum()
        };
        let flow = self.model.normal_flow();
        let asked = |tier: TierId| flow.tiers[tier.index()] * self.demand_per_s / usual.max(1e-9);
        let short =
            |&tier: &TierId| self.model.capacity(tier).is_some_and(|able| asked(tier) > able);
        let tier = self.servers().filter(short).last()?;
        let able = rate_text(self.model.capacity(tier)?);
        let (asked, name) = (rate_text(asked(tier)), self.name(tier));
        let words = format!("{name} is asked for {asked} and can do {able}, without any retry");
        Some(Cause { edge: None, words })
    }

    /// A rate limit of the model that turns away a tenth or more.
    fn rate_limit(&self) -> Option<Cause> {
        let turned_away = |tier: TierId| self.tier(tier).refused[Reason::Admission as usize];
        let limits = |&tier: &TierId| {
            self.model.tier(tier).admission.is_some()
                && turned_away(tier) * 10 > self.tier(tier).offered
        };
        let tier = self.servers().find(limits)?;
        let rate = self.model.tier(tier).admission?.rate;
        let words = format!(
            "the rate limit of {} ({}) turns away {}",
            self.name(tier),
            rate_text(rate),
            rate_text(self.rate(turned_away(tier))),
        );
        Some(Cause { edge: None, words })
    }

    /// A tier that by the model itself fails a twentieth or more of what it serves.
    fn broken_tier(&self) -> Option<Cause> {
        let broken = |&tier: &TierId| self.model.tier(tier).errors >= 0.05;
        let tier = self.servers().filter(broken).last()?;
        let share = share_text(self.model.tier(tier).errors);
        let words = format!("{} fails {share} of what it serves", self.name(tier));
        Some(Cause { edge: None, words })
    }

    /// The edge whose retries add most to what the twin sends.
    fn retries(&self) -> Option<Cause> {
        let retries = |record: &Record, edge: EdgeId| {
            let row = record.edge_sum(edge, self.windows.clone());
            row.attempts.saturating_sub(row.sent_calls())
        };
        let added = |&edge: &EdgeId| {
            let calm = self.twin.map_or(0, |twin| retries(twin, edge));
            retries(self.record, edge).saturating_sub(calm)
        };
        let mut edges: Vec<EdgeId> = self.model.edge_ids().collect();
        edges.sort_by_key(|edge| std::cmp::Reverse(added(edge)));
        let edge = *edges.first()?;
        let offered = self.tier(self.model.edge(edge).callee).offered;
        if added(&edge) == 0 || added(&edge) * 10 < offered {
            return None;
        }
        let row = self.record.edge_sum(edge, self.windows.clone());
        let words = self.retry_words(edge, &row, self.rate(added(&edge)), self.rate(offered));
        Some(Cause { edge: Some(edge), words })
    }

    fn retry_words(&self, edge: EdgeId, row: &EdgeRow, extra: f64, offered: f64) -> String {
        let callee = self.model.edge(edge).callee;
        let causes =
            [(row.timed_out, "timeouts"), (row.refused, "refusals"), (row.failed, "errors")];
        let (_, cause) = causes.into_iter().max_by_key(|(count, _)| *count).expect("three causes");
        let able = self.model.capacity(callee).filter(|able| *able < offered);
        let able = able.map_or(String::new(), |able| {
            format!(
                ", which can do \
        {}",
                rate_text(able)
            )
        });
        format!(
            "{cause} on {} are retried, and these retries are {} of the {} that reach {}{able}",
            self.model.names.edge_name(edge),
            rate_text(extra),
            rate_text(offered),
            self.name(callee),
        )
    }

    /// A cache that hits much less often than in the twin.
    fn cold_cache(&self) -> Option<Cause> {
        let hit_share = |record: &Record, edge: EdgeId| {
            let row = record.edge_sum(edge, self.windows.clone());
            row.hits as f64 / (row.hits + row.misses).max(1) as f64
        };
        let twin = self.twin?;
        let colder = |&edge: &EdgeId| hit_share(self.record, edge) < hit_share(twin, edge) - 0.1;
        let edge = self.model.edge_ids().find(colder)?;
        let percent = |record| share_text((hit_share(record, edge) * 1000.0).round() / 1000.0);
        let words = format!(
            "the cache on {} hits {} of lookups where it should hit {}, and what misses \
            overloads {}",
            self.model.names.edge_name(edge),
            percent(self.record),
            percent(twin),
            self.name(self.model.edge(edge).callee),
        );
        Some(Cause { edge: Some(edge), words })
    }

    /// A queue whose wait is longer than its callers' patience.
    fn stale_queue(&self) -> Option<Cause> {
        let stale = |edge: EdgeId| {
            let rule = self.model.edge(edge);
            let wait = self.tier(rule.callee).wait.mean_s()?;
            let timeout = rule.patience.timeout.filter(|span| span.seconds() < wait)?;
            Some((edge, wait, timeout))
        };
        let (edge, wait, timeout) = self.model.edge_ids().filter_map(stale).last()?;
        let words = format!(
            "attempts wait {wait:.1} s at {}, longer than the {timeout} for which their callers \
             wait, so it works for callers that have left",
            self.name(self.model.edge(edge).callee),
        );
        Some(Cause { edge: Some(edge), words })
    }
}
