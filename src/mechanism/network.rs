//! The way between a caller and its callee: how long it takes, and what gets lost on it.

use crate::document::Value;
use crate::kernel::{Distribution, Key, Purpose, Span};

/// The rule of an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// One way; each way is drawn by itself.
    pub delay: Distribution,
    /// Share of answers that never arrive: the work is done, the caller does not know.
    pub reply_loss: f64,
}

impl Default for Network {
    fn default() -> Self {
        Network { delay: Distribution::Constant(Span::ZERO), reply_loss: 0.0 }
    }
}

impl Network {
    /// Reads `network = { delay.constant = "1ms", reply_loss = "0.1%" }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let calm = Network::default();
        let delay = section.get("delay").map_or(Some(calm.delay), |v| v.distribution());
        let reply_loss = section.get("reply_loss").map_or(Some(0.0), |v| v.share());
        section.finish();
        Some(Network { delay: delay?, reply_loss: reply_loss? })
    }

    /// How long the attempt with `key` takes one way, `extra` included.
    #[inline]
    pub fn travel(&self, key: Key, way: Purpose, extra: Span) -> Span {
        match self.delay {
            Distribution::Constant(span) => span + extra,
            ref law => law.sample(&mut key.stream(way)) + extra,
        }
    }

    /// Whether the answer to the attempt with `key` gets lost.
    #[inline]
    pub fn loses_reply(&self, key: Key) -> bool {
        key.chance(Purpose::ReplyLoss, self.reply_loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extra_delay_of_a_trigger_adds_to_the_edges_own() {
        let network =
            Network { delay: Distribution::Constant(Span::from_millis(2)), reply_loss: 0.0 };
        let travel = network.travel(Key::root(1), Purpose::Outbound, Span::from_millis(3));
        assert_eq!(travel, Span::from_millis(5));
    }

    #[test]
    fn one_answer_in_a_thousand_is_lost() {
        let network = Network { reply_loss: 0.001, ..Network::default() };
        let lost =
            (0..1_000_000).filter(|&i| network.loses_reply(Key::root(2).child(i))).count() as f64;
        assert!((lost - 1000.0).abs() < 4.0 * 1000f64.sqrt(), "{lost}");
    }
}
