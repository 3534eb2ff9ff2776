//! The summary of a contest of retry policies for programs: `policies.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ensemble::SCHEMA_VERSION;
use super::summary::ModelSummary;
use crate::document::EdgeId;
use crate::experiment::Plan;
use crate::measure::Estimate;
use crate::model::{Model, Tier};
use crate::verdict::{Class, Goal, Standing, choices, ranked};

/// What many seeds say of many policies.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PoliciesSummary {
    /// Version of this layout.
    pub schema_version: u32,
    /// What was run.
    pub model: ModelSummary,
    /// The edges that the policies are of, "caller->callee".
    pub edges: Vec<String>,
    /// Most that the first of their callees can do, where that is known.
    pub capacity_per_s: Option<f64>,
    /// Length of the windows over which peaks are taken.
    pub peak_window_s: f64,
    /// What the seeds are hashed from; the n-th is the same for all policies.
    pub root_seed: u64,
    /// Seeds that were asked for.
    pub seeds: u64,
    /// True when runs were stopped before their end, and are left out; then nothing is chosen.
    pub interrupted: bool,
    /// Whether the model has a herd, whose time is that until 99 % are through.
    pub herd: bool,
    /// `fastest`, `peak` or `sends`: what the policies are sorted by.
    pub goal: String,
    /// The policies, the best first.
    pub policies: Vec<PolicySummary>,
    /// Which to take.
    pub choices: Vec<ChoiceSummary>,
}

/// One policy. Figures are means over its seeds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicySummary {
    /// Its name.
    pub name: String,
    /// What it says.
    pub rule: String,
    /// Whether the model has it already.
    pub present: bool,
    /// Seeds that ran to their end.
    pub complete: u64,
    /// Of these, in which users are served by the end; the others have no time.
    pub served: u64,
    /// Of these, metastable.
    pub metastable: u64,
    /// Until 99 % of a herd are through, since the start of the run; without a herd, from the end
    /// of the trigger to recovery.
    pub time_s: Option<Estimate>,
    /// Until half of a herd are through, since the start of the run.
    pub half_s: Option<Estimate>,
    /// Most attempts sent in one window after the trigger, as a rate.
    pub peak_per_s: Option<Estimate>,
    /// Attempts sent after the trigger.
    pub sent: Option<Estimate>,
    /// Attempts that 99 % of a herd's clients do not pass.
    pub attempts_p99: Option<Estimate>,
    /// Most calls of a herd that were in back-off at once; or of others, on average over a window
    /// after the trigger.
    pub backoff_max: Option<Estimate>,
    /// Share of a herd that gave up; or of all requests after the trigger that failed.
    pub lost_share: Option<Estimate>,
}

/// Which policy to take in a situation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceSummary {
    /// `none_to_spare`, `users_first`, `server_speaks` or `one_constant`.
    pub situation: String,
    /// The same as people say it.
    pub title: String,
    /// Name of the policy; null where none fits.
    pub policy: Option<String>,
    /// Why none fits.
    pub why_none: Option<String>,
}

impl PoliciesSummary {
    /// The summary of a contest on some edges of a model.
    pub fn of(
        model: &Model,
        edges: &[EdgeId],
        plan: &Plan,
        goal: Goal,
        standings: &[Standing],
    ) -> Self {
        let first = model.edge(edges[0]);
        let present = model.policy(edges[0]);
        let speaks = edges
            .iter()
            .any(|&edge| model.tier(model.edge(edge).callee).refusal.retry_after.is_some());
        let policy = |index: usize| PolicySummary::of(&standings[index], &present);
        let seeds = u64::from(plan.seeds);
        let interrupted = standings.iter().any(|s| (s.trials.len() as u64) < seeds);
        let choice = |choice: crate::verdict::Choice| {
            let policy = if interrupted { Err("not all seeds were run") } else { choice.policy };
            ChoiceSummary {
                situation: choice.situation.name().to_owned(),
                title: choice.situation.title().to_owned(),
                policy: policy.ok().map(|index| standings[index].name.clone()),
                why_none: policy.err().map(str::to_owned),
            }
        };
        PoliciesSummary {
            schema_version: SCHEMA_VERSION,
            model: ModelSummary::of(model),
            edges: edges.iter().map(|&edge| model.names.edge_name(edge)).collect(),
            capacity_per_s: model.most_admitted(first.callee),
            peak_window_s: model.run.window.seconds(),
            root_seed: plan.root(model),
            seeds,
            interrupted,
            herd: model.tiers.iter().any(Tier::is_herd),
            goal: goal.name().to_owned(),
            policies: ranked(standings, goal).into_iter().map(policy).collect(),
            choices: choices(standings, &present, speaks).into_iter().map(choice).collect(),
        }
    }
}

impl PolicySummary {
    fn of(standing: &Standing, present: &crate::model::Policy) -> Self {
        let trials = &standing.trials;
        let count = |holds: &dyn Fn(&crate::verdict::Trial) -> bool| {
            trials.iter().filter(|trial| holds(trial)).count() as u64
        };
        PolicySummary {
            name: standing.name.clone(),
            rule: standing.policy.describe().join("; "),
            present: standing.policy == *present,
            complete: trials.len() as u64,
            served: count(&|trial| trial.time_s.is_some()),
            metastable: count(&|trial| trial.class == Class::Metastable),
            time_s: standing.mean(|trial| trial.time_s),
            half_s: standing.mean(|trial| trial.half_s),
            peak_per_s: standing.peak_per_s(),
            sent: standing.sent(),
            attempts_p99: standing.mean(|trial| trial.attempts_p99),
            backoff_max: standing.mean(|trial| Some(trial.backoff_max)),
            lost_share: standing.lost_share(),
        }
    }
}
