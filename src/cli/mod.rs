//! The program: what was typed, what it means, what is printed. The only room that prints.
//!
//! Results go to standard output, progress and diagnostics to standard error. Exit codes: 0 fine; 1
//! an expectation is not met, or a finding under `--strict`; 2 a bad model or bad usage; 130
//! interrupted.

mod check;
mod load;
mod progress;
mod run;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::output::Summary;

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
    /// Print the JSON Schema of the summary that `run --format json` prints.
    #[command(after_help = "Example:\n  metastable schema > summary.schema.json")]
    Schema,
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

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ending = match arguments.command {
        Command::Run(run) => run.execute(),
        Command::Check(check) => check.execute(),
        Command::Schema => print(&Summary::schema()),
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
