//! `metastable policies`.

use anyhow::Context;
use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::ensemble::MOST_RUNS;
use super::load::Source;
use super::progress::Progress;
use super::{Ending, Results};
use crate::document::EdgeId;
use crate::experiment::{Draws, Plan, Twins, run_ensemble};
use crate::model::{Model, PRESETS, Policy};
use crate::output::text::render_policies;
use crate::output::{PoliciesSummary, file, summary};
use crate::verdict::{Goal, Standing, Trial};

/// Run a model under a list of retry policies, and say which to take.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Policies are those of the model, [policy.NAME], and presets (see `metastable presets`).
Without --policies all of the model's are run, or all presets where it has none; the policy that
the model has now is always run with them. The n-th seed is the same for all of them, and first
sends are too: policies differ, and not their luck.

Exit code: 0 ran, 2 could not run, 130 interrupted.

Examples:
  metastable policies models/herd.toml
  metastable policies models/herd.toml --policies exp_cap60,herd-safe,envoy --goal peak --out out
  metastable policies models/checkout.toml --edge 'inventory->db' --seeds 8 --format json")]
pub struct Policies {
    #[command(flatten)]
    source: Source,
    /// Names of policies, split at commas [default: the model's own, or all presets].
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    policies: Vec<String>,
    /// The call that the policy is of, "caller->callee"; may be given several times [default: all
    /// calls of clients].
    #[arg(long, value_name = "EDGE")]
    edge: Vec<String>,
    /// What the table is sorted by.
    #[arg(long, value_enum, default_value = "fastest")]
    goal: Goal,
    /// Seed that all seeds are hashed from [default: the model's, or 1].
    #[arg(long)]
    seed: Option<u64>,
    /// Seeds for each policy.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    seeds: u32,
    /// Threads; results do not depend on it [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    results: Results,
}

impl ValueEnum for Goal {
    fn value_variants<'a>() -> &'a [Self] {
        &Goal::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(match self {
            Goal::Fastest => "Least time until 99 % are served",
            Goal::LowestPeak => "Lowest peak of attempts sent",
            Goal::FewestSends => "Fewest attempts sent",
        }))
    }
}

impl Policies {
    pub fn execute(self) -> anyhow::Result<Ending> {
        let Some(loaded) = self.source.load()? else { return Ok(Ending::Bad) };
        let model = loaded.model;
        let edges = self.edges(&model)?;
        let contest = self.contest(&model, &edges)?;
        self.results.make_folder()?;
        let threads = self.threads.map(usize::from);
        let plan = Plan { root: self.seed, seeds: self.seeds, draws: Draws::Shared, threads };
        let standings = self.run(&model, &edges, contest, &plan)?;
        let summary = PoliciesSummary::of(&model, &edges, &plan, self.goal, &standings);
        if let Some(out) = &self.results.out {
            file::write(&out.join("policies.json"), summary::json(&summary).as_bytes())?;
            #[cfg(feature = "plot")]
            if summary.herd && !summary.interrupted {
                draw(&summary, out)?;
            }
        }
        let page = |style| render_policies(&summary, style);
        self.results.show(|| summary::json(&summary), page)?;
        Ok(if summary.interrupted { Ending::Interrupted } else { Ending::Fine })
    }

    fn edges(&self, model: &Model) -> anyhow::Result<Vec<EdgeId>> {
        if self.edge.is_empty() {
            let of_client = |edge: &EdgeId| model.tier(model.edge(*edge).caller).is_client();
            return Ok(model.edge_ids().filter(of_client).collect());
        }
        let find = |name: &String| {
            let found = model.edge_ids().find(|&edge| model.names.edge_name(edge) == *name);
            let known = model.edge_ids().map(|edge| model.names.edge_name(edge));
            found.with_context(|| {
                let known: Vec<String> = known.collect();
                let cure = crate::document::nearest(name, known.iter().map(String::as_str));
                format!("there is no call `{name}`; {cure}")
            })
        };
        self.edge.iter().map(find).collect()
    }

    /// The policies by name. The one that the model has is among them.
    fn contest(&self, model: &Model, edges: &[EdgeId]) -> anyhow::Result<Vec<(String, Policy)>> {
        let own: Vec<String> = model.policies.names().map(str::to_owned).collect();
        let names = match (&self.policies[..], own.is_empty()) {
            ([], true) => PRESETS.iter().map(|preset| preset.name.to_owned()).collect(),
            ([], false) => own,
            (named, _) => named.to_vec(),
        };
        let runs = names.len() as u64 * u64::from(self.seeds);
        anyhow::ensure!(
            runs <= u64::from(MOST_RUNS),
            "these are {runs} runs, more than {MOST_RUNS}; take fewer policies or fewer seeds"
        );
        let find = |name: String| {
            let policy = model.policies.find(&name);
            let policy = policy.with_context(|| {
                format!("there is no policy `{name}`; {}", model.policies.nearest(&name))
            })?;
            Ok((name, policy))
        };
        let mut contest: Vec<(String, Policy)> =
            names.into_iter().map(find).collect::<anyhow::Result<_>>()?;
        let present = model.policy(edges[0]);
        if contest.iter().all(|(_, policy)| *policy != present) {
            contest.push(("as modelled".to_owned(), present));
        }
        Ok(contest)
    }

    fn run(
        &self,
        model: &Model,
        edges: &[EdgeId],
        contest: Vec<(String, Policy)>,
        plan: &Plan,
    ) -> anyhow::Result<Vec<Standing>> {
        let under = |(_, policy): &(String, Policy)| model.under(edges, policy);
        let models: Vec<Model> = contest.iter().map(under).collect();
        let progress = Progress::start(&models, plan.seeds, self.results.quiet)?;
        let trial =
            |model: &Model, twins: &Twins| Trial::of(model, &twins.record, &twins.verdict, edges);
        let trials = run_ensemble(&models, plan, &progress, trial);
        progress.finish();
        let trials = trials.context("no threads to run on")?;
        let complete = trials.iter().map(Vec::len).sum::<usize>();
        let all = models.len() * plan.seeds as usize;
        if complete < all {
            eprintln!("interrupted: {complete} of {all} runs");
        }
        let stand = |((name, policy), trials)| Standing { name, policy, trials };
        Ok(contest.into_iter().zip(trials).map(stand).collect())
    }
}

/// The trade-off between the users' time and the peak at the server.
#[cfg(feature = "plot")]
fn draw(summary: &PoliciesSummary, out: &std::path::Path) -> anyhow::Result<()> {
    use crate::output::plot::{Tradeoff, TradeoffField, draw_tradeoff};
    let half = |estimate: Option<crate::measure::Estimate>| {
        estimate.and_then(|estimate| estimate.half_width).unwrap_or(0.0)
    };
    let chosen = |name: &str| {
        let mine = |choice: &&crate::output::policies::ChoiceSummary| {
            choice.policy.as_deref() == Some(name)
        };
        let titles: Vec<&str> =
            summary.choices.iter().filter(mine).map(|choice| choice.title.as_str()).collect();
        (!titles.is_empty()).then(|| titles.join(", "))
    };
    // A policy under which some seeds never end has no mean time.
    let time = |policy: &crate::output::policies::PolicySummary| {
        policy.time_s.filter(|_| policy.served == policy.complete)
    };
    let policies: Vec<Tradeoff> = summary
        .policies
        .iter()
        .map(|policy| Tradeoff {
            name: policy.name.clone(),
            time_s: time(policy).map(|time| time.mean),
            time_spread_s: half(time(policy)),
            peak_per_s: policy.peak_per_s.map_or(0.0, |peak| peak.mean),
            peak_spread: half(policy.peak_per_s),
            chosen: chosen(&policy.name),
        })
        .collect();
    let field = TradeoffField {
        title: &summary.model.title,
        policies: &policies,
        capacity_per_s: summary.capacity_per_s,
        run_s: summary.model.duration_s,
        seeds: summary.seeds as usize,
    };
    draw_tradeoff(&field, out)?;
    Ok(())
}

/// The presets, what they say and where it comes from.
pub fn presets() -> String {
    let mut text = String::new();
    for preset in &PRESETS {
        let rule = preset.policy().describe().join("; ");
        text.push_str(&format!("{}\n  {rule}\n  Source: {}\n", preset.name, preset.source));
    }
    text
}
