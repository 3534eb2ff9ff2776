//! Summaries of many runs for programs: `ensemble.json` of many seeds of one model, `sweep.json` of
//! many models.
//!
//! Figures of phases are those that the page shows. Why not all: a sweep has hundreds of points,
//! and every figure of every seed stands in `seeds.parquet`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::herd::{self, Herds};
use super::summary::ModelSummary;
use super::text::COLUMNS;
use crate::experiment::{Grid, Plan, Point, Varied};
use crate::measure::{Estimate, Share};
use crate::model::{Model, assumptions};
use crate::verdict::{Class, Consensus, Expectation, Phase, Replication};

/// Changes when a field of these summaries changes its name or meaning; new fields leave it.
pub const SCHEMA_VERSION: u32 = 1;

/// What many seeds of one model say.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnsembleSummary {
    /// Version of this layout.
    pub schema_version: u32,
    /// What they say.
    #[serde(flatten)]
    pub point: PointSummary,
}

/// What many seeds of many models say.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepSummary {
    /// Version of this layout.
    pub schema_version: u32,
    /// `shared`: the n-th seed is the same at all points; `own`: it is not.
    pub draws: String,
    /// True when runs were stopped before their end, and are left out.
    pub interrupted: bool,
    /// What is varied.
    pub vary: Vec<VariedSummary>,
    /// All combinations, the last setting varying fastest.
    pub points: Vec<SweptPoint>,
}

/// A setting that is varied.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VariedSummary {
    /// Its path in the model file.
    pub path: String,
    /// The values that it takes.
    pub values: Vec<String>,
}

/// A point of a sweep.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweptPoint {
    /// What was set, by path.
    pub settings: BTreeMap<String, String>,
    /// What its seeds say.
    #[serde(flatten)]
    pub point: PointSummary,
}

/// What the seeds of one model say. Means are over those that ran to their end.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PointSummary {
    /// What was run.
    pub model: ModelSummary,
    /// What the seeds are hashed from.
    pub root_seed: u64,
    /// Seeds that were asked for.
    pub seeds: u64,
    /// Of these, run to their end; the others are left out.
    pub complete: u64,
    /// True when runs were stopped before their end.
    pub interrupted: bool,
    /// The settings that decide verdicts, as these runs used them.
    pub assumptions: Vec<String>,
    /// The verdict.
    pub verdict: ConsensusSummary,
    /// Expectations of the model, and in how many seeds they are met.
    pub expectations: Vec<HeldSummary>,
    /// User requests of all clients answered well, over the phase `end`.
    pub goodput_per_s: Option<Estimate>,
    /// Over the phase `end`, attempts for each user request at the tier that suffers most.
    pub amplification: Option<Estimate>,
    /// Parts of the run: before, during, after the triggers, the end, the whole.
    pub phases: Vec<PhaseEstimates>,
    /// Mean figures of populations whose clients come once each, by tier and name; a time is a mean
    /// over those seeds in which it came.
    pub herds: Herds,
    /// The seeds, in order; `metastable run --seed` does any of them again.
    pub replications: Vec<ReplicationSummary>,
}

/// The verdict of many seeds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ConsensusSummary {
    /// The class of all seeds, or `undecided` where they disagree.
    pub class: String,
    /// In words.
    pub sentence: String,
    /// Seeds by class.
    pub counts: BTreeMap<String, u64>,
    /// Probability of metastable.
    pub metastable: Share,
    /// Over those seeds that are stable after a trigger; null without one.
    pub recovery_time_s: Option<Estimate>,
}

/// One expectation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeldSummary {
    /// Of what.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// Seeds in which it is met.
    pub met: u64,
    /// All seeds.
    pub of: u64,
    /// The first seed in which it is not.
    pub missed: Option<MissedSummary>,
}

/// A seed in which an expectation is not met.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MissedSummary {
    /// The seed.
    pub seed: u64,
    /// What came out.
    pub got: String,
}

/// A part of the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseEstimates {
    /// `before`, `during`, `after`, `end` or `whole`.
    pub name: String,
    /// First instant.
    pub from_s: f64,
    /// First instant after it.
    pub to_s: f64,
    /// Mean figures by tier and name.
    pub tiers: BTreeMap<String, BTreeMap<String, Estimate>>,
}

/// One seed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplicationSummary {
    /// The seed.
    pub seed: u64,
    /// `stable`, `metastable`, `overloaded` or `undecided`.
    pub class: String,
    /// From the end of the last trigger to the start of the first healthy stretch.
    pub recovery_time_s: Option<f64>,
    /// What a manager understands.
    pub sentence: String,
}

impl EnsembleSummary {
    /// The summary of many seeds of a model.
    pub fn of(model: &Model, plan: &Plan, replications: &[Replication]) -> Self {
        let point = PointSummary::of(model, plan, replications);
        EnsembleSummary { schema_version: SCHEMA_VERSION, point }
    }
}

impl SweepSummary {
    /// The summary of a sweep by the replications of each point.
    pub fn of(grid: &Grid, plan: &Plan, replications: &[Vec<Replication>]) -> Self {
        let models = grid.points.iter().zip(&grid.models);
        let swept = models.zip(replications).map(|((point, model), runs)| SweptPoint {
            settings: settings(&grid.varied, point),
            point: PointSummary::of(model, plan, runs),
        });
        let points: Vec<SweptPoint> = swept.collect();
        SweepSummary {
            schema_version: SCHEMA_VERSION,
            draws: plan.draws.name().to_owned(),
            interrupted: points.iter().any(|swept| swept.point.interrupted),
            vary: grid.varied.iter().map(VariedSummary::of).collect(),
            points,
        }
    }
}

impl VariedSummary {
    fn of(varied: &Varied) -> Self {
        VariedSummary { path: varied.path.clone(), values: varied.values.clone() }
    }
}

/// The value of each path.
fn settings(varied: &[Varied], point: &Point) -> BTreeMap<String, String> {
    varied.iter().map(|varied| varied.path.clone()).zip(point.iter().cloned()).collect()
}

impl PointSummary {
    fn of(model: &Model, plan: &Plan, replications: &[Replication]) -> Self {
        let consensus = Consensus::of(replications);
        let (seeds, complete) = (u64::from(plan.seeds), replications.len() as u64);
        PointSummary {
            model: ModelSummary::of(model),
            root_seed: plan.root(model),
            seeds,
            complete,
            interrupted: complete < seeds,
            assumptions: assumptions(model),
            verdict: ConsensusSummary::of(&consensus),
            expectations: expectations(replications),
            goodput_per_s: mean(replications, |run| run.goodput_per_s(model)),
            amplification: mean(replications, |run| run.amplification),
            phases: phases(model, replications),
            herds: herd::of_runs(model, replications),
            replications: replications.iter().map(ReplicationSummary::of).collect(),
        }
    }

    /// True when every seed meets every expectation.
    pub fn meets_expectations(&self) -> bool {
        self.expectations.iter().all(|expectation| expectation.missed.is_none())
    }
}

impl ConsensusSummary {
    fn of(consensus: &Consensus) -> Self {
        let count = |(class, count): &(Class, u64)| (class.name().into(), *count);
        ConsensusSummary {
            class: consensus.class.name().to_owned(),
            sentence: consensus.sentence.clone(),
            counts: consensus.counts.iter().map(count).collect(),
            metastable: consensus.metastable,
            recovery_time_s: consensus.recovery_time,
        }
    }
}

impl ReplicationSummary {
    fn of(run: &Replication) -> Self {
        ReplicationSummary {
            seed: run.seed,
            class: run.class.name().to_owned(),
            recovery_time_s: run.recovery_time.map(|span| span.seconds()),
            sentence: run.sentence.clone(),
        }
    }
}

/// The mean over those replications that have a figure.
fn mean(runs: &[Replication], figure: impl Fn(&Replication) -> Option<f64>) -> Option<Estimate> {
    Estimate::of(&runs.iter().filter_map(figure).collect::<Vec<f64>>())
}

fn expectations(replications: &[Replication]) -> Vec<HeldSummary> {
    let first = replications.first().map_or(&[][..], |run| &run.expectations);
    let held = |(index, expectation): (usize, &Expectation)| {
        let missed = |run: &&Replication| !run.expectations[index].met;
        HeldSummary {
            what: expectation.what.clone(),
            expected: expectation.expected.clone(),
            met: replications.iter().filter(|run| !missed(run)).count() as u64,
            of: replications.len() as u64,
            missed: replications.iter().find(missed).map(|run| MissedSummary {
                seed: run.seed,
                got: run.expectations[index].got.clone(),
            }),
        }
    };
    first.iter().enumerate().map(held).collect()
}

/// The phases, which all replications of a model share.
fn phases(model: &Model, replications: &[Replication]) -> Vec<PhaseEstimates> {
    let first = replications.first().map_or(&[][..], |run| &run.phases);
    let estimates = |phase: usize, tier: usize| {
        let estimate = |figure| mean(replications, |run| run.phases[phase].1[tier].figure(figure));
        let figures = COLUMNS.iter().map(|column| column.figure);
        figures.filter_map(|figure| Some((figure.to_owned(), estimate(figure)?))).collect()
    };
    let of_phase = |(index, (phase, _)): (usize, &(Phase, _))| PhaseEstimates {
        name: phase.name.to_owned(),
        from_s: phase.from.seconds(),
        to_s: phase.to.seconds(),
        tiers: model
            .tier_ids()
            .map(|tier| (model.names.tier_name(tier).to_owned(), estimates(index, tier.index())))
            .collect(),
    };
    first.iter().enumerate().map(of_phase).collect()
}
