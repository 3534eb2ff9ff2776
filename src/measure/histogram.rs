//! Counts by size in log-linear buckets: 32 for each doubling, so that a quantile is within 1/64
//! (1.6 %) of a value that was counted, over the whole range of the clock.
//!
//! Why not the `hdrhistogram` crate: a window's histogram is closed thousands of times a run and
//! kept sparse, and rows must add up; this is the whole of what is needed.

use crate::kernel::Span;

const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = ((64 - SUB_BITS as usize) + 1) * SUB as usize;
const _: () = assert!(BUCKETS >> SUB_BITS <= 64, "`touched` has a bit for each doubling");

/// Relative error of every quantile.
pub const RELATIVE_ERROR: f64 = 1.0 / 64.0;

/// The histogram of the current window.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u32; BUCKETS]>,
    /// Bit per doubling (32 buckets): something there has been counted.
    touched: u64,
    /// Sum of all values (ns), for the exact mean.
    sum: u128,
}

/// A closed histogram: only the buckets that hold something, by rising size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sparse {
    buckets: Vec<Bucket>,
    sum: u128,
    count: u64,
}

/// The number of a bucket in the upper 16 bits, and its count below: a run keeps thousands of
/// closed histograms, and this halves them. 48 bits count to 2.8·10¹⁴.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bucket(u64);

impl Bucket {
    fn new(index: usize, count: u64) -> Self {
        debug_assert!(count < 1 << 48, "more values than a bucket can count");
        Bucket((index as u64) << 48 | count)
    }

    fn index(self) -> usize {
        (self.0 >> 48) as usize
    }

    fn count(self) -> u64 {
        self.0 & ((1 << 48) - 1)
    }
}

impl Histogram {
    /// Empty.
    pub fn new() -> Self {
        Histogram { counts: Box::new([0; BUCKETS]), touched: 0, sum: 0 }
    }

    /// Counts one value.
    #[inline(always)]
    pub fn add(&mut self, span: Span) {
        let index = bucket(span.nanos());
        self.counts[index] += 1;
        self.touched |= 1 << (index >> SUB_BITS);
        self.sum += u128::from(span.nanos());
    }

    /// Takes out what was counted and starts again.
    pub fn take(&mut self) -> Sparse {
        let mut sparse = Sparse { sum: std::mem::take(&mut self.sum), ..Sparse::default() };
        while self.touched != 0 {
            let doubling = self.touched.trailing_zeros() as usize;
            self.touched &= self.touched - 1;
            for index in doubling << SUB_BITS..(doubling + 1) << SUB_BITS {
                let count = u64::from(std::mem::take(&mut self.counts[index]));
                if count > 0 {
                    sparse.buckets.push(Bucket::new(index, count));
                    sparse.count += count;
                }
            }
        }
        sparse.buckets.shrink_to_fit();
        sparse
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Sparse {
    /// All counts together. Adds them up in a full row of buckets: hundreds of windows in one pass.
    pub fn sum<'s>(parts: impl IntoIterator<Item = &'s Sparse>) -> Sparse {
        let mut counts = [0u64; BUCKETS];
        let mut all = Sparse::default();
        for part in parts {
            for bucket in &part.buckets {
                counts[bucket.index()] += bucket.count();
            }
            all.sum += part.sum;
            all.count += part.count;
        }
        let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        all.buckets = filled.map(|(index, &count)| Bucket::new(index, count)).collect();
        all
    }

    /// The value that the share `p` does not pass (s), within [`RELATIVE_ERROR`]; `None` when
    /// nothing was counted.
    pub fn quantile_s(&self, p: f64) -> Option<f64> {
        let rank = ((p * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        self.buckets
            .iter()
            .find(|bucket| {
                seen += bucket.count();
                seen >= rank
            })
            .map(|bucket| middle(bucket.index()) / 1e9)
    }

    /// The exact sum of all values (s).
    pub fn sum_s(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    /// The exact mean (s).
    pub fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e9)
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many were longer than `span`, counted by whole buckets: exact when `span` is the last of
    /// a bucket.
    pub fn count_above(&self, span: Span) -> u64 {
        let edge = bucket(span.nanos());
        let above = self.buckets.iter().filter(|bucket| bucket.index() > edge);
        above.map(|bucket| bucket.count()).sum()
    }
}

/// The bucket of a value. A `f64` has doubling and place within it side by side, in exponent and
/// mantissa, and to make one takes less than to search for the highest bit, which x86-64 does in
/// eight steps. Up to 53 bits it is exact.
#[inline(always)]
fn bucket(value: u64) -> usize {
    if value >> f64::MANTISSA_DIGITS != 0 {
        return bucket_by_bits(value);
    }
    let places = (value as i64 as f64).to_bits() >> (f64::MANTISSA_DIGITS - 1 - SUB_BITS);
    let doubling_zero = (f64::MAX_EXP as u64 - 2 + u64::from(SUB_BITS)) * SUB;
    let index = places.wrapping_sub(doubling_zero);
    std::hint::select_unpredictable(value < SUB, value, index) as usize
}

/// The same for any value.
#[cold]
#[inline(never)]
fn bucket_by_bits(value: u64) -> usize {
    let exponent = 63 - (value | (SUB - 1)).leading_zeros();
    let shift = exponent.saturating_sub(SUB_BITS);
    (u64::from(shift) * SUB + (value >> shift)) as usize
}

fn middle(index: usize) -> f64 {
    let index = index as u64;
    if index < 2 * SUB {
        return index as f64;
    }
    let shift = index / SUB - 1;
    let low = (index - shift * SUB) << shift;
    low as f64 + (1u64 << shift) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_rise_without_gap() {
        let mut last = 0;
        for value in 0..100_000u64 {
            let index = bucket(value);
            assert!(index == last || index == last + 1, "{value}");
            last = index;
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn a_bucket_is_what_the_bits_say_around_every_doubling() {
        let doublings = (0..u64::BITS).map(|bit| 1u64 << bit);
        let near = |value: u64| (0..200).flat_map(move |d| [value.saturating_sub(d), value + d]);
        for value in doublings.flat_map(|from| [from, from / 32 * 33]).flat_map(near) {
            assert_eq!(bucket(value), bucket_by_bits(value), "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_bucket_is_what_the_bits_say(value: u64, shift in 0u32..64) {
            prop_assert_eq!(bucket(value >> shift), bucket_by_bits(value >> shift));
        }

        #[test]
        fn a_quantile_is_within_its_stated_error(
            mut values in prop::collection::vec(0u64..u64::MAX / 4, 1..300),
            p in 0.0f64..1.0,
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&v| histogram.add(Span::from_nanos(v)));
            values.sort_unstable();
            let rank = ((p * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64 / 1e9;
            let got = histogram.take().quantile_s(p).unwrap();
            prop_assert!((got - exact).abs() <= exact * RELATIVE_ERROR + 1e-9);
        }

        #[test]
        fn the_sum_is_counting_together(
            a in prop::collection::vec(0u64..1_000_000, 0..50),
            b in prop::collection::vec(0u64..1_000_000, 0..50),
        ) {
            let of = |values: &[u64]| {
                let mut histogram = Histogram::new();
                values.iter().for_each(|&v| histogram.add(Span::from_nanos(v)));
                histogram.take()
            };
            prop_assert_eq!(Sparse::sum([&of(&a), &of(&b)]), of(&[a, b].concat()));
        }
    }
}
