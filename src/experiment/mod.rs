//! Many runs: a run and its untriggered twin side by side, ensembles of many seeds and models over
//! all cores, and the grid of models that a sweep runs. The only room that starts threads.

mod branches;
mod engine;
mod ensemble;
mod sweep;
mod twins;

pub use branches::run_branches;
pub use ensemble::{Draws, Plan, run_ensemble};
pub use sweep::{Grid, Point, Varied, combinations};
pub use twins::{Onlooker, Twins, run_twins};
