//! metastable
pub mod cli;
pub mod document;
pub mod experiment;
pub mod kernel;
pub mod measure;
pub mod mechanism;
pub mod model;
pub mod output;
pub mod simulation;
pub mod verdict;
