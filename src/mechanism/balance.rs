//! Which replica of a tier an attempt goes to.

use crate::document::Value;
use crate::kernel::{Key, Purpose};

/// The rule of a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Any, with equal probability.
    Random,
    /// The one with the fewest attempts waiting and in service; the first of several.
    LeastBusy,
    /// All replicas work from one queue.
    Shared,
}

impl Balance {
    /// Reads `balance = "…"`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        value.word(&[
            ("round-robin", Balance::RoundRobin),
            ("random", Balance::Random),
            ("least-busy", Balance::LeastBusy),
            ("shared", Balance::Shared),
        ])
    }

    /// The position among `loads` (attempts at each replica) for the attempt with `key`; `turn`
    /// counts earlier ones.
    pub fn pick(self, turn: u64, key: Key, replicas: usize, load: impl Fn(usize) -> u32) -> usize {
        match self {
            _ if replicas == 1 => 0,
            // Which replica takes it from the shared queue matters for its pools and budgets alone.
            Balance::Shared | Balance::RoundRobin => (turn % replicas as u64) as usize,
            Balance::Random => (key.unit(Purpose::Balance) * replicas as f64) as usize,
            Balance::LeastBusy => (0..replicas).min_by_key(|&replica| load(replica)).unwrap_or(0),
        }
    }

    /// As the list of assumptions says it.
    pub fn name(self) -> &'static str {
        match self {
            Balance::RoundRobin => "round robin",
            Balance::Random => "random",
            Balance::LeastBusy => "least busy",
            Balance::Shared => "one shared queue",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_takes_turns_and_least_busy_looks() {
        let key = Key::root(1);
        let turns: Vec<usize> =
            (0..4).map(|t| Balance::RoundRobin.pick(t, key, 3, |_| 0)).collect();
        assert_eq!(turns, [0, 1, 2, 0]);
        assert_eq!(Balance::LeastBusy.pick(0, key, 3, |r| [5, 2, 2][r]), 1);
    }

    #[test]
    fn random_reaches_every_replica_equally() {
        let mut counts = [0f64; 4];
        for i in 0..40_000 {
            counts[Balance::Random.pick(0, Key::root(2).child(i), 4, |_| 0)] += 1.0;
        }
        assert!(counts.iter().all(|c| (c - 10_000.0).abs() < 4.0 * 7500f64.sqrt()), "{counts:?}");
    }
}
