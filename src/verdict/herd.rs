//! The verdict on a population whose clients come once each: it is well when the criterion's share
//! of them is through.
//!
//! Stable: that share is through. Metastable: the others have given up, or in the last quarter of
//! the time after the trigger not one of them got through, though without the trigger they would
//! have. Undecided: they get through, but not fast enough to be done by the end; or not all have
//! come by then.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::aftermath;
use super::ruling::{Class, Doubt, Ruling};
use super::sentence::{percent, seconds};
use crate::document::TierId;
use crate::kernel::{Span, Time};
use crate::measure::herd::SHARES;
use crate::measure::{EdgeRow, Herd, Record};
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
    /// Most calls that were in back-off at once.
    pub backoff_max: u64,
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
            "backoff_max" => Some(self.backoff_max as f64),
            "longest_wait_s" => Some(self.longest_wait_s),
            _ => None,
        }
    }
}

/// What became of the herd of a tier, if it is one.
pub fn herd_figures(model: &Model, record: &Record, tier: TierId) -> Option<HerdFigures> {
    let herd = record.herds.get(tier.index())?.as_ref()?;
    let after = aftermath(model, record);
    let count = |window: usize, figure: fn(&EdgeRow) -> u64| -> u64 {
        let own = model.edge_ids().filter(|&edge| model.edge(edge).caller == tier);
        own.map(|edge| figure(&record.edges[edge.index()][window])).sum()
    };
    let sends = |window: usize| count(window, |row| row.attempts);
    // The last window may be shorter; what falls into it is no higher rate for that.
    let window_s = model.run.window.seconds();
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
        ghosts: after.clone().map(|window| count(window, |row| row.ghosts)).sum(),
        peak_per_s: after.clone().map(sends).max().unwrap_or(0) as f64 / window_s,
        peak_window_s: window_s,
        attempts_mean: herd.attempts_mean(),
        attempts_p50: herd.attempts_quantile(SHARES[0]),
        attempts_p90: herd.attempts_quantile(SHARES[1]),
        attempts_p99: herd.attempts_quantile(SHARES[2]),
        attempts_max: herd.attempts_quantile(SHARES[3]),
        backoff_max: herd.most_waiting,
        longest_wait_s: herd.longest.seconds(),
    })
}

/// Rules on a herd, held against that of the untriggered twin.
pub fn rule(model: &Model, record: &Record, client: TierId, twin: Option<&Herd>) -> Option<Ruling> {
    let herd = record.herds.get(client.index())?.as_ref()?;
    let ruling = |class| Ruling { class, recovery_time: None, doubt: None };
    let undecided = |doubt| Ruling { doubt: Some(doubt), ..ruling(Class::Undecided) };
    let trigger_end = model.trigger_span().map_or(Time::ZERO, |(_, end)| end);
    if let Some(time) = herd.healthy_at() {
        let recovery_time = model.trigger_span().map(|(_, end)| end.until(time));
        return Some(Ruling { recovery_time, ..ruling(Class::Stable) });
    }
    let end = record.windows.last().map_or(Time::ZERO, |window| window.to);
    let begun: u64 = record.tiers[client.index()].iter().map(|row| row.demand).sum();
    if begun < herd.clients || end <= trigger_end {
        return Some(undecided(Doubt::TooShort));
    }
    let twin_is_well = twin.is_some_and(|twin| twin.healthy_at().is_some());
    let ill = ruling(if twin_is_well { Class::Metastable } else { Class::Overloaded });
    if herd.through + herd.lost == herd.clients {
        return Some(ill);
    }
    let quarter = Span::from_nanos(trigger_end.until(end).nanos() / 4);
    let last = record.windows_between(Time::ZERO + (end.since(Time::ZERO) - quarter), end);
    let through: u64 = record.tiers[client.index()][last].iter().map(|row| row.good).sum();
    if through == 0 || !twin_is_well && twin.is_some() {
        return Some(ill);
    }
    let wanted = model.criteria.healthy * herd.clients as f64 - herd.through as f64;
    let rest = Span::from_seconds((wanted / through as f64 * quarter.seconds()).ceil());
    Some(undecided(Doubt::Draining(rest)))
}

/// The ruling in words. Times are those of the table, since the start of the run.
pub fn sentence(model: &Model, record: &Record, ruling: &Ruling, client: TierId) -> Option<String> {
    let figures = herd_figures(model, record, client)?;
    let who = format!("{} clients of {}", figures.clients, model.names.tier_name(client));
    let through = percent(Some(figures.through_share));
    let sent = sent(model, &figures);
    let lost = match figures.lost_share {
        0.0 => String::new(),
        share => format!(" {} gave up.", percent(Some(share))),
    };
    let stopped = if record.interrupted { "Interrupted before its end. " } else { "" };
    let class = ruling.class.title();
    let text = match (ruling.class, ruling.doubt) {
        (Class::Stable, _) => {
            let by = |time: Option<f64>| match time {
                Some(_) => format!("by {}", seconds(time)),
                None => "not by the end".into(),
            };
            format!(
                "{class}: of {who} half are through {}, 90% {}, 99% {}, all {}; {sent}.{lost}",
                by(figures.through_50_s),
                by(figures.through_90_s),
                by(figures.through_99_s),
                by(figures.through_all_s),
            )
        }
        (Class::Undecided, Some(Doubt::Draining(rest))) => format!(
            "{class}: {through} of {who} are through by the end; at the pace of the last quarter \
             it takes {rest} more until {} are; {sent}.{lost}",
            percent(Some(model.criteria.healthy)),
        ),
        (Class::Undecided, _) => format!(
            "{class}: {through} of {who} are through, and the run ends before all have come, or \
             before the trigger has gone. Run longer.{lost}"
        ),
        _ if figures.through_share + figures.lost_share > 1.0 - 1e-9 => {
            format!(
                "{class}: only {through} of {who} got through, and nobody tries any more; \
                 {sent}.{lost}"
            )
        }
        _ => format!(
            "{class}: only {through} of {who} are through, the others still try, and in the last \
             quarter of the time not one got through; {sent}.{lost}"
        ),
    };
    Some(format!("{stopped}{text}"))
}

/// "2007 sends after the trigger, which ends at 30 s, at most 14 in 100 ms".
fn sent(model: &Model, figures: &HerdFigures) -> String {
    let after = model.trigger_span().map_or(String::new(), |(_, end)| {
        format!(" after the trigger, which ends at {}", seconds(Some(end.seconds())))
    });
    let most = figures.peak_per_s * figures.peak_window_s;
    format!("{} sends{after}, at most {most:.0} in {}", figures.sent, model.run.window)
}
