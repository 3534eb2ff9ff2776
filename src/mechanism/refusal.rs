//! What a tier answers when it turns an attempt away: the status, when to come back, and what the
//! answer costs.
//!
//! A refusal that costs work takes it from the same servers, and before all who wait: it is done as
//! the request comes in. The answer goes out at once. So a server that is asked for r⁻¹ times what
//! it can do, each refusal r times the work of an answer, does nothing but refuse.
//!
//! `Retry-After` is the server's only word on *when* its clients return. Sent as one number to all,
//! and obeyed to the letter, it gathers a herd instead of spreading it; a server may therefore draw
//! it from a range. A tier that is down sends nothing at all, so nothing can be obeyed.
//!
//! Source: RFC 9110, section 10.2.3 (Retry-After); RFC 6585, section 4 (429).

use crate::document::Value;
use crate::kernel::{Key, Purpose, Span};
use crate::mechanism::outcome::{Reason, Status};

/// The rule of a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refusal {
    /// The status of every refusal; `None`: 429 of a rate limit, 504 past a deadline, 503 else.
    pub status: Option<Status>,
    /// When to come back: drawn uniformly in [from, to).
    pub retry_after: Option<(Span, Span)>,
    /// Work of each, for one server.
    pub cost: Span,
}

impl Refusal {
    /// Reads `refusal = { status = 429, retry_after = "30s", cost = "100us" }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let status = section.get("status").map(|v| Status::read(&v));
        let retry_after = section.get("retry_after").map(|v| read_retry_after(&v));
        let cost = section.get("cost").map_or(Some(Span::ZERO), |v| v.duration());
        section.finish();
        Some(Refusal {
            cost: cost?,
            status: status.map_or(Some(None), |status| status.map(Some))?,
            retry_after: retry_after.map_or(Some(None), |range| range.map(Some))?,
        })
    }

    /// What a refusal for this reason costs: nothing where the tier has not answered itself.
    pub fn cost(&self, reason: Reason) -> Span {
        match reason {
            Reason::QueueFull | Reason::QueueWait | Reason::Admission | Reason::Deadline => {
                self.cost
            }
            _ => Span::ZERO,
        }
    }

    /// The status of a refusal for this reason.
    pub fn status(&self, reason: Reason) -> Status {
        match reason {
            Reason::Deadline => Status::GATEWAY_TIMEOUT,
            Reason::Admission => self.status.unwrap_or(Status::TOO_MANY),
            _ => self.status.unwrap_or(Status::UNAVAILABLE),
        }
    }

    /// How long to stay away, where the answer to the attempt with this key says so. Nobody answers
    /// for a tier that is down, or for a connection that was never made.
    pub fn retry_after(&self, reason: Reason, key: impl FnOnce() -> Key) -> Option<Span> {
        let (from, to) = self.retry_after?;
        match reason {
            Reason::Down | Reason::Pool | Reason::Left => None,
            _ if from == to => Some(from),
            _ => Some(from + (to - from).scaled(key().unit(Purpose::RetryAfter))),
        }
    }
}

/// Reads `"30s"` or `{ from = "20s", to = "40s" }`.
fn read_retry_after(value: &Value<'_>) -> Option<(Span, Span)> {
    if !value.is_section() {
        return value.positive_duration().map(|span| (span, span));
    }
    let section = value.section()?;
    let from = section.require("from", "add from = \"20s\"").and_then(|v| v.duration());
    let to = section.require("to", "add to = \"40s\"").and_then(|v| v.positive_duration());
    section.finish();
    let (from, to) = (from?, to?);
    if from > to {
        value.fault(
            &format!("`{}` begins above its end", value.path()),
            "the server draws between the two",
            &format!("write {{ from = \"{to}\", to = \"{from}\" }}"),
        );
        return None;
    }
    Some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_says_429_and_an_overload_503_unless_told_otherwise() {
        let plain = Refusal::default();
        assert_eq!(plain.status(Reason::Admission), Status::TOO_MANY);
        assert_eq!(plain.status(Reason::QueueFull), Status::UNAVAILABLE);
        let odd = Refusal { status: Some(Status::INTERNAL), ..plain };
        assert_eq!(odd.status(Reason::QueueFull), Status::INTERNAL);
    }

    #[test]
    fn retry_after_lies_in_its_range_and_a_tier_that_is_down_sends_none() {
        let (from, to) = (Span::from_secs(20), Span::from_secs(40));
        let rule = Refusal { retry_after: Some((from, to)), ..Refusal::default() };
        let draw = |i| rule.retry_after(Reason::Admission, || Key::root(i)).unwrap();
        assert!((0..1000).all(|i| (from..to).contains(&draw(i))));
        let mean = (0..1000).map(|i| draw(i).seconds()).sum::<f64>() / 1000.0;
        // Four standard errors of a mean of 1,000 uniform draws over 20 s.
        assert!((mean - 30.0).abs() < 4.0 * 20.0 / 12f64.sqrt() / 1000f64.sqrt(), "{mean}");
        assert_eq!(rule.retry_after(Reason::Down, || Key::root(1)), None);
    }
}
