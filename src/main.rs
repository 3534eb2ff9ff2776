//! The `metastable` program. All of it is in the library's `cli` room.

use std::process::ExitCode;

fn main() -> ExitCode {
    metastable::cli::main()
}
