//! Policies that reproduce what well-known libraries do by default.
use super::policy::Policy;

/// Their names.
pub const PRESETS: [&str; 1] = ["none"];

/// The policy of a name.
pub fn policy(name: &str) -> Option<Policy> {
    match name {
        "none" => Some(Policy::default()),
        _ => None,
    }
}
