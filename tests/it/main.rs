//! All integration tests in one binary; each file is a kind of its own, and kinds are never mixed.

mod bad_model;
mod invariant;
mod oracle;
