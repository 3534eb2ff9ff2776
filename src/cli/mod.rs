//! The program: what was typed, what it means, what is printed. The only room that prints.
//!
//! Results go to standard output, progress and diagnostics to standard error. Exit codes: 0 fine; 1
//! an expectation is not met, or a finding under `--strict`; 2 a bad model or bad usage; 130
//! interrupted.

mod check;
mod ensemble;
mod load;
mod policies;
mod progress;
mod run;
mod sweep;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::output::text::Style;
use crate::output::{EnsembleSummary, PoliciesSummary, Summary, SweepSummary, file, summary};

/// Simulate a call graph event by event and see whether an outage outlives its trigger.
#[derive(Debug, Parser)]
#[command(name = "metastable", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a model and its untriggered twin, and judge them.
    Run(run::Run),
    /// Say what is wrong with a model, or dangerous in it, without running it.
    Check(check::Check),
    /// Run a model under every combination of some settings, and judge each.
    Sweep(sweep::Sweep),
    /// Run a model under a list of retry policies, and say which to take.
    Policies(policies::Policies),
    /// Print the retry policies that every model may name, what they say and where it comes from.
    #[command(after_help = "Example:\n  metastable presets | grep -A2 envoy")]
    Presets,
    /// Print the JSON Schema of a summary that `--format json` prints.
    #[command(after_help = "Examples:\n  metastable schema > summary.schema.json\n  \
                            metastable schema --of sweep > sweep.schema.json")]
    Schema {
        /// Of which summary.
        #[arg(long, value_enum, default_value = "run")]
        of: Kind,
    },
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  metastable completions bash > /etc/bash_completion.d/metastable"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Fine,
    NotMet,
    Bad,
    Interrupted,
}

/// Where results are printed, in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A kind of summary.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// Of `run`.
    Run,
    /// Of `run --seeds`.
    Ensemble,
    /// Of `sweep`.
    Sweep,
    /// Of `policies`.
    Policies,
}

/// Where results go, and in which form.
#[derive(Debug, clap::Args)]
struct Results {
    /// Folder for JSON, Parquet and, of a single run, plots; made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How to print the summary.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

impl Results {
    /// Makes the folder before anything runs: what cannot be kept need not be computed.
    fn make_folder(&self) -> anyhow::Result<()> {
        Ok(self.out.as_ref().map_or(Ok(()), |out| file::make_folder(out))?)
    }

    /// Prints a summary in the form that was asked for.
    fn show(
        &self,
        json: impl FnOnce() -> String,
        page: impl FnOnce(Style) -> String,
    ) -> anyhow::Result<Ending> {
        if self.format == Format::Json {
            return print(&json());
        }
        let mut page = page(Style { colour: colour(&std::io::stdout()), width: 100 });
        if let Some(out) = &self.out {
            page.push_str(&format!("\nFiles are in {}\n", out.display()));
        }
        print(&page)
    }
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ending = match arguments.command {
        Command::Run(run) => run.execute(),
        Command::Check(check) => check.execute(),
        Command::Sweep(sweep) => sweep.execute(),
        Command::Policies(policies) => policies.execute(),
        Command::Presets => print(&policies::presets()),
        Command::Schema { of: Kind::Run } => print(&summary::schema::<Summary>()),
        Command::Schema { of: Kind::Ensemble } => print(&summary::schema::<EnsembleSummary>()),
        Command::Schema { of: Kind::Sweep } => print(&summary::schema::<SweepSummary>()),
        Command::Schema { of: Kind::Policies } => print(&summary::schema::<PoliciesSummary>()),
        Command::Completions { shell } => print(&completions(shell)),
    };
    ExitCode::from(match ending {
        Ok(Ending::Fine) => 0,
        Ok(Ending::NotMet) => 1,
        Ok(Ending::Bad) => 2,
        Ok(Ending::Interrupted) => 130,
        Err(error) => {
            eprintln!("error: {error:#}");
            2
        }
    })
}

fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "metastable", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Prints a result. A reader that has had enough (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<Ending> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Ending::Fine),
    }
}

/// Colour is for terminals, and not for those who have said that they want none.
fn colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
