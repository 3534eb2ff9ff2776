//! The verdict on a population whose clients come once each: it is well when the criterion's share
//! of them is through.
//!
//! Stable: that share is through, or nobody tries any more. Metastable: clients still come, and in
//! the last quarter of the time after the trigger not one got through, though without the trigger
//! they would have. Undecided: they get through, but not fast enough to be done by the end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::{Phase, phases};
use super::ruling::{Class, Doubt, Ruling};
use super::sentence::{percent, seconds};
use crate::document::TierId;
use crate::kernel::{Span, Time};
use crate::measure::herd::SHARES;
use crate::measure::{Herd, Record};
use crate::model::Model;

/// What became of a herd. Times are since the start of the run, counts of sends since the end of
/// the last trigger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HerdFigures {
    /// Clients in all.
    pub clients: u64,
    /// Share of them that is through by the end.
    pub through_share: f64,
    /// Share of them that has given up.
    pub lost_share: f64,
    /// Half of them are through.
    pub through_50_s: Option<f64>,
    /// 90 % of them are through.
    pub through_90_s: Option<f64>,
    /// 99 % of them are through.
    pub through_99_s: Option<f64>,
    /// All of them are through.
    pub through_all_s: Option<f64>,
    /// Attempts sent after the trigger.
    pub sent: u64,
    /// Of these, for users that had left.
    pub ghosts: u64,
    /// Most attempts sent in one window after the trigger, as a rate.
    pub peak_per_s: f64,
    /// The length of that window.
    pub peak_window_s: f64,
    /// Attempts of a client, on average.
    pub attempts_mean: Option<f64>,
    /// Attempts that half of the clients do not pass.
    pub attempts_p50: Option<u64>,
    /// Attempts that 90 % of the clients do not pass.
    pub attempts_p90: Option<u64>,
    /// Attempts that 99 % of the clients do not pass.
    pub attempts_p99: Option<u64>,
    /// Most attempts of a client.
    pub attempts_max: Option<u64>,
    /// Most clients in back-off, on average over a window.
    pub backoff_max: f64,
    /// The longest that a user waited, for an answer or until it gave up.
    pub longest_wait_s: f64,
}

impl HerdFigures {
    /// A figure by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let count = |count: Option<u64>| count.map(|count| count as f64);
        match name {
            "through_share" => Some(self.through_share),
            "lost_share" => Some(self.lost_share),
            "through_50_s" => self.through_50_s,
            "through_90_s" => self.through_90_s,
            "through_99_s" => self.through_99_s,
            "through_all_s" => self.through_all_s,
            "sent" => Some(self.sent as f64),
            "ghosts" => Some(self.ghosts as f64),
            "peak_per_s" => Some(self.peak_per_s),
            "attempts_mean" => self.attempts_mean,
            "attempts_p50" => count(self.attempts_p50),
            "attempts_p90" => count(self.attempts_p90),
            "attempts_p99" => count(self.attempts_p99),
            "attempts_max" => count(self.attempts_max),
            "backoff_max" => Some(self.backoff_max),
            "longest_wait_s" => Some(self.longest_wait_s),
            _ => None,
        }
    }
}

/// What became of the herd of a tier, if it is one.
pub fn herd_figures(model: &Model, record: &Record, tier: TierId) -> Option<HerdFigures> {
    let herd = record.herds.get(tier.index())?.as_ref()?;
    let phases = phases(model, record);
    let after = Phase::main(&phases).map_or(0..0, |phase| phase.windows.clone());
    let sends = |window: usize| -> u64 {
        let own = model.edge_ids().filter(|&edge| model.edge(edge).caller == tier);
        own.map(|edge| record.edges[edge.index()][window].attempts).sum()
    };
    let ghosts = |window: usize| -> u64 {
        let own = model.edge_ids().filter(|&edge| model.edge(edge).caller == tier);
        own.map(|edge| record.edges[edge.index()][window].ghosts).sum()
    };
    let backoff = |window: usize| -> f64 {
        let own = model.edge_ids().filter(|&edge| model.edge(edge).caller == tier);
        own.map(|edge| record.edges[edge.index()][window].backoff_area).sum()
    };
    let length = |window: usize| {
        let window = record.windows[window];
        window.to.since(window.from).seconds()
    };
    let window_s = model.run.window.seconds();
    let most = |figures: &mut dyn Iterator<Item = f64>| figures.fold(0.0, f64::max);
    let share = |count: u64| count as f64 / herd.clients as f64;
    let [half, ninety, nearly, all, _] = herd.times.map(|time| time.map(Time::seconds));
    Some(HerdFigures {
        clients: herd.clients,
        through_share: share(herd.through),
        lost_share: share(herd.lost),
        through_50_s: half,
        through_90_s: ninety,
        through_99_s: nearly,
        through_all_s: all,
        sent: after.clone().map(sends).sum(),
        ghosts: after.clone().map(ghosts).sum(),
        peak_per_s: most(&mut after.clone().map(|w| sends(w) as f64 / length(w))),
        peak_window_s: window_s,
        attempts_mean: herd.attempts_mean(),
        attempts_p50: herd.attempts_quantile(SHARES[0]),
        attempts_p90: herd.attempts_quantile(SHARES[1]),
        attempts_p99: herd.attempts_quantile(SHARES[2]),
        attempts_max: herd.attempts_quantile(SHARES[3]),
        backoff_max: most(&mut (0..record.windows.len()).map(|w| backoff(w) / length(w))),
        longest_wait_s: herd.longest.seconds(),
    })
}

/// Rules on a herd, held against that of the untriggered twin.
pub fn rule(model: &Model, record: &Record, client: TierId, twin: Option<&Herd>) -> Option<Ruling> {
    let herd = record.herds.get(client.index())?.as_ref()?;
    let ruling = |class| Ruling { class, recovery_time: None, doubt: None };
    let trigger_end = model.trigger_span().map_or(Time::ZERO, |(_, end)| end);
    if let Some(time) = herd.healthy_at() {
        let recovery_time = model.trigger_span().map(|(_, end)| end.until(time));
        return Some(Ruling { recovery_time, ..ruling(Class::Stable) });
    }
    if herd.through + herd.lost == herd.clients {
        return Some(ruling(Class::Stable));
    }
    if twin.is_some_and(|twin| twin.healthy_at().is_none()) {
        return Some(ruling(Class::Overloaded));
    }
    let end = record.windows.last().map_or(Time::ZERO, |window| window.to);
    let quarter = Span::from_nanos(trigger_end.until(end).nanos() / 4);
    let last = record.windows_between(Time::ZERO + (end.since(Time::ZERO) - quarter), end);
    let through: u64 = record.tiers[client.index()][last].iter().map(|row| row.good).sum();
    if through == 0 {
        let lone = twin.is_none() && !model.triggers.is_empty();
        let class =
            if lone || model.triggers.is_empty() { Class::Overloaded } else { Class::Metastable };
        return Some(ruling(class));
    }
    let wanted = model.criteria.healthy * herd.clients as f64 - herd.through as f64;
    let rest = Span::from_seconds((wanted / through as f64 * quarter.seconds()).ceil());
    Some(Ruling { doubt: Some(Doubt::Draining(rest)), ..ruling(Class::Undecided) })
}

/// The ruling in words.
pub fn sentence(model: &Model, record: &Record, ruling: &Ruling, client: TierId) -> Option<String> {
    let figures = herd_figures(model, record, client)?;
    let name = model.names.tier_name(client);
    let HerdFigures { clients, through_share, lost_share, sent, peak_per_s, .. } = figures;
    let who = format!("{clients} clients of {name}");
    let (sent, peak) = (format!("{sent} sends"), format!("{peak_per_s:.0}/s"));
    let trigger_s = model.trigger_span().map_or(0.0, |(_, end)| end.seconds());
    let since = if model.triggers.is_empty() { "the start" } else { "the trigger" };
    let lost = match figures.lost_share {
        0.0 => String::new(),
        _ => format!(" {} gave up.", percent(Some(lost_share))),
    };
    let stopped = if record.interrupted { "Interrupted before its end. " } else { "" };
    let text = match (ruling.class, ruling.doubt, figures.through_90_s) {
        (Class::Stable, _, Some(_)) => {
            let within = |time: Option<f64>| {
                time.map_or("not to the end".into(), |time| {
                    seconds(Some((time - trigger_s).max(0.0)))
                })
            };
            format!(
                "Stable: of {who} half are through {} after {since}, 90% {}, 99% {}, all {}; \
                 {sent} after it, at most {peak} at once.{lost}",
                within(figures.through_50_s),
                within(figures.through_90_s),
                within(figures.through_99_s),
                within(figures.through_all_s),
            )
        }
        (Class::Stable, ..) => format!(
            "Stable: nobody tries any more, but of {who} only {} got through.{lost}",
            percent(Some(through_share))
        ),
        (Class::Undecided, Some(Doubt::Draining(rest)), _) => format!(
            "Undecided: {} of {who} are through by the end; at the pace of the last quarter it \
             takes {rest} more until {} are. {sent} after {since}, at most {peak} at once.{lost}",
            percent(Some(through_share)),
            percent(Some(model.criteria.healthy)),
        ),
        (class, ..) => format!(
            "{}: {} of {who} are through, the others still try, and in the last quarter of the \
             time after {since} not one got through. {sent} after it, at most {peak} at \
             once.{lost}",
            class.title(),
            percent(Some(through_share)),
        ),
    };
    Some(format!("{stopped}{text}"))
}
