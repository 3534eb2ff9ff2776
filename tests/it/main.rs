//! All integration tests in one binary; each file is a kind of its own, and kinds are never mixed.

mod bad_model;
mod cli;
mod golden;
mod house;
mod invariant;
mod literature;
mod literature_herd;
mod literature_sheet;
mod notebook;
mod oracle;
