//! Figures of herds, of one run and of many, in one form: by tier and name.

use std::collections::BTreeMap;

use crate::measure::Estimate;
use crate::measure::herd::FIGURES;
use crate::model::Model;
use crate::verdict::{HerdFigures, Replication};

/// Figures of herds by tier and name.
pub type Herds = BTreeMap<String, BTreeMap<String, Estimate>>;

/// Mean figures over many seeds. A time is a mean over those seeds in which it came.
pub fn of_runs(model: &Model, replications: &[Replication]) -> Herds {
    let herds = model.tier_ids().map(|tier| {
        let runs = replications.iter().filter_map(|run| run.herds[tier.index()].as_ref());
        (model.names.tier_name(tier).to_owned(), means(&runs.collect::<Vec<&HerdFigures>>()))
    });
    herds.filter(|(_, figures)| !figures.is_empty()).collect()
}

/// The figures of one run.
pub fn of_run(herds: &BTreeMap<String, HerdFigures>) -> Herds {
    herds.iter().map(|(tier, herd)| (tier.clone(), means(&[herd]))).collect()
}

fn means(herds: &[&HerdFigures]) -> BTreeMap<String, Estimate> {
    let mean = |name: &str| {
        let figures = herds.iter().filter_map(|herd| herd.figure(name));
        Estimate::of(&figures.collect::<Vec<f64>>())
    };
    FIGURES.iter().filter_map(|name| Some(((*name).to_owned(), mean(name)?))).collect()
}
