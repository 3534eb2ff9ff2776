//! x
use super::Model;
use crate::document::Fault;
/// x
pub fn check(_model: &Model) -> Vec<Fault> {
    Vec::new()
}
