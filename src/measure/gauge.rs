//! A level that changes in steps, and its integral over the current window.

use crate::kernel::Span;

/// A level such as a queue length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gauge {
    level: i64,
    /// ∫ level dt over the window, as if the level stayed to its end (ns); `i128`, since 10⁷
    /// waiting for an hour pass 64 bits.
    area: i128,
}

impl Gauge {
    /// The level rises by one when `left` of the window is still to come.
    #[inline]
    pub fn up(&mut self, left: Span) {
        self.level += 1;
        self.area += i128::from(left.nanos());
    }

    /// The level falls by one when `left` of the window is still to come.
    #[inline]
    pub fn down(&mut self, left: Span) {
        self.level -= 1;
        self.area -= i128::from(left.nanos());
    }

    /// The level now.
    pub fn level(&self) -> i64 {
        self.level
    }

    /// Starts a window of this length at the present level.
    pub fn open(&mut self, length: Span) {
        self.area = i128::from(self.level) * i128::from(length.nanos());
    }

    /// ∫ level dt of the window that ends now [level·s].
    pub fn area_s(&self) -> f64 {
        self.area as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_level_times_time() {
        let mut gauge = Gauge::default();
        gauge.open(Span::from_secs(10));
        (0..3).for_each(|_| gauge.up(Span::from_secs(10)));
        gauge.down(Span::from_secs(4));
        assert_eq!(gauge.area_s(), 3.0 * 6.0 + 2.0 * 4.0);
        gauge.open(Span::from_secs(1));
        assert_eq!((gauge.area_s(), gauge.level()), (2.0, 2));
    }
}
