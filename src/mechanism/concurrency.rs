//! How many attempts a station serves at once.

use crate::document::Value;

/// Servers of one station.
#[derive(Clone, Debug)]
pub struct Servers {
    /// `None`: as many as come.
    limit: Option<u32>,
    /// Those of them that are not lost.
    able: Option<u32>,
    busy: u32,
}

/// Reads `concurrency = 100` or `concurrency = "unlimited"`. The outer `None` is a fault.
pub fn read(value: &Value<'_>) -> Option<Option<u32>> {
    if value.is_text() {
        return value.word(&[("unlimited", ())]).map(|()| None);
    }
    value.whole(1, 10_000_000).map(|limit| Some(limit as u32))
}

/// How many of its `limit` servers replica number `replica` of `replicas` keeps when the share
/// `lost` of all servers of the tier is gone. The loss is rounded once, over the whole tier: a
/// third of three replicas with one server each is one replica, not a third of each, which would be
/// all.
pub fn kept(limit: u32, lost: f64, replica: usize, replicas: usize) -> u32 {
    let all = u64::from(limit) * replicas as u64;
    let kept = (all as f64 * (1.0 - lost)).round() as u64;
    let up_to = |replicas_before: usize| kept * replicas_before as u64 / replicas as u64;
    (up_to(replica + 1) - up_to(replica)) as u32
}

impl Servers {
    /// All free.
    pub fn new(limit: Option<u32>) -> Self {
        Servers { limit, able: limit, busy: 0 }
    }

    /// Leaves so many able to serve; those in service go on.
    pub fn keep(&mut self, able: Option<u32>) {
        self.able = able;
    }

    /// True when one more may start.
    #[inline]
    pub fn free(&self) -> bool {
        self.able.is_none_or(|able| self.busy < able)
    }

    /// Takes one.
    #[inline]
    pub fn take(&mut self) {
        self.busy += 1;
    }

    /// Gives one back.
    #[inline]
    pub fn release(&mut self) {
        debug_assert!(self.busy > 0, "a server was released twice");
        self.busy -= 1;
    }

    /// Adds so many times `limit` servers.
    pub fn grow(&mut self, limit: Option<u32>, times: u32) {
        let more = limit.map_or(0, |limit| limit.saturating_mul(times));
        self.limit = self.limit.map(|servers| servers.saturating_add(more));
        self.able = self.able.map(|servers| servers.saturating_add(more));
    }

    /// Most in service at once; `None`: as many as come.
    pub fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// In service now.
    pub fn busy(&self) -> u32 {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_serves_as_many_as_are_able() {
        let mut servers = Servers::new(Some(2));
        servers.take();
        assert!(servers.free());
        servers.keep(Some(1));
        assert!(!servers.free());
        servers.keep(Some(2));
        servers.take();
        assert!(!servers.free() && Servers::new(None).free());
    }

    #[test]
    fn a_loss_is_rounded_once_over_the_whole_tier() {
        let all = |limit, lost, replicas: usize| -> Vec<u32> {
            (0..replicas).map(|replica| kept(limit, lost, replica, replicas)).collect()
        };
        assert_eq!(all(1, 0.34, 3).iter().sum::<u32>(), 2);
        assert_eq!(all(4, 0.5, 1), [2]);
        assert_eq!(all(100, 0.25, 4), [75; 4]);
        assert_eq!(all(3, 1.0, 2), [0, 0]);
        assert_eq!(all(3, 0.0, 2), [3, 3]);
    }
}
