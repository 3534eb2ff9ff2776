//! What holds for every model, whatever its settings: property tests over random models, and the
//! single cases in which one of these properties once failed.

mod case;
mod herd_case;
mod many;
mod property;
mod random_model;

use metastable::measure::{AttemptRow, Record};
use metastable::model::Model;
use metastable::simulation::{Simulation, Watch};

fn model(text: &str) -> Model {
    Model::parse(text, &|_| Err("the models of tests name no files".into())).unwrap_or_else(
        |faults| {
            let what: Vec<_> = faults.iter().map(|fault| format!("{fault:?}")).collect();
            panic!("{}\n{text}", what.join("\n"))
        },
    )
}

/// A run with every attempt on record.
fn traced(model: &Model, seed: u64) -> (Record, Vec<AttemptRow>) {
    struct All(Vec<AttemptRow>);
    impl Watch for All {
        fn attempts(&mut self, rows: &[AttemptRow]) {
            self.0.extend_from_slice(rows);
        }
    }
    let mut all = All(Vec::new());
    let record = Simulation::new(model, seed, 1.0).run(&mut all);
    (record, all.0)
}
