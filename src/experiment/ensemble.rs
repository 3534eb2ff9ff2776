//! Many seeds of one model or of several, over all cores.
//!
//! A *task* is one replication of one model, a *point* of the ensemble: the model and its twin run
//! one after the other on one worker, are judged, and are reduced to what the caller wants to keep.
//! The records go at once, so memory grows with what is kept and not with what is run.
//!
//! **Order.** Long tasks first, so that no core waits at the end for one long task begun last. The
//! cost of a task is estimated as the simulated time times the user requests and attempts a second,
//! once in the normal state (the twin) and, where there are triggers, once with every attempt used
//! up (the run, should it stay down). It need not be exact: it orders, and nothing else.
//!
//! **Same results on any number of threads.** A seed is hashed from the root seed and the number of
//! the replication, never from a thread; results are put in their places by number.
//!
//! **Workers** are those of a pool of its own. `par_bridge` hands tasks out in order and one at a
//! time: its workers share the iterator under a lock and hold it for one `next()`
//! (`IterParallelProducer::fold_with` of rayon 1.12). Each worker folds once, with one state from
//! `map_init`, until the iterator is empty: so an engine a worker. Why not `into_par_iter`: it
//! splits the list into halves in advance, and one half would get all the long tasks.

use std::io;

use rayon::ThreadPoolBuilder;
use rayon::iter::{ParallelBridge, ParallelIterator};

use super::engine::Engine;
use super::twins::{Eyes, Onlooker, Twins, calm};
use crate::kernel::Key;
use crate::measure::AttemptRow;
use crate::model::Model;

/// Whether the points of an ensemble meet the same random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Draws {
    /// The n-th replication has the same seed at every point, so that points differ by their
    /// settings and not by their luck.
    #[default]
    Shared,
    /// Every replication of every point has a seed of its own.
    Own,
}

/// How an ensemble is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the seeds of replications are hashed from; `None`: the seed of each model.
    pub root: Option<u64>,
    /// Replications of each point.
    pub seeds: u32,
    /// Whether points meet the same random numbers.
    pub draws: Draws,
    /// Workers; `None`: one for each core, or as `RAYON_NUM_THREADS` says.
    pub threads: Option<usize>,
}

impl Draws {
    /// As the command line and JSON name it.
    pub fn name(self) -> &'static str {
        match self {
            Draws::Shared => "shared",
            Draws::Own => "own",
        }
    }
}

impl Plan {
    /// What the seeds of a model's replications are hashed from.
    pub fn root(&self, model: &Model) -> u64 {
        self.root.unwrap_or(model.run.seed)
    }

    /// The seed of a replication: with it, `run --seed` does the same again. It has 53 bits, so
    /// that programs that read every JSON number as a double read it whole.
    pub fn seed(&self, model: &Model, point: usize, replication: u32) -> u64 {
        let root = Key::root(self.root(model));
        let key = match self.draws {
            Draws::Shared => root,
            Draws::Own => root.child(point as u64),
        };
        key.child(u64::from(replication)).bits() >> 11
    }
}

/// One replication of one point.
struct Task<'m> {
    /// Its place among the results.
    place: usize,
    model: &'m Model,
    calm: Option<&'m Model>,
    seed: u64,
}

/// Runs every replication of every point and keeps of each what `digest` makes of it: for each
/// point its replications in order. Once the onlooker has stopped a run no other begins, and those
/// under way are left out; of what is left, quick runs are then a little too many.
///
/// # Errors
/// The system gives no threads.
pub fn run_ensemble<T: Send>(
    points: &[Model],
    plan: &Plan,
    onlooker: &impl Onlooker,
    digest: impl Fn(&Model, &Twins) -> T + Sync,
) -> io::Result<Vec<Vec<T>>> {
    let pool = ThreadPoolBuilder::new().num_threads(plan.threads.unwrap_or(0));
    let pool = pool.build().map_err(io::Error::other)?;
    let calm: Vec<Option<Model>> = points.iter().map(calm).collect();
    let tasks = tasks(points, &calm, plan);
    let mut done: Vec<(usize, T)> = pool.install(|| {
        let run = tasks.into_iter().par_bridge().map_init(Engine::default, |engine, task| {
            let twins = replicate(engine, &task, onlooker)?;
            let kept = digest(task.model, &twins);
            onlooker.complete();
            Some((task.place, kept))
        });
        run.while_some().collect()
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    let mut results: Vec<Vec<T>> = points.iter().map(|_| Vec::new()).collect();
    for (place, kept) in done {
        results[place / plan.seeds as usize].push(kept);
    }
    Ok(results)
}

/// All replications, long ones first; equally long ones in order.
fn tasks<'m>(points: &'m [Model], calm: &'m [Option<Model>], plan: &Plan) -> Vec<Task<'m>> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    let costs: Vec<f64> = points.iter().map(cost).collect();
    order.sort_by(|&a, &b| costs[b].total_cmp(&costs[a]));
    let replications = |point: usize| {
        (0..plan.seeds).map(move |replication| Task {
            place: point * plan.seeds as usize + replication as usize,
            model: &points[point],
            calm: calm[point].as_ref(),
            seed: plan.seed(&points[point], point, replication),
        })
    };
    order.into_iter().flat_map(replications).collect()
}

/// User requests and attempts that a task is likely to simulate, at most.
fn cost(model: &Model) -> f64 {
    let rate = |tiers: &[f64]| tiers.iter().sum::<f64>();
    let down = if model.triggers.is_empty() { 0.0 } else { rate(&model.worst_flow().tiers) };
    model.run.duration.seconds() * (rate(&model.normal_flow().tiers) + down)
}

/// Runs a model and its twin; `None` when they were stopped.
fn replicate<'m>(
    engine: &mut Engine<'m>,
    task: &Task<'m>,
    onlooker: &impl Onlooker,
) -> Option<Twins> {
    let mut run = |model| {
        let mut eyes = Eyes::new(onlooker, |_: &[AttemptRow]| {});
        Some(engine.run(model, task.seed, &mut eyes)).filter(|record| !record.interrupted)
    };
    let record = run(task.model)?;
    let twin = match task.calm {
        Some(calm) => Some(run(calm)?),
        None => None,
    };
    Some(Twins::judged(task.model, record, twin))
}

#[cfg(test)]
mod tests {
    use super::super::run_twins;
    use super::*;

    fn model(rate: u32, attempts: u32, trigger: &str) -> Model {
        let text = format!(
            "run = {{ duration = \"20s\" }}\n\
             [tier.client]\narrivals.poisson = \"{rate}/s\"\n\
             [tier.client.call.api]\ntimeout = \"1s\"\nattempts = {attempts}\n\
             [tier.api]\nconcurrency = 1\nwork.exponential = \"5ms\"\n\
             queue.fifo = {{ capacity = 100 }}\n{trigger}"
        );
        Model::parse(&text, &|_| Err("no file".into())).unwrap()
    }

    const PLAN: Plan = Plan { root: Some(7), seeds: 3, draws: Draws::Shared, threads: Some(2) };

    /// (50 + 50) x 20 s; with a trigger the run besides, (50 + 3 x 50) x 20 s.
    #[test]
    fn a_task_costs_what_its_requests_and_attempts_cost() {
        let trigger = "[[trigger]]\nat = \"5s\"\nlasts = \"5s\"\nslow = { api = 4 }\n";
        assert_eq!(cost(&model(50, 3, "")), 2_000.0);
        assert_eq!(cost(&model(50, 3, trigger)), 6_000.0);
    }

    #[test]
    fn long_tasks_come_first_and_equal_ones_in_order() {
        let points = [model(10, 1, ""), model(90, 1, ""), model(10, 1, "")];
        let calm = [None, None, None];
        let places: Vec<usize> = tasks(&points, &calm, &PLAN).iter().map(|t| t.place).collect();
        assert_eq!(places, [3, 4, 5, 0, 1, 2, 6, 7, 8]);
    }

    #[test]
    fn results_stand_by_point_and_replication_and_not_by_their_end() {
        let points = [model(10, 1, ""), model(90, 1, "")];
        let kept = run_ensemble(&points, &PLAN, &(), |model, twins| {
            (model.tier(crate::document::TierId(0)).arrivals.is_some(), twins.record.seed)
        });
        let seeds = |point| (0..3).map(|r| (true, PLAN.seed(&points[point], point, r))).collect();
        assert_eq!(kept.unwrap(), [seeds(0), seeds(1)] as [Vec<(bool, u64)>; 2]);
    }

    #[test]
    fn a_replication_is_the_run_of_its_seed() {
        let trigger = "[[trigger]]\nat = \"5s\"\nlasts = \"5s\"\nslow = { api = 4 }\n";
        let model = model(90, 2, trigger);
        let all = |twins: &Twins| format!("{:?} {:?}", twins.record, twins.twin);
        let points = std::slice::from_ref(&model);
        let kept = run_ensemble(points, &PLAN, &(), |_, twins| all(twins)).unwrap();
        let again = |replication| {
            let seed = PLAN.seed(&model, 0, replication);
            all(&run_twins(&model, seed, 0.0, &(), |_| {}))
        };
        assert_eq!(kept, [(0..3).map(again).collect::<Vec<String>>()]);
    }

    #[test]
    fn draws_are_shared_between_points_or_each_points_own() {
        let model = model(10, 1, "");
        let own = Plan { draws: Draws::Own, ..PLAN };
        assert_eq!(PLAN.seed(&model, 0, 2), PLAN.seed(&model, 1, 2));
        assert_ne!(own.seed(&model, 0, 2), own.seed(&model, 1, 2));
        assert_ne!(PLAN.seed(&model, 0, 1), PLAN.seed(&model, 0, 2));
        assert!(PLAN.seed(&model, 0, 1) < 1 << 53);
    }
}
