//! A population that has failed together: each of its clients comes once, and stays until it is
//! through or gives up.
//!
//! The first send of a client is drawn by its own key, so it is the same under every policy, and
//! one client more moves nobody else's.

use std::sync::Arc;

use super::read_trace;
use crate::document::Value;
use crate::kernel::{Key, Purpose, Span, Time};

/// The rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Herd {
    starts: Starts,
}

#[derive(Clone, Debug, PartialEq)]
enum Starts {
    /// Uniform over a span from the start of the run; all at once where it is zero.
    Over { clients: u32, over: Span },
    /// The n-th client at the n-th instant.
    Trace(Arc<[Time]>),
}

/// The first send of each client, in order of time, then of clients.
pub type Firsts = Vec<(Time, u32)>;

const MOST: u64 = 10_000_000;

impl Herd {
    /// Reads `{ clients = 2000, over = "2s" }` or `{ trace = "first-sends.txt" }`.
    pub fn read(value: &Value<'_>, file: &dyn Fn(&str) -> Result<String, String>) -> Option<Self> {
        let section = value.section()?;
        if let Some(trace) = section.get("trace") {
            let times = read_trace(&trace, file);
            section.finish();
            let times = times?;
            if times.is_empty() || times.len() as u64 > MOST {
                let what = format!("a herd of {} clients", times.len());
                trace.fault(&what, "each line is one client", "give from 1 to 10,000,000 lines");
                return None;
            }
            return Some(Herd { starts: Starts::Trace(times) });
        }
        let clients =
            section.require("clients", "add clients = 2000").and_then(|v| v.whole(1, MOST));
        let over = section.get("over").map_or(Some(Span::ZERO), |v| v.duration());
        section.finish();
        Some(Herd { starts: Starts::Over { clients: clients? as u32, over: over? } })
    }

    /// How many there are.
    pub fn clients(&self) -> u32 {
        match &self.starts {
            Starts::Over { clients, .. } => *clients,
            Starts::Trace(times) => times.len() as u32,
        }
    }

    /// The first sends; `key` is that of the source.
    pub fn firsts(&self, key: Key) -> Firsts {
        let mut firsts: Firsts = match &self.starts {
            Starts::Over { clients, over } => {
                let share = |client| key.child(u64::from(client)).unit(Purpose::Gap);
                (0..*clients).map(|c| (Time::ZERO + over.scaled(share(c)), c)).collect()
            }
            Starts::Trace(times) => times.iter().copied().zip(0..).collect(),
        };
        firsts.sort_unstable();
        firsts
    }

    /// As the list of assumptions says it.
    pub fn describe(&self) -> String {
        let clients = self.clients();
        match &self.starts {
            Starts::Over { over: Span::ZERO, .. } => format!("{clients} clients all at once"),
            Starts::Over { over, .. } => format!("{clients} clients once each, within {over}"),
            Starts::Trace(_) => format!("{clients} clients once each, from a trace"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_more_moves_nobody_elses_first_send() {
        let herd = |clients| Herd { starts: Starts::Over { clients, over: Span::from_secs(2) } };
        let key = Key::root(1);
        let mut more = herd(1001).firsts(key);
        more.retain(|(_, client)| *client < 1000);
        assert_eq!(more, herd(1000).firsts(key));
        assert!(more.is_sorted() && more.iter().all(|(t, _)| *t < Time::ZERO + Span::from_secs(2)));
    }
}
