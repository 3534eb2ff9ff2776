//! `metastable check`.

use super::load::Source;
use super::{Ending, Format};
use crate::document::Fault;
use crate::model;
use crate::output::diagnostic;

/// Say what is wrong with a model, or dangerous in it, without running it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code: 0 clean, 1 findings with --strict, 2 faults.\n\n\
    Example:\n  metastable check models/checkout.toml --strict")]
pub struct Check {
    #[command(flatten)]
    source: Source,
    /// Make findings an error (exit code 1).
    #[arg(long)]
    strict: bool,
    /// How to print findings.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Check {
    pub fn execute(self) -> anyhow::Result<Ending> {
        let Some(loaded) = self.source.load()? else { return Ok(Ending::Bad) };
        let findings = model::check(&loaded.model);
        match self.format {
            Format::Json => super::print(&json(&findings, &loaded.name, &loaded.text))?,
            Format::Text => {
                let colour = super::colour(&std::io::stdout());
                let mut page = diagnostic::render(&findings, &loaded.name, &loaded.text, colour);
                page.push_str(&closing(&findings, &loaded.name));
                super::print(&page)?
            }
        };
        Ok(if self.strict && !findings.is_empty() { Ending::NotMet } else { Ending::Fine })
    }
}

fn closing(findings: &[Fault], name: &str) -> String {
    match findings.len() {
        0 => format!("{name}: no faults, no findings\n"),
        1 => format!("\n{name}: no faults, 1 finding\n"),
        n => format!("\n{name}: no faults, {n} findings\n"),
    }
}

fn json(findings: &[Fault], name: &str, text: &str) -> String {
    let all: Vec<serde_json::Value> = findings
        .iter()
        .map(|finding| {
            let place = finding.place(text);
            serde_json::json!({
                "check": finding.name,
                "file": name,
                "line": place.line,
                "column": place.column,
                "what": finding.what,
                "why": finding.why,
                "cure": finding.cure,
            })
        })
        .collect();
    let report = serde_json::json!({ "schema_version": 1, "findings": all });
    format!("{report:#}\n")
}
