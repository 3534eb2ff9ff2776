//! From a path to a model, or to its faults on standard error.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::document::Fault;
use crate::experiment::{Grid, Point, Varied, combinations};
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
        let (text, shown) = (self.read()?, self.path.display());
        let (text, name) = if self.settings.is_empty() {
            (text, shown.to_string())
        } else {
            let changed = overridden(&text, &self.settings).map_err(anyhow::Error::msg);
            (changed.context("--set")?, format!("{shown} (with --set)"))
        };
        match self.parse(&text) {
            Ok(model) => Ok(Some(Loaded { model, text, name })),
            Err(faults) => {
                tell(&faults, &name, &text);
                let plural = if faults.len() == 1 { "" } else { "s" };
                eprintln!("\n{name}: {} fault{plural}; the model was not run", faults.len());
                Ok(None)
            }
        }
    }

    /// The model under every combination of some settings. The faults of all of them are printed,
    /// each once, and `None` is given.
    ///
    /// # Errors
    /// The file cannot be read, or settings make no sense.
    pub fn vary(&self, varied: Vec<Varied>) -> anyhow::Result<Option<Grid>> {
        // What is wrong with the file itself is said once, and not of every point.
        if self.load()?.is_none() {
            return Ok(None);
        }
        let text = self.read()?;
        self.refuse_senseless(&text, &varied)?;
        let mut grid = Grid { points: combinations(&varied), varied, models: Vec::new() };
        let mut told: Vec<Fault> = Vec::new();
        for point in &grid.points {
            let settings = self.settings_of(&grid.varied, point);
            let changed = overridden(&text, &settings).map_err(anyhow::Error::msg);
            let text = changed.context("--vary")?;
            match self.parse(&text) {
                Ok(model) => grid.models.push(model),
                Err(mut faults) => {
                    faults.retain(|fault| !told.iter().any(|earlier| is_same(earlier, fault)));
                    let name = format!("{} (with {})", self.path.display(), settings.join(", "));
                    if !told.is_empty() && !faults.is_empty() {
                        eprintln!();
                    }
                    tell(&faults, &name, &text);
                    told.extend(faults);
                }
            }
        }
        let (points, sound) = (grid.points.len(), grid.models.len());
        if sound < points {
            eprintln!("\n{} of {points} points have faults; nothing was run", points - sound);
            return Ok(None);
        }
        Ok(Some(grid))
    }

    /// Refuses all settings that lead nowhere, whatever the others are.
    fn refuse_senseless(&self, text: &str, varied: &[Varied]) -> anyhow::Result<()> {
        let trouble = |varied: &Varied| {
            let settings =
                self.settings_of(std::slice::from_ref(varied), &varied.values[..1].to_vec());
            overridden(text, &settings).err()
        };
        let all: Vec<String> = varied.iter().filter_map(trouble).collect();
        anyhow::ensure!(all.is_empty(), "--vary: {}", all.join("\n--vary: "));
        Ok(())
    }

    fn read(&self) -> anyhow::Result<String> {
        let read = std::fs::read_to_string(&self.path);
        read.with_context(|| format!("cannot read {}", self.path.display()))
    }

    fn parse(&self, text: &str) -> Result<Model, Vec<Fault>> {
        let folder = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        let file = |path: &str| {
            std::fs::read_to_string(folder.join(path)).map_err(|error| error.to_string())
        };
        Model::parse(text, &file)
    }

    fn settings_of(&self, varied: &[Varied], point: &Point) -> Vec<String> {
        let own =
            varied.iter().zip(point).map(|(varied, value)| format!("{}={value}", varied.path));
        self.settings.iter().cloned().chain(own).collect()
    }
}

/// Shows faults; nothing where there are none.
fn tell(faults: &[Fault], name: &str, text: &str) {
    eprint!("{}", diagnostic::render(faults, name, text, super::colour(&std::io::stderr())));
}

/// True for what is one fault at two points, though it may stand in another column.
fn is_same(a: &Fault, b: &Fault) -> bool {
    (&a.what, &a.why, &a.cure) == (&b.what, &b.why, &b.cure)
}
