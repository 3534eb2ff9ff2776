//! The summary of a run for programs: `summary.json`, and what `--format json` prints.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::Twins;
use crate::measure::{EdgeFigures, TierFigures, Totals};
use crate::model::{Model, assumptions};
use crate::verdict::{self, Evidence, HerdFigures, Phase};

/// Changes when a field changes its name or meaning; new fields leave it.
pub const SCHEMA_VERSION: u32 = 1;

/// All that a run says, in figures.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Version of this layout.
    pub schema_version: u32,
    /// What was run.
    pub model: ModelSummary,
    /// Seed of all random numbers.
    pub seed: u64,
    /// True when the run was stopped before its end.
    pub interrupted: bool,
    /// The settings that decide verdicts, as this run used them.
    pub assumptions: Vec<String>,
    /// The verdict.
    pub verdict: VerdictSummary,
    /// Expectations of the model, and what came of them.
    pub expectations: Vec<ExpectationSummary>,
    /// Parts of the run: before, during, after the triggers, the end, the whole.
    pub phases: Vec<PhaseSummary>,
    /// Tiers over the phase after the triggers, or over the whole run where there is none.
    pub tiers: BTreeMap<String, TierFigures>,
    /// Edges over the same phase.
    pub edges: BTreeMap<String, EdgeFigures>,
    /// What became of populations whose clients come once each, by tier.
    pub herds: BTreeMap<String, HerdFigures>,
    /// What triggers and the operator did.
    pub log: Vec<LogSummary>,
    /// Counts over the whole run, warm-up included.
    pub totals: Totals,
}

/// What was run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModelSummary {
    /// Its title.
    pub title: String,
    /// Where its numbers come from.
    pub source: String,
    /// Length of the run.
    pub duration_s: f64,
    /// Length of a window.
    pub window_s: f64,
    /// Time at the start that is not measured.
    pub warmup_s: f64,
}

/// The verdict.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct VerdictSummary {
    /// `stable`, `metastable`, `overloaded` or `undecided`.
    pub class: String,
    /// From the end of the last trigger to the start of the first healthy stretch; null without
    /// one.
    pub recovery_time_s: Option<f64>,
    /// What a manager understands.
    pub sentence: String,
    /// What it rests on.
    pub evidence: Evidence,
}

/// One expectation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExpectationSummary {
    /// Of what.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What came out.
    pub got: String,
    /// Whether it will do.
    pub met: bool,
}

/// A part of the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSummary {
    /// `before`, `during`, `after`, `end` or `whole`.
    pub name: String,
    /// First instant.
    pub from_s: f64,
    /// First instant after it.
    pub to_s: f64,
    /// Figures by tier.
    pub tiers: BTreeMap<String, TierFigures>,
    /// Figures by edge, "caller->callee".
    pub edges: BTreeMap<String, EdgeFigures>,
}

/// Something that a trigger or the operator did.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogSummary {
    /// When.
    pub at_s: f64,
    /// `trigger` or `operator`.
    pub by: String,
    /// What.
    pub what: String,
}

impl Summary {
    /// The summary of twins.
    pub fn of(model: &Model, twins: &Twins) -> Self {
        let record = &twins.record;
        let phases = verdict::phases(model, record);
        let expectations = verdict::hold_against(model, record, &twins.verdict, &phases);
        let main = Phase::main(&phases).map(|phase| phase_summary(model, twins, phase));
        Summary {
            schema_version: SCHEMA_VERSION,
            model: ModelSummary::of(model),
            seed: record.seed,
            interrupted: record.interrupted,
            assumptions: assumptions(model),
            verdict: VerdictSummary {
                class: twins.verdict.class.name().to_owned(),
                recovery_time_s: twins.verdict.recovery_time.map(|span| span.seconds()),
                sentence: twins.verdict.sentence.clone(),
                evidence: twins.verdict.evidence.clone(),
            },
            expectations: expectations
                .into_iter()
                .map(|e| ExpectationSummary {
                    what: e.what,
                    expected: e.expected,
                    got: e.got,
                    met: e.met,
                })
                .collect(),
            tiers: main.as_ref().map_or_else(BTreeMap::new, |phase| phase.tiers.clone()),
            edges: main.map_or_else(BTreeMap::new, |phase| phase.edges),
            phases: phases.iter().map(|phase| phase_summary(model, twins, phase)).collect(),
            herds: model
                .tier_ids()
                .filter_map(|tier| {
                    let herd = verdict::herd_figures(model, record, tier)?;
                    Some((model.names.tier_name(tier).to_owned(), herd))
                })
                .collect(),
            log: record
                .log
                .iter()
                .map(|entry| LogSummary {
                    at_s: entry.at.seconds(),
                    by: if entry.operator { "operator" } else { "trigger" }.to_owned(),
                    what: entry.what.clone(),
                })
                .collect(),
            totals: record.totals,
        }
    }

    /// True when every expectation of the model is met.
    pub fn meets_expectations(&self) -> bool {
        self.expectations.iter().all(|expectation| expectation.met)
    }
}

impl ModelSummary {
    /// What a model is.
    pub fn of(model: &Model) -> Self {
        ModelSummary {
            title: model.title.clone(),
            source: model.source.clone(),
            duration_s: model.run.duration.seconds(),
            window_s: model.run.window.seconds(),
            warmup_s: model.run.warmup.seconds(),
        }
    }
}

/// A summary as JSON, with a line end.
pub fn json(summary: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(summary);
    text.expect("a summary has nothing that JSON cannot say") + "\n"
}

/// The JSON Schema of a kind of summary.
pub fn schema<S: JsonSchema>() -> String {
    json(&schemars::schema_for!(S))
}

fn phase_summary(model: &Model, twins: &Twins, phase: &Phase) -> PhaseSummary {
    let record = &twins.record;
    let tier = |tier| {
        let name = model.names.tier_name(tier).to_owned();
        (name, verdict::tier_figures(model, record, tier, phase))
    };
    let edge =
        |edge| (model.names.edge_name(edge), verdict::edge_figures(model, record, edge, phase));
    PhaseSummary {
        name: phase.name.to_owned(),
        from_s: phase.from.seconds(),
        to_s: phase.to.seconds(),
        tiers: model.tier_ids().map(tier).collect(),
        edges: model.edge_ids().map(edge).collect(),
    }
}
