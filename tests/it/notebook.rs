//! The notebook runs from its first cell to its last, and the Parquet files are read by polars and
//! DuckDB in Python.
//!
//! Needs a Python with what `notebooks/requirements.txt` lists: the one that `METASTABLE_PYTHON`
//! names, or `python3`. Without one these tests say so and pass, unless `METASTABLE_PYTHON` is set:
//! then it must do.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn python(script: &str, out: &Path) -> Output {
    let python = std::env::var("METASTABLE_PYTHON").unwrap_or_else(|_| "python3".into());
    let notebooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks");
    Command::new(python)
        .args(["-c", script])
        .current_dir(notebooks)
        .env("METASTABLE_OUT", out)
        .output()
        .unwrap()
}

fn has_python() -> bool {
    if std::env::var_os("METASTABLE_PYTHON").is_some() {
        return true;
    }
    let imports = "import duckdb, ipykernel, nbclient, polars";
    let found =
        Command::new("python3").args(["-c", imports]).output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!(
            "skipped: no Python with notebooks/requirements.txt; name one in METASTABLE_PYTHON"
        );
    }
    found
}

/// A run of the checkout with a trace, as the notebook wants it.
fn checkout() -> TempDir {
    let folder = TempDir::new().unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_metastable"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "run",
            "models/checkout.toml",
            "--set",
            "run.duration=5m",
            "--trace",
            "5%",
            "-q",
            "--out",
        ])
        .arg(folder.path())
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    folder
}

fn must_succeed(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_notebook_runs_from_its_first_cell_to_its_last() {
    if !has_python() {
        return;
    }
    let folder = checkout();
    let script = "
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read('first_look.ipynb', as_version=4)
NotebookClient(notebook, timeout=300).execute()
texts = [o.get('text', '') for c in notebook.cells if c.cell_type == 'code' for o in c.outputs]
assert any('Metastable' in text for text in texts), texts
";
    must_succeed(&python(script, folder.path()));
}

#[test]
fn polars_and_duckdb_read_the_same_from_every_file() {
    if !has_python() {
        return;
    }
    let folder = checkout();
    let script = "
import json, os, duckdb, polars
out = os.environ['METASTABLE_OUT']
for name in ('windows', 'edges', 'attempts'):
    path = f'{out}/{name}.parquet'
    frame = polars.read_parquet(path)
    [(rows,)] = duckdb.sql(f\"select count(*) from '{path}'\").fetchall()
    assert rows == frame.height > 0, (name, rows, frame.height)
    columns = [row[0] for row in duckdb.sql(f\"describe select * from '{path}'\").fetchall()]
    assert columns == frame.columns, name
summary = json.load(open(f'{out}/summary.json'))
windows = polars.read_parquet(f'{out}/windows.parquet')
after = next(p for p in summary['phases'] if p['name'] == 'after')
db = windows.filter((polars.col('tier') == 'db') & (polars.col('from_s') >= after['from_s']))
assert abs(db['offered_per_s'].mean() - after['tiers']['db']['offered_per_s']) < 1e-6
";
    must_succeed(&python(script, folder.path()));
}
