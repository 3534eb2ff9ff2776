//! What a run says of the retry policy that its clients follow.

use super::herd::herd_figures;
use super::phase::aftermath;
use super::{Class, Verdict};
use crate::document::{EdgeId, TierId};
use crate::kernel::Span;
use crate::measure::Record;
use crate::model::Model;

/// One run under a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its seed.
    pub seed: u64,
    /// Its verdict.
    pub class: Class,
    /// Until the users are served: 99 % of a herd through (s since the start of the run), or else
    /// recovery (s since the end of the trigger). `None`: not by the end.
    pub time_s: Option<f64>,
    /// Until half of a herd is through (s since the start of the run).
    pub half_s: Option<f64>,
    /// Attempts sent after the trigger.
    pub sent: f64,
    /// Most attempts sent in one window after the trigger, as a rate.
    pub peak_per_s: f64,
    /// Share of a herd that gave up, or of other users' requests after the trigger that failed,
    /// whichever is more.
    pub lost_share: f64,
    /// Attempts that 99 % of a herd's clients do not pass.
    pub attempts_p99: Option<f64>,
    /// Most calls of a herd that were in back-off at once; or of others, on average over a window
    /// after the trigger.
    pub backoff_max: f64,
}

impl Trial {
    /// A judged run, where the policy is that of `edges`.
    pub fn of(model: &Model, record: &Record, verdict: &Verdict, edges: &[EdgeId]) -> Self {
        let after = aftermath(model, record);
        let rows =
            |window: usize| edges.iter().map(move |edge| &record.edges[edge.index()][window]);
        let window_s = model.run.window.seconds();
        let sent = |window: usize| rows(window).map(|row| row.attempts).sum::<u64>() as f64;
        let most = |figure: &dyn Fn(usize) -> f64| {
            after.clone().map(|window| figure(window) / window_s).fold(0.0, f64::max)
        };
        let herds: Vec<_> =
            model.tier_ids().filter_map(|tier| herd_figures(model, record, tier)).collect();
        let worst = |figure: fn(&super::HerdFigures) -> Option<f64>| {
            // A herd that is never through is worse than any time.
            let times: Option<Vec<f64>> = herds.iter().map(figure).collect();
            times.and_then(|times| times.into_iter().reduce(f64::max))
        };
        let recovered = || match verdict.class {
            Class::Stable => Some(verdict.recovery_time.unwrap_or(Span::ZERO)),
            _ => None,
        };
        let is_herd = !herds.is_empty();
        Trial {
            seed: record.seed,
            class: verdict.class,
            time_s: match is_herd {
                true => worst(|herd| herd.through_99_s),
                false => recovered().map(Span::seconds),
            },
            half_s: worst(|herd| herd.through_50_s).filter(|_| is_herd),
            sent: after.clone().map(sent).sum(),
            peak_per_s: most(&sent),
            lost_share: worst(|herd| Some(herd.lost_share)).unwrap_or(0.0).max(failed_share(
                model,
                record,
                after.clone(),
            )),
            attempts_p99: worst(|herd| herd.attempts_p99.map(|tries| tries as f64)),
            backoff_max: worst(|herd| Some(herd.backoff_max as f64))
                .unwrap_or_else(|| most(&|window| rows(window).map(|row| row.backoff_area).sum())),
        }
    }
}

/// Share of the user requests that ended in these windows that failed, herds left out.
fn failed_share(model: &Model, record: &Record, windows: std::ops::Range<usize>) -> f64 {
    let herd = |tier: TierId| record.herds.get(tier.index()).is_some_and(Option::is_some);
    let clients = model.tier_ids().filter(|&tier| model.tier(tier).is_client() && !herd(tier));
    let rows = clients.flat_map(|tier| &record.tiers[tier.index()][windows.clone()]);
    let (failed, ended) =
        rows.fold((0, 0), |(failed, ended), row| (failed + row.failed, ended + row.finished));
    if ended > 0 { failed as f64 / ended as f64 } else { 0.0 }
}
