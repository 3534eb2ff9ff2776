//! What a verdict rests on: the figures at the end of the run, and the loop that sustains the bad
//! state.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::Phase;
use super::{Class, Doubt, Ruling};
use crate::document::{EdgeId, TierId, rate_text, share_text};
use crate::kernel::Span;
use crate::measure::{EdgeFigures, Frame, Record, TierFigures};
use crate::model::Model;

/// What a verdict rests on, measured in the last tenth of the time after the trigger.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// New user requests.
    pub demand_per_s: f64,
    /// User requests answered well.
    pub goodput_per_s: f64,
    /// Goodput as a share of demand.
    pub goodput_share: Option<f64>,
    /// The same in the untriggered twin, at the same time.
    pub twin_goodput_share: Option<f64>,
    /// The tier that suffers most: the highest offered rate for its capacity.
    pub tier: Option<String>,
    /// Attempts that reach it.
    pub offered_per_s: Option<f64>,
    /// Attempts that it can finish.
    pub capacity_per_s: Option<f64>,
    /// Offered rate times mean service time in Erlang.
    pub offered_load_erlang: Option<f64>,
    /// Attempts that reach it for each user request.
    pub amplification: Option<f64>,
    /// The same in the twin.
    pub twin_amplification: Option<f64>,
    /// Service given there to attempts that nobody waited for any more [server·s/s].
    pub wasted_work_per_s: Option<f64>,
    /// The edge that adds the load, "caller->callee".
    pub sustaining_edge: Option<String>,
    /// How the bad state feeds itself, in words.
    pub sustaining_loop: Option<String>,
}

/// The figures of a tier over a phase.
pub fn tier_figures(model: &Model, record: &Record, tier: TierId, phase: &Phase) -> TierFigures {
    let frame = frame(model, record, tier, &phase.windows);
    TierFigures::of(&record.tier_sum(tier, phase.windows.clone()), &frame)
}

/// The figures of an edge over a phase.
pub fn edge_figures(model: &Model, record: &Record, edge: EdgeId, phase: &Phase) -> EdgeFigures {
    let frame = frame(model, record, model.edge(edge).caller, &phase.windows);
    EdgeFigures::of(&record.edge_sum(edge, phase.windows.clone()), &frame)
}

/// Length and demand of some windows, as a tier is reached by it.
pub fn frame(model: &Model, record: &Record, tier: TierId, windows: &Range<usize>) -> Frame {
    let measured = &record.windows[windows.clone()];
    let seconds = measured.iter().map(|window| window.to.since(window.from).seconds()).sum();
    let clients = &model.reaching_clients()[tier.index()];
    let rows = clients.iter().flat_map(|client| &record.tiers[client.index()][windows.clone()]);
    Frame { seconds, demand: rows.map(|row| row.demand).sum() }
}

impl Evidence {
    /// Gathers the evidence of a run.
    pub(super) fn gather(model: &Model, record: &Record, twin: Option<&Record>) -> Self {
        let last = last_windows(model, record);
        let seconds =
            record.windows[last.clone()].iter().map(|w| w.to.since(w.from).seconds()).sum::<f64>();
        let (demand, good) = user_counts(model, record, &last);
        let share = |(demand, good): (u64, u64)| (demand > 0).then(|| good as f64 / demand as f64);
        let worst = worst_tier(model, record, &last);
        let figures = |record: &Record| {
            let phase = Phase {
                name: "last",
                windows: last.clone(),
                from: record.windows[last.start].from,
                to: record.windows[last.end - 1].to,
            };
            worst.map(|tier| tier_figures(model, record, tier, &phase))
        };
        let twin = twin.filter(|twin| twin.windows.len() >= last.end && !last.is_empty());
        let here = if last.is_empty() { None } else { figures(record) };
        let sustaining = sustaining_loop(model, record, twin, &last, worst);
        let offered = here.as_ref().and_then(|figures| figures.offered_per_s);
        Evidence {
            demand_per_s: demand as f64 / seconds.max(1e-9),
            goodput_per_s: good as f64 / seconds.max(1e-9),
            goodput_share: share((demand, good)),
            twin_goodput_share: twin.and_then(|twin| share(user_counts(model, twin, &last))),
            tier: worst.map(|tier| model.names.tier_name(tier).to_owned()),
            offered_per_s: offered,
            capacity_per_s: worst.and_then(|tier| model.capacity(tier)),
            offered_load_erlang: worst
                .zip(offered)
                .map(|(tier, rate)| rate * model.mean_work(tier)),
            amplification: here.as_ref().and_then(|figures| figures.amplification),
            twin_amplification: twin.and_then(|twin| figures(twin)?.amplification),
            wasted_work_per_s: here.as_ref().and_then(|figures| figures.wasted_work_per_s),
            sustaining_edge: sustaining.as_ref().map(|(edge, _)| model.names.edge_name(*edge)),
            sustaining_loop: sustaining.map(|(_, words)| words),
        }
    }

    /// The verdict in one sentence that a manager understands.
    pub(super) fn sentence(&self, model: &Model, ruling: &Ruling) -> String {
        let percent = |share: Option<f64>| {
            // Answers to earlier requests can make it a little more than all.
            let share = share.map(|share| share_text((share.min(1.0) * 1000.0).round() / 1000.0));
            share.unwrap_or("none".into())
        };
        let after = |span: Span| match span {
            Span::ZERO => "at once when the trigger ends".to_owned(),
            _ => format!("{span} after the trigger"),
        };
        let answered = percent(self.goodput_share);
        let demand = rate_text(self.demand_per_s);
        let fed = self.sustaining_loop.as_ref().map_or(String::new(), |words| {
            format!(
                ": \
        {words}"
            )
        });
        match (ruling.class, ruling.recovery_time, ruling.doubt) {
            (Class::Stable, Some(recovery), _) if model.trigger_span().is_some() => format!(
                "Stable: users are served again {}, and to the end ({answered} of {demand}).",
                after(recovery)
            ),
            (Class::Stable, ..) => format!("Stable: {answered} of {demand} are answered in time."),
            (Class::Metastable, relapse, _) => {
                let relapse = relapse.map_or(String::new(), |recovery| {
                    format!(" It had recovered {} and collapsed again.", after(recovery))
                });
                format!(
                    "Metastable: the trigger is gone and users ask for {demand} as before, yet \
                    only {answered} are \
                     answered in time{fed}. Without the trigger it would be {}.{relapse}",
                    percent(self.twin_goodput_share),
                )
            }
            (Class::Overloaded, ..) => format!(
                "Overloaded: only {answered} of the {demand} that users ask for are answered in \
                time, {}{fed}.",
                if model.trigger_span().is_some() {
                    "and no better without the \
                trigger"
                } else {
                    "without any trigger"
                },
            ),
            (Class::Undecided, _, Some(Doubt::Draining(rest))) => format!(
                "Undecided: {answered} of {demand} are answered in time, but the backlog \
                shrinks; run at least {rest} \
                 longer to see the end."
            ),
            (Class::Undecided, _, Some(Doubt::LimitInForce)) => format!(
                "Undecided: {answered} of {demand} are answered in time under a rate limit that \
                the operator has not \
                 lifted by the end."
            ),
            (Class::Undecided, ..) => {
                "Undecided: too little time or too few requests after the trigger to tell; run \
                longer."
                    .into()
            }
        }
    }
}

/// The last tenth of the time after the trigger, at least one window.
fn last_windows(model: &Model, record: &Record) -> Range<usize> {
    let all = record.windows.len();
    let after =
        model.trigger_span().map_or(0, |(_, end)| record.windows.partition_point(|w| w.from < end));
    let length = (all - after.min(all)).div_ceil(10).max(1).min(all);
    all - length..all
}

fn user_counts(model: &Model, record: &Record, windows: &Range<usize>) -> (u64, u64) {
    let clients = model.tier_ids().filter(|&tier| model.tier(tier).is_client());
    clients.fold((0, 0), |(demand, good), tier| {
        let rows = &record.tiers[tier.index()][windows.clone()];
        (
            demand + rows.iter().map(|r| r.demand).sum::<u64>(),
            good + rows.iter().map(|r| r.good).sum::<u64>(),
        )
    })
}

/// The tier with the highest offered rate for its capacity; without any capacity, the first callee.
fn worst_tier(model: &Model, record: &Record, windows: &Range<usize>) -> Option<TierId> {
    let servers = model.tier_ids().filter(|&tier| !model.tier(tier).is_client());
    let pressure = |tier: TierId| {
        let offered: u64 =
            record.tiers[tier.index()][windows.clone()].iter().map(|row| row.offered).sum();
        model.capacity(tier).map_or(0.0, |capacity| offered as f64 / capacity)
    };
    let mut worst: Option<(TierId, f64)> = None;
    for tier in servers {
        if worst.is_none_or(|(_, most)| pressure(tier) > most) {
            worst = Some((tier, pressure(tier)));
        }
    }
    worst.map(|(tier, _)| tier)
}

/// The edge whose retries add most to what the twin sends, or else the edge into the worst tier,
/// with the loop in words.
fn sustaining_loop(
    model: &Model,
    record: &Record,
    twin: Option<&Record>,
    windows: &Range<usize>,
    worst: Option<TierId>,
) -> Option<(EdgeId, String)> {
    let worst = worst?;
    let seconds = frame(model, record, worst, windows).seconds;
    let row = |record: &Record, edge: EdgeId| record.edge_sum(edge, windows.clone());
    let retries = |record: &Record, edge: EdgeId| {
        let row = row(record, edge);
        row.attempts.saturating_sub(row.sent_calls())
    };
    let added = |edge: EdgeId| {
        retries(record, edge).saturating_sub(twin.map_or(0, |twin| retries(twin, edge))) as f64
            / seconds
    };
    let mut most: Option<(EdgeId, f64)> = None;
    for edge in model.edge_ids() {
        if most.is_none_or(|(_, added_before)| added(edge) > added_before) {
            most = Some((edge, added(edge)));
        }
    }
    let (edge, extra) = most?;
    let offered = record.tiers[model.edge(edge).callee.index()][windows.clone()]
        .iter()
        .map(|r| r.offered)
        .sum::<u64>();
    let offered = offered as f64 / seconds;
    if extra > 0.1 * offered && extra > 0.0 {
        return Some((edge, retry_words(model, &row(record, edge), edge, extra, offered)));
    }
    if let Some(cold) = cold_cache(model, record, twin, windows) {
        return Some(cold);
    }
    stale_queue(model, record, windows, worst)
}

fn retry_words(
    model: &Model,
    row: &crate::measure::EdgeRow,
    edge: EdgeId,
    extra: f64,
    offered: f64,
) -> String {
    let callee = model.edge(edge).callee;
    let name = model.names.tier_name(callee);
    let cause = [(row.timed_out, "timeouts"), (row.refused, "refusals"), (row.failed, "errors")];
    let (_, cause) = cause.into_iter().max_by_key(|(count, _)| *count).expect("three causes");
    let able = model
        .capacity(callee)
        .map_or(String::new(), |rate| format!(", which can do {}", rate_text(rate)));
    format!(
        "{cause} on {} are retried, and these retries are {} of the {} that reach {name}{able}",
        model.names.edge_name(edge),
        rate_text(extra),
        rate_text(offered),
    )
}

/// A cache that hits much less often than in the twin.
fn cold_cache(
    model: &Model,
    record: &Record,
    twin: Option<&Record>,
    windows: &Range<usize>,
) -> Option<(EdgeId, String)> {
    let hit_share = |record: &Record, edge: EdgeId| {
        let row = record.edge_sum(edge, windows.clone());
        row.hits as f64 / (row.hits + row.misses).max(1) as f64
    };
    let twin = twin?;
    let edge =
        model.edge_ids().find(|&edge| hit_share(record, edge) < hit_share(twin, edge) - 0.1)?;
    let words = format!(
        "the cache on {} hits {} of lookups where it should hit {}, and what misses overloads {}",
        model.names.edge_name(edge),
        share_text((hit_share(record, edge) * 1000.0).round() / 1000.0),
        share_text((hit_share(twin, edge) * 1000.0).round() / 1000.0),
        model.names.tier_name(model.edge(edge).callee),
    );
    Some((edge, words))
}

/// A queue whose wait is longer than its callers' patience.
fn stale_queue(
    model: &Model,
    record: &Record,
    windows: &Range<usize>,
    worst: TierId,
) -> Option<(EdgeId, String)> {
    let sum = record.tier_sum(worst, windows.clone());
    let wait = sum.wait.mean_s()?;
    let into = |&edge: &EdgeId| model.edge(edge).callee == worst;
    let impatient = |edge: &EdgeId| {
        model.edge(*edge).patience.timeout.is_some_and(|span| span.seconds() < wait)
    };
    let edge = model.edge_ids().filter(into).find(impatient)?;
    let name = model.names.tier_name(worst);
    let timeout = model.edge(edge).patience.timeout?;
    Some((
        edge,
        format!(
            "attempts wait {wait:.1} s at {name}, longer than the {timeout} for which their \
            callers wait, so it works for callers that have left"
        ),
    ))
}
