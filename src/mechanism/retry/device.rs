//! An offset of each device's own, which spreads a herd that shares everything else: it lasts over
//! restarts, since it is hashed from the id of the installation, and needs no generator of random
//! numbers.
//!
//! share = (FNV-1a, 32 bits, of the id's UTF-16 code units, mod 100,000) / 100,000.
//!
//! Source: Fowler, Noll & Vo's hash: offset basis 2166136261, prime 16777619.

use crate::kernel::{Key, Span};

const OFFSET_BASIS: u32 = 2_166_136_261;
const PRIME: u32 = 16_777_619;

/// How many different shares there are.
const STEPS: u32 = 100_000;

/// What the ids of simulated devices are hashed from. A device keeps its id whatever the seed of
/// the run, as a real one does from outage to outage.
const FLEET: u64 = 0x6465_7669_6365;

/// The share of an id, in [0, 1).
pub fn share(id: &str) -> f64 {
    let mix = |hash: u32, unit: u16| (hash ^ u32::from(unit)).wrapping_mul(PRIME);
    let hash = id.encode_utf16().fold(OFFSET_BASIS, mix);
    f64::from(hash % STEPS) / f64::from(STEPS)
}

/// The id of a device: a UUID of random bits (version 4 of RFC 9562).
pub fn install_id(device: u32) -> String {
    let key = Key::root(FLEET).child(u64::from(device));
    let (high, low) = (key.child(0).bits(), key.child(1).bits());
    let version = high & 0x0fff | 0x4000;
    let variant = low >> 48 & 0x3fff | 0x8000;
    let (first, second) = (high >> 32, high >> 16 & 0xffff);
    format!("{first:08x}-{second:04x}-{version:04x}-{variant:04x}-{:012x}", low & 0xffff_ffff_ffff)
}

/// The offset of a device, where the largest is `base`.
pub fn offset(device: u32, base: Span) -> Span {
    base.scaled(share(&install_id(device)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_known_ids_are_exact() {
        assert_eq!(share("anonymous"), 0.7979);
        assert_eq!(share("a"), 0.0222);
        assert_eq!(share("00000000-0000-4000-8000-000000000000"), 0.17141);
    }

    #[test]
    fn an_id_is_a_random_uuid_and_stays_the_same() {
        let id = install_id(7);
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        assert!("89ab".contains(&id[19..20]), "{id}");
        assert_eq!((install_id(7) == id, install_id(8) == id), (true, false));
    }

    /// Ten bins of 200: four standard deviations are 4 x sqrt(2,000 x 0.1 x 0.9) = 54; the bound is
    /// closer, 20 %, and holds for the devices that there are.
    #[test]
    fn two_thousand_devices_spread_evenly() {
        let mut bins = [0; 10];
        (0..2_000).for_each(|device| bins[(share(&install_id(device)) * 10.0) as usize] += 1);
        assert!(bins.iter().all(|count| (160..=240).contains(count)), "{bins:?}");
    }
}
