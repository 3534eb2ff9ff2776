//! Many playbooks, tried on one past.
//!
//! The run up to the point where they may differ, the trunk, is made once; every playbook then goes
//! on from a copy of it. Each branch is bit-equal to the run of the same model with that playbook
//! from its start ([`Simulation::branch`]), so nothing is lost but the time of the trunk.

use std::io;

use rayon::ThreadPoolBuilder;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::kernel::Time;
use crate::measure::Record;
use crate::mechanism::playbook::Step;
use crate::model::Model;
use crate::simulation::{Simulation, TooLate};

/// Runs a model up to the end of the window in which `from` lies, and from there on once with each
/// playbook, over `threads` threads (`None`: one for each core). Keeps of each run what `digest`
/// makes of it, in the order of the playbooks; [`TooLate`] for one that would have acted before.
///
/// # Errors
/// The system gives no threads.
pub fn run_branches<T: Send>(
    model: &Model,
    seed: u64,
    from: Time,
    playbooks: &[Vec<Step>],
    threads: Option<usize>,
    digest: impl Fn(Record) -> T + Sync,
) -> io::Result<Vec<Result<T, TooLate>>> {
    let mut trunk = Simulation::new(model, seed, 0.0);
    trunk.run_to(from, &mut ());
    let pool = ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0));
    let pool = pool.build().map_err(io::Error::other)?;
    let branch = |playbook: &Vec<Step>| {
        let mut branch = trunk.branch(playbook)?;
        Ok(digest(branch.run(&mut ())))
    };
    Ok(pool.install(|| playbooks.par_iter().map(branch).collect()))
}
