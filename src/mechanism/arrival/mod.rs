//! When new requests come.
//!
//! Open sources have an intensity λ(t) [1/s], straight lines between points, and its integral Λ(t).
//! The n-th arrival is the instant where Λ reaches n (evenly spaced) or the sum of n unit
//! exponentials (Poisson): exact for every λ(t), with no gap that leaps over a step. Why not draw a
//! gap at the rate of *now*: a long gap drawn before a spike would straddle its beginning, and the
//! trigger would come late and blunt.
//!
//! More demand during a trigger is a source of its own (superposed Poisson processes are Poisson),
//! so the base requests stay bit-equal in both twins.
//!
//! Sources: Çinlar, *Introduction to Stochastic Processes* (1975), time change of a Poisson
//! process.

mod herd;
mod intensity;

use std::sync::Arc;

use rand_distr::{Distribution as _, Exp1};

use crate::document::Value;
use crate::kernel::{Distribution, Key, Purpose, Span, Time};
use crate::mechanism::timer::Timer;

pub use herd::{Firsts, Herd};
pub use intensity::Intensity;

/// The rule of a client tier.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Memoryless at a constant or changing rate.
    Poisson(Intensity),
    /// At equal distances.
    Even(Intensity),
    /// Each client waits for its answer, thinks, and asks again.
    Closed {
        /// Number of clients.
        clients: u32,
        /// Time between an answer and the next request.
        think: Distribution,
    },
    /// Each client once.
    Herd(Herd),
    /// At recorded instants; none at all where only triggers bring requests.
    Trace(Arc<[Time]>),
}

/// Something that makes requests: the rule of a tier, or the extra demand of a trigger.
#[derive(Clone, Debug)]
pub struct Source {
    pattern: Pattern,
    from: Time,
    until: Time,
}

#[derive(Clone, Debug)]
enum Pattern {
    Open { intensity: Intensity, poisson: bool },
    Burst { requests: u64, over: Span },
    Closed { clients: u32, think: Distribution },
    Herd(Herd),
    Trace(Arc<[Time]>),
}

/// The next request of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Upcoming {
    /// When it comes.
    pub time: Time,
    /// What its draws are keyed by.
    pub key: Key,
    /// Whose it is, where the source says so.
    pub client: Option<u32>,
}

/// How far a source has come.
#[derive(Clone, Debug, Default)]
pub struct SourceState {
    /// Of a herd, from the first call on.
    firsts: Firsts,
    issued: u64,
    cumulative: f64,
    segment: usize,
}

/// Extra demand while a trigger lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Surge {
    /// This many times the normal demand.
    Step(f64),
    /// Rising to this many times the normal demand in the given time.
    Ramp {
        /// Factor at the top.
        to: f64,
        /// Time to get there.
        over: Span,
    },
    /// So many requests more, spread evenly over the given time.
    Burst {
        /// Number of requests.
        requests: u64,
        /// Zero: all at once.
        over: Span,
    },
}

impl Arrivals {
    /// True when requests come whether or not earlier ones have been answered.
    pub fn is_open(&self) -> bool {
        !matches!(self, Arrivals::Closed { .. })
    }

    /// Reads `arrivals.…`; `file` gives the text of a trace file by its path.
    pub fn read(value: &Value<'_>, file: &dyn Fn(&str) -> Result<String, String>) -> Option<Self> {
        let names = ["poisson", "even", "profile", "closed", "herd", "trace", "none"];
        let (name, contents) = value.choice(&names)?;
        if name == "none" {
            return Some(Arrivals::Trace([].into()));
        }
        let Some(contents) = contents else {
            value.fault(
                &format!("`{}` = \"{name}\" says no rate", value.path()),
                "without it nothing arrives",
                &format!("write arrivals.{name} = \"100/s\""),
            );
            return None;
        };
        match name {
            "poisson" => {
                contents.positive_rate().map(|rate| Arrivals::Poisson(Intensity::constant(rate)))
            }
            "even" => {
                contents.positive_rate().map(|rate| Arrivals::Even(Intensity::constant(rate)))
            }
            "profile" => Intensity::read(&contents).map(Arrivals::Poisson),
            "closed" => Self::read_closed(&contents),
            "herd" => Herd::read(&contents, file).map(Arrivals::Herd),
            _ => read_trace(&contents, file).map(Arrivals::Trace),
        }
    }

    fn read_closed(value: &Value<'_>) -> Option<Self> {
        let section = value.section()?;
        let clients =
            section.require("clients", "add clients = 100").and_then(|v| v.whole(1, 10_000_000));
        let think = section
            .require("think", "add think.exponential = \"1s\"")
            .and_then(|v| Self::read_think(&v));
        section.finish();
        Some(Arrivals::Closed { clients: clients? as u32, think: think? })
    }

    /// Time must pass in a closed loop, or a client whose calls fail at once would ask for ever in
    /// one instant.
    fn read_think(value: &Value<'_>) -> Option<Distribution> {
        let think = value.distribution()?;
        let mean = think.mean_seconds();
        if mean <= 0.0 || !mean.is_finite() {
            let why = "each client asks again after thinking, so its rate is one over that time";
            value.fault(
                &format!("the mean of `{}` must be finite and above zero", value.path()),
                why,
                "choose another length, such as think.exponential = \"1s\"",
            );
            return None;
        }
        Some(think)
    }

    /// The source that runs from the start to the end.
    pub fn source(&self) -> Source {
        let pattern = match self {
            Arrivals::Poisson(intensity) => {
                Pattern::Open { intensity: intensity.clone(), poisson: true }
            }
            Arrivals::Even(intensity) => {
                Pattern::Open { intensity: intensity.clone(), poisson: false }
            }
            Arrivals::Closed { clients, think } => {
                Pattern::Closed { clients: *clients, think: think.clone() }
            }
            Arrivals::Herd(herd) => Pattern::Herd(herd.clone()),
            Arrivals::Trace(times) => Pattern::Trace(times.clone()),
        };
        Source { pattern, from: Time::ZERO, until: Time::NEVER }
    }

    /// The extra source of a surge; `None` when the surge adds nothing.
    pub fn surge(&self, surge: Surge, from: Time, until: Time) -> Option<Source> {
        let pattern = match (surge, self) {
            (Surge::Burst { requests, over }, _) => Pattern::Burst { requests, over },
            (_, Arrivals::Closed { clients, think }) => {
                let extra = (f64::from(*clients) * (surge.top() - 1.0)).round();
                (extra >= 1.0)
                    .then(|| Pattern::Closed { clients: extra as u32, think: think.clone() })?
            }
            (_, Arrivals::Poisson(base)) => {
                Pattern::Open { intensity: base.extra(surge, from)?, poisson: true }
            }
            (_, Arrivals::Even(base)) => {
                Pattern::Open { intensity: base.extra(surge, from)?, poisson: false }
            }
            (_, Arrivals::Herd(_) | Arrivals::Trace(_)) => return None,
        };
        Some(Source { pattern, from, until })
    }

    /// Mean demand over the first `span` of the run [1/s]; for a closed loop the most that its
    /// clients can ask for.
    pub fn rate(&self, span: Span) -> f64 {
        match self {
            Arrivals::Poisson(intensity) | Arrivals::Even(intensity) => {
                intensity.integral(span.seconds()) / span.seconds()
            }
            Arrivals::Closed { clients, think } => f64::from(*clients) / think.mean_seconds(),
            Arrivals::Herd(herd) => f64::from(herd.clients()) / span.seconds(),
            Arrivals::Trace(times) => times.len() as f64 / span.seconds(),
        }
    }

    /// Number of client identities that the rule itself fixes.
    pub fn clients(&self) -> Option<u32> {
        match self {
            Arrivals::Closed { clients, .. } => Some(*clients),
            Arrivals::Herd(herd) => Some(herd.clients()),
            _ => None,
        }
    }

    /// As the list of assumptions says it.
    pub fn describe(&self) -> String {
        match self {
            Arrivals::Poisson(_) => "Poisson".into(),
            Arrivals::Even(_) => "evenly spaced".into(),
            Arrivals::Closed { clients, .. } => format!("a closed loop of {clients} clients"),
            Arrivals::Herd(herd) => herd.describe(),
            Arrivals::Trace(times) if times.is_empty() => "those of triggers alone".into(),
            Arrivals::Trace(times) => format!("a trace of {} requests", times.len()),
        }
    }
}

impl Surge {
    /// The factor at its height; 1 for a burst.
    pub fn top(self) -> f64 {
        match self {
            Surge::Step(factor) | Surge::Ramp { to: factor, .. } => factor,
            Surge::Burst { .. } => 1.0,
        }
    }

    /// Reads a factor, `{ to = 2.5, over = "30s" }` or `{ burst = 500, over = "1s" }`.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        if value.is_number() {
            return value.number_from(0.0, 1e6).map(Surge::Step);
        }
        if !value.is_section() {
            value.mistaken(
                "a factor, a ramp or a burst",
                "write 2.5, { to = 2.5, over = \"30s\" } or { burst = 500 }",
            );
            return None;
        }
        let section = value.section()?;
        let (to, burst) = (section.get("to"), section.get("burst"));
        // A burst may come all at once; a ramp without a length would be a step.
        let over = match (&burst, section.get("over")) {
            (_, Some(over)) => over.duration(),
            (Some(_), None) => Some(Span::ZERO),
            (None, None) if to.is_some() => section
                .require("over", "add over = \"30s\", or write the factor alone")
                .and_then(|v| v.duration()),
            (None, None) => None,
        };
        let known = section.finish();
        let surge = match (to, burst) {
            (Some(to), None) => {
                let to = to.number_above(1.0, 1e6);
                Surge::Ramp { to: to?, over: over? }
            }
            (None, Some(burst)) => {
                let requests = burst.whole(1, 1_000_000_000);
                Surge::Burst { requests: requests?, over: over? }
            }
            (None, None) if !known => return None,
            _ => {
                section.fault(
                    "a surge is either a ramp or a burst",
                    "`to` makes it a ramp, `burst` a number of requests",
                    "give { to = 2.5, over = \"30s\" } or { burst = 500, over = \"1s\" }",
                );
                return None;
            }
        };
        Some(surge)
    }
}

impl Source {
    /// The next request, or `None` when there is none any more. `timer` is the clock of a herd.
    ///
    /// `key` is the source's own: the n-th request of a source comes at the same instant in every
    /// run of one seed.
    #[inline(always)]
    pub fn next(
        &self,
        state: &mut SourceState,
        key: Key,
        timer: Option<Timer>,
    ) -> Option<Upcoming> {
        let number = state.issued;
        let request = key.child(number);
        state.issued += 1;
        let time = match &self.pattern {
            // The most frequent pattern, without a call.
            Pattern::Open { intensity, poisson: true } => {
                let gap: f64 = Exp1.sample(&mut request.stream(Purpose::Gap));
                state.cumulative += gap;
                intensity.reach(state)?
            }
            Pattern::Herd(herd) => {
                // Taken apart: as it stands it would have its place in memory, and so would the
                // request of a Poisson source, which else stays in registers.
                let Upcoming { time, key, client } = next_of_herd(herd, state, key, timer)?;
                return Some(Upcoming { time, key, client });
            }
            _ => self.instant(state, number)?,
        };
        (time < self.until).then_some(Upcoming { time, key: request, client: None })
    }

    #[inline(never)]
    fn instant(&self, state: &mut SourceState, number: u64) -> Option<Time> {
        match &self.pattern {
            Pattern::Open { intensity, .. } => {
                state.cumulative = (number + 1) as f64;
                intensity.reach(state)
            }
            Pattern::Burst { requests, over } => {
                let share = number as f64 / *requests as f64;
                (number < *requests).then(|| self.from + over.scaled(share))
            }
            Pattern::Trace(times) => times.get(number as usize).copied(),
            Pattern::Herd(_) | Pattern::Closed { .. } => None,
        }
    }

    /// Number of clients that go round in a closed loop; zero for open sources.
    pub fn loop_clients(&self) -> u32 {
        match self.pattern {
            Pattern::Closed { clients, .. } => clients,
            _ => 0,
        }
    }

    /// When a closed-loop client that is free at `now` asks again, or `None` when its source has
    /// ended.
    pub fn think(&self, now: Time, key: Key) -> Option<Time> {
        let Pattern::Closed { think, .. } = &self.pattern else {
            return None;
        };
        let time = now.max(self.from) + think.sample(&mut key.stream(Purpose::Think));
        (time < self.until).then_some(time)
    }
}

/// A request of a herd is keyed by its client, so that its draws are the same whoever comes before.
#[cold]
fn next_of_herd(
    herd: &Herd,
    state: &mut SourceState,
    key: Key,
    timer: Option<Timer>,
) -> Option<Upcoming> {
    if state.issued == 1 {
        state.firsts = herd.firsts(key);
        if let Some(timer) = timer {
            let on_time = |(time, client)| (timer.at(time, client), client);
            state.firsts = state.firsts.drain(..).map(on_time).collect();
            state.firsts.sort_unstable();
        }
    }
    let (time, client) = *state.firsts.get(state.issued as usize - 1)?;
    Some(Upcoming { time, key: key.child(u64::from(client)), client: Some(client) })
}

fn read_trace(
    value: &Value<'_>,
    file: &dyn Fn(&str) -> Result<String, String>,
) -> Option<Arc<[Time]>> {
    let path = value.text()?;
    let text = match file(path) {
        Ok(text) => text,
        Err(error) => {
            let what = format!("the trace file \"{path}\" cannot be read: {error}");
            value.fault(
                &what,
                "its instants are the arrivals",
                "give a path relative to the model file",
            );
            return None;
        }
    };
    let mut times = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        match line.parse::<f64>() {
            Ok(seconds) if (0.0..1e9).contains(&seconds) => {
                times.push(Time::ZERO + Span::from_seconds(seconds))
            }
            _ => {
                let what = format!("line {} of \"{path}\" is no instant: {line}", number + 1);
                value.fault(
                    &what,
                    "each line is one arrival, in seconds since the start",
                    "mend the line",
                );
                return None;
            }
        }
    }
    if times.windows(2).any(|pair| pair[0] > pair[1]) {
        value.fault(
            &format!("the instants in \"{path}\" fall"),
            "arrivals are read in order of time",
            "sort the file",
        );
        return None;
    }
    Some(times.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(source: &Source, until: f64) -> Vec<f64> {
        let (mut state, key) = (SourceState::default(), Key::root(5));
        std::iter::from_fn(|| source.next(&mut state, key, None).map(|upcoming| upcoming.time))
            .map(Time::seconds)
            .take_while(|&t| t < until)
            .collect()
    }

    fn even(rate: f64) -> Arrivals {
        Arrivals::Even(Intensity::constant(rate))
    }

    #[test]
    fn even_arrivals_come_at_equal_distances() {
        assert_eq!(instants(&even(4.0).source(), 1.1), [0.25, 0.5, 0.75, 1.0]);
    }

    #[test]
    fn a_surge_starts_and_ends_sharply() {
        let surge = even(10.0).surge(
            Surge::Step(3.0),
            Time::ZERO + Span::from_secs(5),
            Time::ZERO + Span::from_secs(6),
        );
        let times = instants(&surge.unwrap(), 100.0);
        assert_eq!(times.len(), 19);
        assert!(times[0] >= 5.0 && times[0] <= 5.051 && times[18] < 6.0);
    }

    #[test]
    fn a_ramp_brings_half_of_what_a_step_brings() {
        let ramp = Surge::Ramp { to: 2.0, over: Span::from_secs(10) };
        let source =
            even(1000.0).surge(ramp, Time::ZERO, Time::ZERO + Span::from_secs(10)).unwrap();
        let count = instants(&source, 100.0).len();
        assert!((4995..=5001).contains(&count), "{count}");
    }

    #[test]
    fn a_poisson_profile_brings_the_integral_of_its_rate() {
        let intensity =
            Intensity::through(&[(0.0, 100.0), (100.0, 300.0), (100.0, 50.0), (200.0, 50.0)]);
        let count = instants(&Arrivals::Poisson(intensity).source(), 200.0).len() as f64;
        let expected = 25_000.0f64;
        assert!((count - expected).abs() < 4.0 * expected.sqrt(), "{count}");
    }

    #[test]
    fn a_burst_brings_exactly_its_number() {
        let burst = Surge::Burst { requests: 500, over: Span::ZERO };
        let source = even(1.0).surge(burst, Time::ZERO + Span::from_secs(2), Time::NEVER).unwrap();
        assert_eq!(instants(&source, 9.0), vec![2.0; 500]);
    }

    #[test]
    fn a_factor_of_one_adds_nothing() {
        assert!(even(10.0).surge(Surge::Step(1.0), Time::ZERO, Time::NEVER).is_none());
    }
}
