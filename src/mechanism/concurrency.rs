//! How many attempts a station serves at once.

use crate::document::Value;

/// Servers of one station.
#[derive(Clone, Debug)]
pub struct Servers {
    /// `None`: as many as come.
    limit: Option<u32>,
    busy: u32,
}

/// Reads `concurrency = 100` or `concurrency = "unlimited"`. The outer `None` is a fault.
pub fn read(value: &Value<'_>) -> Option<Option<u32>> {
    if value.is_text() {
        return value.word(&[("unlimited", ())]).map(|()| None);
    }
    value.whole(1, 10_000_000).map(|limit| Some(limit as u32))
}

impl Servers {
    /// All free.
    pub fn new(limit: Option<u32>) -> Self {
        Servers { limit, busy: 0 }
    }

    /// True when one more may start while the share `lost` of all servers is gone. Those in service
    /// go on.
    #[inline]
    pub fn free(&self, lost: f64) -> bool {
        match self.limit {
            None => lost < 1.0,
            Some(limit) if lost == 0.0 => self.busy < limit,
            Some(limit) => f64::from(self.busy) + 1.0 <= f64::from(limit) * (1.0 - lost) + 1e-9,
        }
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
    fn half_the_servers_lost_leaves_half() {
        let mut servers = Servers::new(Some(4));
        servers.take();
        assert!(servers.free(0.5));
        servers.take();
        assert!(!servers.free(0.5) && servers.free(0.0));
        assert!(!Servers::new(None).free(1.0) && !Servers::new(Some(3)).free(1.0));
    }

    #[test]
    fn a_third_lost_of_three_leaves_two() {
        let mut servers = Servers::new(Some(3));
        servers.take();
        assert!(servers.free(1.0 / 3.0));
        servers.take();
        assert!(!servers.free(1.0 / 3.0));
    }
}
