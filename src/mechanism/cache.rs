//! A look-aside cache in front of one callee: cold at first or after a flush, warmed by its own
//! traffic.
//!
//! Each request asks for one of `keys` keys, uniformly or by Zipf's law. A key that is present and
//! not older than `ttl` is a hit and the call is not made. A miss makes the call, and a good answer
//! fills the key. An answer that comes after the caller's timeout is thrown away, or fills the key
//! too (`late`): with the same numbers this decides between "stays down" and "recovers by itself".

use rand_distr::{Distribution as _, Zipf};

use crate::document::Value;
use crate::kernel::{Distribution, Key, Purpose, Span, Time};

/// The rule of an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Number of different keys.
    pub keys: u32,
    /// Zipf exponent; zero is uniform.
    pub zipf: f64,
    /// Share of requests whose answer may not be cached.
    pub uncacheable: f64,
    /// How long an entry stays good.
    pub ttl: Option<Span>,
    /// Share of the keys, the most popular first, that are present at the start.
    pub start: f64,
    /// What becomes of late answers.
    pub late: Late,
    /// Whether the entries live in the caller's process and are lost when it restarts.
    pub in_process: bool,
    /// How long a lookup takes.
    pub lookup: Distribution,
}

/// What becomes of an answer that comes after the caller's timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Late {
    /// Thrown away.
    #[default]
    Discard,
    /// Fills the cache all the same.
    Fill,
}

/// The entries of one cache.
#[derive(Clone, Debug)]
pub struct Entries {
    keys: u32,
    ttl: Option<Span>,
    present: Present,
    popularity: Option<Zipf<f64>>,
}

/// Which keys are present. Without a `ttl` a bit for each says it all, and stays in the processor's
/// cache.
#[derive(Clone, Debug)]
enum Present {
    /// One bit a key.
    Bits(Vec<u64>),
    /// Until when each key is good.
    Until(Vec<Time>),
}

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Present and good.
    Hit,
    /// Absent or too old.
    Miss,
    /// Not a thing to cache.
    Uncacheable,
}

impl Cache {
    /// Reads `cache = { keys = 10000, … }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let keys =
            section.require("keys", "add keys = 10000").and_then(|v| v.whole(1, 100_000_000));
        let zipf = section.get("zipf").map_or(Some(0.0), |v| v.number_from(0.0, 100.0));
        let uncacheable = section.get("uncacheable").map_or(Some(0.0), |v| v.share());
        let ttl = section.get("ttl").map(|v| v.positive_duration());
        let start = section.get("start").map_or(Some(1.0), |v| {
            if v.is_text() && v.text()?.ends_with('%') {
                return v.share();
            }
            v.word(&[("warm", 1.0), ("cold", 0.0)])
        });
        let late = section.get("late").map_or(Some(Late::default()), |v| {
            v.word(&[("discard", Late::Discard), ("fill", Late::Fill)])
        });
        let in_process = section.get("in_process").map_or(Some(false), |v| v.flag());
        let lookup = section
            .get("lookup")
            .map_or(Some(Distribution::Constant(Span::ZERO)), |v| v.distribution());
        section.finish();
        Some(Cache {
            keys: keys? as u32,
            zipf: zipf?,
            uncacheable: uncacheable?,
            ttl: ttl.map_or(Some(None), |ttl| ttl.map(Some))?,
            start: start?,
            late: late?,
            in_process: in_process?,
            lookup: lookup?,
        })
    }

    /// The entries at the start of the run.
    pub fn start(&self) -> Entries {
        let popularity = (self.zipf > 0.0).then(|| {
            Zipf::new(f64::from(self.keys), self.zipf).expect("keys and exponent are positive")
        });
        let keys = self.keys as usize;
        let present = match self.ttl {
            None => Present::Bits(vec![0; keys.div_ceil(64)]),
            Some(_) => Present::Until(vec![Time::ZERO; keys]),
        };
        let mut entries = Entries { keys: self.keys, ttl: self.ttl, present, popularity };
        entries.warm(self.start, Time::ZERO);
        // In a cache that has run for a while entries are of every age. Were all of them fresh, all
        // would expire in the same instant, and the start of the run would be a trigger by itself.
        if let (Present::Until(until), Some(ttl)) = (&mut entries.present, self.ttl) {
            for (key, until) in until.iter_mut().enumerate().filter(|(_, at)| **at > Time::ZERO) {
                let left = Key::root(key as u64).unit(Purpose::CacheKey);
                *until = Time::ZERO + ttl.scaled(left);
            }
        }
        entries
    }

    /// Share of lookups that miss in the steady state at `rate` lookups a second: with a `ttl` a
    /// key asked for λ times a second misses once in 1 + λ·ttl times (renewal argument; uniform
    /// keys, so an upper bound under Zipf); without one, what was not there at the start, at first.
    pub fn steady_miss(&self, rate: f64) -> f64 {
        let cacheable = match self.ttl {
            Some(ttl) => 1.0 / (1.0 + rate / f64::from(self.keys) * ttl.seconds()),
            None => 1.0 - self.start,
        };
        self.uncacheable + (1.0 - self.uncacheable) * cacheable
    }

    /// Looks for the key that `request` asks for.
    #[inline]
    pub fn look(&self, entries: &Entries, request: Key, now: Time) -> Lookup {
        if request.chance(Purpose::Cacheable, self.uncacheable) {
            return Lookup::Uncacheable;
        }
        let key = entries.key_of(request);
        let good = match &entries.present {
            Present::Bits(bits) => bits[key / 64] >> (key % 64) & 1 == 1,
            Present::Until(until) => now < until[key],
        };
        if good { Lookup::Hit } else { Lookup::Miss }
    }

    /// Notes an answer for `request`.
    pub fn fill(&self, entries: &mut Entries, request: Key, now: Time) {
        if !request.chance(Purpose::Cacheable, self.uncacheable) {
            let key = entries.key_of(request);
            let until = self.ttl.map_or(Time::NEVER, |ttl| now + ttl);
            entries.present.add(key, until);
        }
    }
}

impl Entries {
    /// Empties the cache.
    pub fn flush(&mut self) {
        match &mut self.present {
            Present::Bits(bits) => bits.fill(0),
            Present::Until(until) => until.fill(Time::ZERO),
        }
    }

    /// Fills the given share of keys, the most popular first.
    pub fn warm(&mut self, share: f64, now: Time) {
        let count = (f64::from(self.keys) * share).round() as usize;
        let until = self.ttl.map_or(Time::NEVER, |ttl| now + ttl);
        (0..count).for_each(|key| self.present.add(key, until));
    }

    #[inline]
    fn key_of(&self, request: Key) -> usize {
        let mut stream = request.stream(Purpose::CacheKey);
        let rank = match &self.popularity {
            Some(zipf) => zipf.sample(&mut stream) as u32 - 1,
            None => (stream.unit() * f64::from(self.keys)) as u32,
        };
        rank.min(self.keys - 1) as usize
    }
}

impl Present {
    #[inline]
    fn add(&mut self, key: usize, until: Time) {
        match self {
            Present::Bits(bits) => bits[key / 64] |= 1 << (key % 64),
            Present::Until(good_until) => good_until[key] = until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> Cache {
        Cache {
            keys: 100,
            zipf: 0.0,
            uncacheable: 0.0,
            ttl: Some(Span::from_secs(10)),
            start: 0.0,
            late: Late::Discard,
            in_process: false,
            lookup: Distribution::Constant(Span::ZERO),
        }
    }

    #[test]
    fn a_miss_fills_and_the_same_request_then_hits_until_the_ttl() {
        let (rule, request) = (cache(), Key::root(1).child(7));
        let mut entries = rule.start();
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        assert_eq!(rule.look(&entries, request, at(1)), Lookup::Miss);
        rule.fill(&mut entries, request, at(1));
        assert_eq!(rule.look(&entries, request, at(10)), Lookup::Hit);
        assert_eq!(rule.look(&entries, request, at(11)), Lookup::Miss);
    }

    #[test]
    fn a_flush_empties_and_a_share_warms_that_share() {
        let rule = Cache { start: 1.0, ttl: None, ..cache() };
        let mut entries = rule.start();
        let hits = |entries: &Entries| {
            (0..20_000)
                .filter(|&i| rule.look(entries, Key::root(3).child(i), Time::ZERO) == Lookup::Hit)
                .count()
        };
        assert_eq!(hits(&entries), 20_000);
        entries.flush();
        assert_eq!(hits(&entries), 0);
        entries.warm(0.25, Time::ZERO);
        assert!((hits(&entries) as f64 / 2e4 - 0.25).abs() < 0.013);
    }

    #[test]
    fn under_zipf_a_tenth_of_the_keys_serves_most_requests() {
        let rule = Cache { zipf: 1.0, start: 0.1, ttl: None, ..cache() };
        let entries = rule.start();
        let hit = |i| rule.look(&entries, Key::root(3).child(i), Time::ZERO) == Lookup::Hit;
        // H(10)/H(100) = 2.9290/5.1874.
        let share = (0..50_000).filter(|&i| hit(i)).count() as f64 / 5e4;
        assert!((share - 0.5646).abs() < 0.009, "{share}");
    }

    #[test]
    fn what_may_not_be_cached_never_hits() {
        let rule = Cache { uncacheable: 0.1, start: 1.0, ..cache() };
        let entries = rule.start();
        let uncacheable = (0..50_000)
            .filter(|&i| {
                rule.look(&entries, Key::root(4).child(i), Time::ZERO) == Lookup::Uncacheable
            })
            .count() as f64;
        assert!((uncacheable / 5e4 - 0.1).abs() < 0.006);
    }
}
