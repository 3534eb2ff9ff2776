//! metastable
pub mod document;
pub mod kernel;
pub mod measure;
pub mod mechanism;
pub mod model;
pub mod simulation;
