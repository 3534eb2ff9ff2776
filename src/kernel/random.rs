//! Keyed random numbers: a draw depends on *what it is for*, never on who drew before.
//!
//! Every request, call and attempt has a [`Key`], hashed from the seed and its place in the run. A
//! draw is a [`Stream`] opened on (key, [`Purpose`]). So one more request, or another retry rule,
//! leaves the draws of all others bit-equal, and twin runs (with and without trigger) give the same
//! request the same fate.
//!
//! The stream is SplitMix64: a counter run through a mixing function (Steele, Lea & Flood, *Fast
//! splittable pseudorandom number generators*, OOPSLA 2014; constants of Stafford's variant 13).
//! Why not one generator per mechanism: its n-th draw would move when the (n−1)-th vanishes. Why
//! not `SmallRng`: its algorithm may change with a release of `rand`, and with it every golden
//! result.

use std::convert::Infallible;

use rand::TryRng;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The identity of something that draws random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key(u64);

/// What a draw is for. Two purposes under one key are independent. The numbers are part of every
/// golden result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says what it is drawn for")]
pub enum Purpose {
    Gap = 1,
    Class = 2,
    Client = 3,
    Work = 4,
    Backoff = 5,
    Failure = 6,
    ReplyLoss = 7,
    Outbound = 8,
    Inbound = 9,
    Choice = 10,
    CacheKey = 11,
    Cacheable = 12,
    Think = 13,
    Trace = 14,
    Balance = 15,
    Thinning = 16,
    Lookup = 17,
    Fallback = 18,
    RetryAfter = 19,
    Throttle = 20,
}

/// An endless run of random numbers, opened on a key for one purpose. Implements `rand`'s generator
/// traits.
#[derive(Clone, Debug)]
pub struct Stream {
    counter: u64,
}

impl Key {
    /// The key of a whole run.
    pub fn root(seed: u64) -> Self {
        Key(mix(seed ^ GOLDEN))
    }

    /// The key of part `index` of this thing.
    #[inline]
    pub fn child(self, index: u64) -> Self {
        let few = index < SPREAD.len() as u64;
        Key(mix(self.0 ^ if few { SPREAD[index as usize] } else { spread(index) }))
    }

    /// The draws of this thing for `purpose`.
    #[inline]
    pub fn stream(self, purpose: Purpose) -> Stream {
        Stream {
            counter: self.0.wrapping_add((purpose as u64).wrapping_mul(0xd1b5_4a32_d192_ed03)),
        }
    }

    /// One draw, uniform in [0, 1).
    #[inline]
    pub fn unit(self, purpose: Purpose) -> f64 {
        self.stream(purpose).unit()
    }

    /// True with probability `share`.
    #[inline]
    pub fn chance(self, purpose: Purpose, share: f64) -> bool {
        share > 0.0 && self.unit(purpose) < share
    }

    /// The raw 64 bits, for maps keyed by identity.
    pub fn bits(self) -> u64 {
        self.0
    }
}

impl Stream {
    #[inline]
    fn next(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(GOLDEN);
        mix(self.counter)
    }

    /// Uniform in [0, 1), in steps of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next() >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next())
    }

    fn try_fill_bytes(&mut self, target: &mut [u8]) -> Result<(), Infallible> {
        for chunk in target.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// [`spread`] of the first numbers: most parts of a thing have one of these.
static SPREAD: [u64; 64] = {
    let mut table = [0; 64];
    let mut index = 0;
    while index < table.len() {
        table[index] = spread(index as u64);
        index += 1;
    }
    table
};

/// The number of a part, spread over all bits.
const fn spread(index: u64) -> u64 {
    mix(index.wrapping_add(GOLDEN))
}

#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    /// A change here changes every golden result: it must be meant.
    #[test]
    fn the_first_draws_are_frozen() {
        let key = Key::root(1).child(2).child(3);
        let mut stream = key.stream(Purpose::Work);
        let draws = [stream.next_u64(), stream.next_u64(), stream.next_u64()];
        insta::assert_debug_snapshot!(draws);
    }

    #[test]
    fn two_purposes_under_one_key_do_not_agree() {
        let key = Key::root(7).child(1);
        assert_ne!(key.unit(Purpose::Work).to_bits(), key.unit(Purpose::Backoff).to_bits());
    }

    /// Neighbouring keys are what a run is made of, so their first draws must look like one good
    /// generator's.
    #[test]
    fn first_draws_of_neighbouring_keys_are_uniform_and_uncorrelated() {
        const N: u64 = 200_000;
        let root = Key::root(3);
        let draws: Vec<f64> = (0..N).map(|i| root.child(i).unit(Purpose::Work)).collect();
        let mut bins = [0u32; 64];
        for u in &draws {
            bins[(u * 64.0) as usize] += 1;
        }
        let expected = N as f64 / 64.0;
        let chi2: f64 = bins.iter().map(|&b| (f64::from(b) - expected).powi(2) / expected).sum();
        assert!((30.0..115.0).contains(&chi2), "chi-square {chi2} on 63 degrees of freedom");
        let covariance: f64 =
            draws.windows(2).map(|w| (w[0] - 0.5) * (w[1] - 0.5)).sum::<f64>() / N as f64;
        assert!(covariance.abs() < 5.0 / 12.0 / (N as f64).sqrt(), "covariance {covariance}");
    }
}
