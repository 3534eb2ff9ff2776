//! Frozen digests of the shipped models, shortened. They claim nothing but that nothing has
//! changed: whoever changes them must have meant to.

use metastable::model::{Model, overridden};
use metastable::simulation::Simulation;

/// FNV-1a over everything countable in a record.
fn digest(name: &str, duration: &str) -> String {
    let path = format!("{}/models/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let text = overridden(&text, &[format!("run.duration={duration}")]).unwrap();
    let model = Model::parse(&text, &|_| Err("no file".into())).unwrap();
    let record = Simulation::new(&model, 1, 0.0).run(&mut ());
    let rows = format!(
        "{:?}{:?}{:?}{:?}{:?}",
        record.tiers, record.edges, record.herds, record.log, record.totals
    );
    let hash = rows.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{name}: {} events, {hash:016x}", record.totals.events)
}

#[test]
fn the_shipped_models_give_what_they_gave() {
    let digests = [
        digest("checkout", "4m"),
        digest("spike_ramp", "6m30s"),
        digest("little_pool", "6m30s"),
        digest("orphan_work", "6m"),
        digest("orphan_work_deadline", "6m"),
        digest("amplification_27", "5s"),
        digest("amplification_budget", "11m"),
        digest("overload_unbounded", "10s"),
        digest("double_charge_keyed", "2h"),
        digest("herd", "2m"),
        digest("aws_occ", "30s"),
        digest("retry_budget_clients", "5s"),
    ];
    insta::assert_snapshot!(digests.join("\n"));
}
