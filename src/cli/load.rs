//! From a path to a model, or to its faults on standard error.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::model::{Model, overridden};
use crate::output::diagnostic;

/// The model file of a command, and what-if settings.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// The model file.
    #[arg(value_name = "MODEL")]
    path: PathBuf,
    /// A what-if setting, with the same checks as the file; may be given several times.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    settings: Vec<String>,
}

/// A model and its text.
pub struct Loaded {
    pub model: Model,
    pub text: String,
    /// As diagnostics name it.
    pub name: String,
}

impl Source {
    /// Reads the model; its faults are printed, and `None` is given.
    ///
    /// # Errors
    /// The file cannot be read, or a setting makes no sense.
    pub fn load(&self) -> anyhow::Result<Option<Loaded>> {
        let shown = self.path.display().to_string();
        let text =
            std::fs::read_to_string(&self.path).with_context(|| format!("cannot read {shown}"))?;
        let (text, name) = if self.settings.is_empty() {
            (text, shown)
        } else {
            let changed = overridden(&text, &self.settings).map_err(anyhow::Error::msg);
            (changed.context("--set")?, format!("{shown} (with --set)"))
        };
        let folder = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        let file = |path: &str| {
            std::fs::read_to_string(folder.join(path)).map_err(|error| error.to_string())
        };
        match Model::parse(&text, &file) {
            Ok(model) => Ok(Some(Loaded { model, text, name })),
            Err(faults) => {
                eprint!(
                    "{}",
                    diagnostic::render(&faults, &name, &text, super::colour(&std::io::stderr()))
                );
                let plural = if faults.len() == 1 { "" } else { "s" };
                eprintln!("\n{name}: {} fault{plural}; the model was not run", faults.len());
                Ok(None)
            }
        }
    }
}
