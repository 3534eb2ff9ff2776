//! Users who leave: how long they wait for the whole of a request, and what their client does then.
//!
//! A client that does not cancel goes on trying for somebody who has gone: *ghosts*, which load the
//! servers like everybody else and help nobody.

use crate::document::Value;
use crate::kernel::Span;

/// The rule of a client tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the first attempt on.
    pub wait: Span,
    /// Whether the client then drops all that it does for the user, pending retries included.
    pub cancels: bool,
}

impl Patience {
    /// Reads `patience = "20s"` or `patience = { wait = "20s", cancel = false }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        if !value.is_section() {
            return value.positive_duration().map(|wait| Patience { wait, cancels: true });
        }
        let section = value.section()?;
        let wait =
            section.require("wait", "add wait = \"20s\"").and_then(|v| v.positive_duration());
        let cancels = section.get("cancel").map_or(Some(true), |v| v.flag());
        section.finish();
        Some(Patience { wait: wait?, cancels: cancels? })
    }

    /// As the list of assumptions says it.
    pub fn describe(self) -> String {
        let then = if self.cancels { "and its retries end" } else { "and its retries go on" };
        format!("a user leaves after {}, {then}", self.wait)
    }
}
