//! What a verdict rests on: the figures at the end of the run, and the loop that sustains the bad
//! state.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cause::Scene;
use super::phase::{Phase, phases};
use crate::document::{EdgeId, TierId, rate_text, share_text};
use crate::kernel::Time;
use crate::measure::{EdgeFigures, Frame, Record, TierFigures};
use crate::model::Model;

/// What a verdict rests on, measured over the phase `end` of the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The client tier that fares worst, where there are several.
    pub client: Option<String>,
    /// Its new user requests.
    pub demand_per_s: f64,
    /// User requests answered well.
    pub goodput_per_s: f64,
    /// Goodput as a share of demand.
    pub goodput_share: Option<f64>,
    /// The same in the untriggered twin, at the same time.
    pub twin_goodput_share: Option<f64>,
    /// Goodput as a share of demand while the triggers last.
    pub goodput_share_during_trigger: Option<f64>,
    /// Mean response time, answers and failures together.
    pub response_mean_s: Option<f64>,
    /// `itself`, or `operator` when he acted before it recovered; null when it did not recover.
    pub recovered_by: Option<String>,
    /// The deepest tier at which less than half of what reaches it succeeds.
    pub tier_down: Option<String>,
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
    /// Gathers the evidence of a run, as the users of `client` see it.
    pub(super) fn gather(
        model: &Model,
        record: &Record,
        twin: Option<&Record>,
        client: TierId,
        recovery: Option<Time>,
    ) -> Self {
        let all = phases(model, record);
        let windows = |name: &str| {
            all.iter().find(|phase| phase.name == name).map_or(0..0, |phase| phase.windows.clone())
        };
        let last = windows("end");
        let twin = twin.filter(|twin| twin.windows.len() >= last.end && !last.is_empty());
        let row = record.tier_sum(client, last.clone());
        let seconds = frame(model, record, client, &last).seconds.max(1e-9);
        let demand_per_s = frame_demand(model, record, &last) / seconds;
        let scene = Scene { model, record, twin, windows: last.clone(), demand_per_s };
        let cause = scene.cause();
        let clients = model.tiers.iter().filter(|tier| tier.is_client()).count();
        let worst = worst_tier(model, record, &last);
        let figures = |record: &Record| {
            let frame = |tier| frame(model, record, tier, &last);
            worst.map(|tier| TierFigures::of(&record.tier_sum(tier, last.clone()), &frame(tier)))
        };
        let here = figures(record);
        let offered = here.as_ref().and_then(|figures| figures.offered_per_s);
        let acted = |until| record.log.iter().any(|entry| entry.operator && entry.at <= until);
        Evidence {
            client: (clients > 1).then(|| model.names.tier_name(client).to_owned()),
            demand_per_s: row.demand as f64 / seconds,
            goodput_per_s: row.good as f64 / seconds,
            goodput_share: good_share(record, client, &last),
            twin_goodput_share: twin.and_then(|twin| good_share(twin, client, &last)),
            goodput_share_during_trigger: good_share(record, client, &windows("during")),
            response_mean_s: row.sojourn.mean_s(),
            recovered_by: recovery
                .map(|at| if acted(at) { "operator" } else { "itself" }.to_owned()),
            tier_down: scene.down().map(|(tier, row)| {
                format!(
                    "{} is down: only {} of the {} that reach it succeed",
                    model.names.tier_name(tier),
                    share_text((row.good as f64 / row.offered as f64 * 1000.0).round() / 1000.0),
                    rate_text(scene.rate(row.offered)),
                )
            }),
            tier: worst.map(|tier| model.names.tier_name(tier).to_owned()),
            offered_per_s: offered,
            capacity_per_s: worst.and_then(|tier| model.capacity(tier)),
            offered_load_erlang: worst
                .zip(offered)
                .map(|(tier, rate)| rate * model.mean_work(tier)),
            amplification: here.as_ref().and_then(|figures| figures.amplification),
            twin_amplification: twin.and_then(|twin| figures(twin)?.amplification),
            wasted_work_per_s: here.as_ref().and_then(|figures| figures.wasted_work_per_s),
            sustaining_edge: cause
                .as_ref()
                .and_then(|cause| Some(model.names.edge_name(cause.edge?))),
            sustaining_loop: cause.map(|cause| cause.words),
        }
    }
}

/// User requests of all clients.
fn frame_demand(model: &Model, record: &Record, windows: &Range<usize>) -> f64 {
    let clients = model.tier_ids().filter(|&tier| model.tier(tier).is_client());
    clients.map(|tier| record.tier_sum(tier, windows.clone()).demand as f64).sum()
}

fn good_share(record: &Record, client: TierId, windows: &Range<usize>) -> Option<f64> {
    let row = record.tier_sum(client, windows.clone());
    (row.demand > 0).then(|| row.good as f64 / row.demand as f64)
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
