//! The program from outside: exit codes, streams, files, repeatability.

mod ensemble;
mod policies;
mod sweep;

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

fn metastable(arguments: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metastable"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).assert()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn stdout(arguments: &[&str], code: i32) -> String {
    text(&metastable(arguments).code(code).get_output().stdout)
}

fn stderr(arguments: &[&str], code: i32) -> String {
    text(&metastable(arguments).code(code).get_output().stderr)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(arguments, 0)).unwrap()
}

#[cfg(feature = "parquet")]
fn read_parquet(path: &Path) -> polars::prelude::DataFrame {
    use polars::prelude::{ParquetReader, SerReader};
    ParquetReader::new(fs::File::open(path).unwrap()).finish().unwrap()
}

fn assert_matches_schema(summary: &Value, kind: &str) {
    let validator = jsonschema::validator_for(&json(&["schema", "--of", kind])).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(summary).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// A short run of the checkout: before, a minute of trigger, and a little after.
const SHORT: [&str; 4] = ["run", "models/checkout.toml", "--set", "run.duration=4m"];

fn short(more: &[&str]) -> Vec<&'static str> {
    let more = more.iter().map(|word| &*Box::leak(word.to_string().into_boxed_str()));
    SHORT.into_iter().chain(more).collect()
}

#[test]
fn a_run_prints_its_verdict_first_and_its_assumptions_last() {
    let page = stdout(&short(&[]), 0);
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines[0], "Checkout after a one-minute spike");
    assert!(lines[1].starts_with("Metastable:"), "{}", lines[1]);
    for heading in [
        "Before (0:00 to 2:00)",
        "During (2:00 to 3:00)",
        "After (3:00 to 4:00)",
        "End (",
        "Assumptions",
    ] {
        assert!(page.contains(heading), "{heading}");
    }
    assert!(!page.contains('\u{1b}'), "no colour when not on a terminal");
}

#[test]
fn the_json_summary_matches_its_schema_and_has_what_ci_needs() {
    let summary = json(&short(&["--format", "json"]));
    assert_matches_schema(&summary, "run");
    for pointer in [
        "/schema_version",
        "/seed",
        "/assumptions/0",
        "/verdict/class",
        "/verdict/sentence",
        "/verdict/evidence/amplification",
        "/phases/0/name",
        "/phases/0/from_s",
        "/phases/0/to_s",
        "/phases/0/tiers/db/demand_per_s",
        "/tiers/db/offered_per_s",
        "/tiers/db/throughput_per_s",
        "/tiers/db/goodput_per_s",
        "/tiers/db/refused_per_s",
        "/tiers/db/timed_out_per_s",
        "/tiers/db/utilisation",
        "/tiers/db/queue_mean",
        "/tiers/db/in_flight_mean",
        "/tiers/db/wasted_work_per_s",
        "/tiers/db/sojourn_p99_s",
        "/tiers/db/amplification",
    ] {
        assert!(summary.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}");
    }
    assert!(summary.pointer("/verdict/recovery_time_s").is_some(), "present, though null here");
}

#[test]
fn the_schema_in_the_repository_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/summary.schema.json");
    let same = fs::read_to_string(path).unwrap() == stdout(&["schema"], 0);
    assert!(same, "write it anew: metastable schema > tests/it/summary.schema.json");
}

#[test]
fn the_same_model_and_seed_give_the_same_bytes() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let written = folders.each_ref().map(|folder| {
        let out = folder.path().to_str().unwrap();
        metastable(&short(&["--out", out, "--trace", "1%", "--quiet"])).code(0);
        names(folder.path())
    });
    assert_eq!(written[0], written[1]);
    for name in &written[0] {
        let [a, b] = folders.each_ref().map(|folder| fs::read(folder.path().join(name)).unwrap());
        assert!(a == b, "{name} differs");
    }
    for name in [
        "summary.json",
        "windows.parquet",
        "edges.parquet",
        "attempts.parquet",
        "load.png",
        "load.svg",
    ] {
        assert!(written[0].iter().any(|found| found == name), "{name} is missing");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn another_seed_gives_another_run() {
    let totals = |seed: &str| {
        let summary: Value =
            serde_json::from_str(&stdout(&short(&["--format", "json", "--seed", seed]), 0))
                .unwrap();
        summary["totals"].clone()
    };
    assert_ne!(totals("1"), totals("2"));
}

#[test]
fn an_expectation_that_is_met_exits_with_0_and_one_that_is_not_with_1() {
    metastable(&short(&["--expect", "-q"])).code(0);
    let page = stdout(&short(&["--expect", "-q", "--set", "expect.verdict=stable"]), 1);
    assert!(page.contains("NOT MET  verdict: expected stable, got metastable"), "{page}");
}

#[test]
fn expecting_without_expectations_is_bad_usage() {
    let folder = TempDir::new().unwrap();
    let model = model_file(&folder, SMALL);
    let message = stderr(&["run", model.to_str().unwrap(), "--expect"], 2);
    assert!(message.contains("has no [expect] table"), "{message}");
}

const SMALL: &str = r#"
run = { duration = "10s" }
[tier.client]
arrivals.even = "10/s"
[tier.client.call.api]
timeout = "1s"
[tier.api]
concurrency = 1
work.constant = "10ms"
queue.fifo = { capacity = 10 }
"#;

fn model_file(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("model.toml");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_model_without_a_trigger_is_judged_by_itself() {
    let folder = TempDir::new().unwrap();
    let model = model_file(&folder, SMALL);
    let page = stdout(&["run", model.to_str().unwrap(), "--set", "run.duration=2m"], 0);
    assert!(page.contains("Stable: 100% of 10/s"), "{page}");
}

#[test]
fn a_bad_model_exits_with_2_and_shows_every_fault_with_its_place() {
    let folder = TempDir::new().unwrap();
    let text = SMALL.replace("\"1s\"", "1").replace("capacity", "capcity");
    let model = model_file(&folder, &text);
    for command in ["run", "check"] {
        let message = stderr(&[command, model.to_str().unwrap()], 2);
        assert!(message.contains("model.toml:6:11"), "{message}");
        assert!(message.contains("model.toml:10:16"), "{message}");
        assert!(message.contains("did you mean `capacity`?"), "{message}");
        assert!(message.contains("2 faults"), "{message}");
    }
}

#[test]
fn a_setting_is_checked_like_the_file() {
    let message =
        stderr(&["check", "models/checkout.toml", "--set", "tier.client.call.api.timeout=5"], 2);
    assert!(message.contains("models/checkout.toml (with --set)"), "{message}");
    assert!(message.contains("has no unit"), "{message}");
    let message = stderr(&["check", "models/checkout.toml", "--set", "nonsense"], 2);
    assert!(message.contains("write path=value"), "{message}");
}

#[test]
fn a_missing_file_is_named() {
    let message = stderr(&["run", "models/nowhere.toml"], 2);
    assert!(message.contains("models/nowhere.toml"), "{message}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named_and_nothing_runs() {
    let folder = TempDir::new().unwrap();
    let model = model_file(&folder, SMALL);
    let blocked = model.join("out");
    let message = stderr(&["run", model.to_str().unwrap(), "--out", blocked.to_str().unwrap()], 2);
    assert!(message.contains("cannot be written"), "{message}");
    assert_eq!(names(folder.path()), ["model.toml"]);
}

#[test]
fn findings_exit_with_0_and_under_strict_with_1() {
    metastable(&["check", "models/checkout.toml"]).code(0);
    metastable(&["check", "models/checkout.toml", "--strict"]).code(1);
}

#[test]
fn findings_as_json_have_their_place_and_their_cure() {
    let report: Value =
        serde_json::from_str(&stdout(&["check", "models/checkout.toml", "--format", "json"], 0))
            .unwrap();
    let findings = report["findings"].as_array().unwrap();
    let product = findings.iter().find(|finding| finding["check"] == "one layer retries").unwrap();
    assert!(product["why"].as_str().unwrap().starts_with("2 x 3 = 6 attempts reach db"));
    for finding in findings {
        assert!(finding["line"].as_u64().unwrap() > 1 && finding["column"].as_u64().unwrap() >= 1);
        assert!(!finding["cure"].as_str().unwrap().is_empty());
    }
}

#[test]
fn the_findings_of_every_shipped_model_are_known() {
    let mut models: Vec<PathBuf> =
        fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("models"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
    models.sort();
    let mut all = String::new();
    for model in models.iter().filter(|path| path.extension().is_some_and(|e| e == "toml")) {
        let report = stdout(&["check", model.to_str().unwrap(), "--format", "json"], 0);
        let report: Value = serde_json::from_str(&report).unwrap();
        all.push_str(&format!("{}\n", model.file_stem().unwrap().to_str().unwrap()));
        for finding in report["findings"].as_array().unwrap() {
            all.push_str(&format!(
                "  {}: {}\n",
                finding["check"].as_str().unwrap(),
                finding["why"].as_str().unwrap()
            ));
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn every_command_helps_with_an_example() {
    for command in ["run", "check", "sweep", "policies", "presets", "schema", "completions"] {
        let help = stdout(&[command, "--help"], 0);
        assert!(help.contains("Example"), "{command}: {help}");
    }
}

#[test]
fn completions_are_printed_for_shells() {
    assert!(stdout(&["completions", "bash"], 0).contains("_metastable"));
}

/// Starts the program, interrupts it after a while, and gives what it left.
#[cfg(unix)]
fn interrupted(arguments: &[&str], after: std::time::Duration) -> std::process::Output {
    use std::process::{Command, Stdio};
    let child = Command::new(env!("CARGO_BIN_EXE_metastable"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    output
}

/// An interrupted run keeps what it has computed, says so, and exits with 130.
#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_it_has() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let long = ["run", "models/spike_metastable.toml", "--set", "run.duration=4h"];
    let arguments = [&long[..], &["--format", "json", "--out", out]].concat();
    let output = interrupted(&arguments, std::time::Duration::from_secs(3));
    assert!(text(&output.stderr).contains("interrupted: all figures are up to"));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["interrupted"], Value::Bool(true));
    assert!(names(folder.path()).contains(&"windows.parquet".to_owned()));
}
