//! Which of several retry policies to take, by what there is to spare.
//!
//! A policy is *sound* when every seed is stable under it, its users are served, and at most
//! [`LOST`] of them give up; no other is ever chosen. Means that lie within the interval of
//! the best are as good as the best: then the second measure decides.

use super::{Class, Trial};
use crate::measure::Estimate;
use crate::model::Policy;

/// Share of users that a sound policy may lose.
const LOST: f64 = 0.01;

const NONE_SOUND: &str = "none of the policies serves 99% of the users in every seed";

/// A policy and its trials.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// What it says.
    pub policy: Policy,
    /// Its runs, in order of seeds.
    pub trials: Vec<Trial>,
}

/// What is most dear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The users' time.
    Fastest,
    /// The peak at the server.
    LowestPeak,
    /// Requests sent.
    FewestSends,
}

/// What a team may say of its system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Situation {
    /// Every request above the capacity hurts.
    NoneToSpare,
    /// The users' time is what counts.
    UsersFirst,
    /// Refusals carry a Retry-After.
    ServerSpeaks,
    /// One number of the present policy may be changed, and nothing else.
    OneConstant,
}

/// The policy for a situation, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The situation.
    pub situation: Situation,
    /// Place of the policy among the standings.
    pub policy: Result<usize, &'static str>,
}

impl Goal {
    /// All of them.
    pub const ALL: [Goal; 3] = [Goal::Fastest, Goal::LowestPeak, Goal::FewestSends];

    /// As the command line and JSON name it.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Fastest => "fastest",
            Goal::LowestPeak => "peak",
            Goal::FewestSends => "sends",
        }
    }
}

impl Situation {
    /// All of them.
    pub const ALL: [Situation; 4] = [
        Situation::NoneToSpare,
        Situation::UsersFirst,
        Situation::ServerSpeaks,
        Situation::OneConstant,
    ];

    /// As a team says it.
    pub fn title(self) -> &'static str {
        match self {
            Situation::NoneToSpare => "the server has no capacity to spare",
            Situation::UsersFirst => "users first",
            Situation::ServerSpeaks => "the server can send Retry-After",
            Situation::OneConstant => "change one constant",
        }
    }

    /// As JSON names it.
    pub fn name(self) -> &'static str {
        match self {
            Situation::NoneToSpare => "none_to_spare",
            Situation::UsersFirst => "users_first",
            Situation::ServerSpeaks => "server_speaks",
            Situation::OneConstant => "one_constant",
        }
    }
}

impl Standing {
    /// Mean time until the users are served, where they are in every seed.
    pub fn time_s(&self) -> Option<Estimate> {
        let times: Option<Vec<f64>> = self.trials.iter().map(|trial| trial.time_s).collect();
        Estimate::of(&times?)
    }

    /// The mean of a figure over the seeds that have it.
    pub fn mean(&self, figure: impl Fn(&Trial) -> Option<f64>) -> Option<Estimate> {
        Estimate::of(&self.trials.iter().filter_map(figure).collect::<Vec<f64>>())
    }

    /// Mean of the highest rate of sends.
    pub fn peak_per_s(&self) -> Option<Estimate> {
        self.mean(|trial| Some(trial.peak_per_s))
    }

    /// Mean number of sends.
    pub fn sent(&self) -> Option<Estimate> {
        self.mean(|trial| Some(trial.sent))
    }

    /// Mean share of users lost.
    pub fn lost_share(&self) -> Option<Estimate> {
        self.mean(|trial| Some(trial.lost_share))
    }

    fn is_sound(&self) -> bool {
        let well = self.trials.iter().all(|trial| trial.class == Class::Stable);
        let served = self.time_s().is_some();
        well && served && self.lost_share().is_some_and(|lost| lost.mean <= LOST)
    }

    /// The measure of a goal; never is the worst of all.
    fn measure(&self, goal: Goal) -> Estimate {
        let figure = match goal {
            Goal::Fastest => self.time_s(),
            Goal::LowestPeak => self.peak_per_s(),
            Goal::FewestSends => self.sent(),
        };
        figure.unwrap_or(Estimate { mean: f64::INFINITY, half_width: None, seeds: 0 })
    }
}

/// The standings in order of a goal, the best first; those that lose users, or never serve them,
/// last.
pub fn ranked(standings: &[Standing], goal: Goal) -> Vec<usize> {
    let mut order: Vec<usize> = (0..standings.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&standings[a], &standings[b]);
        let sound = b.is_sound().cmp(&a.is_sound());
        sound.then_with(|| a.measure(goal).mean.total_cmp(&b.measure(goal).mean))
    });
    order
}

/// The choice for each situation, among sound policies. `present` is the policy that the model
/// has; `speaks` whether its refusals carry a Retry-After.
pub fn choices(standings: &[Standing], present: &Policy, speaks: bool) -> Vec<Choice> {
    let best = |goals, fits: &dyn Fn(&Standing) -> bool, none: [&'static str; 2]| {
        let fitting = || (0..standings.len()).filter(|&index| fits(&standings[index]));
        let sound: Vec<usize> = fitting().filter(|&index| standings[index].is_sound()).collect();
        match fitting().next() {
            None => Err(none[0]),
            Some(_) => best(standings, sound, goals).ok_or(none[1]),
        }
    };
    let spare = [Goal::LowestPeak, Goal::FewestSends];
    let users = [Goal::Fastest, Goal::LowestPeak];
    let choose = |situation| match situation {
        Situation::NoneToSpare => best(spare, &|_| true, [NONE_SOUND; 2]),
        Situation::UsersFirst => best(users, &|_| true, [NONE_SOUND; 2]),
        Situation::ServerSpeaks if !speaks => {
            Err("no refusal of the model carries one; add refusal = { retry_after = \"30s\" }")
        }
        Situation::ServerSpeaks => best(
            users,
            &|standing| standing.policy.heeds_retry_after(),
            [
                "none of the policies heeds it",
                "none of those that heed it serves 99% of the users in every seed",
            ],
        ),
        Situation::OneConstant => best(
            users,
            &|standing| standing.policy.differences(present) == 1,
            [
                "none of the policies differs from the model's own in one number alone",
                "none of those that differ from the model's own in one number alone serves 99% of \
                 the users in every seed",
            ],
        ),
    };
    let choice = |situation| Choice { situation, policy: choose(situation) };
    Situation::ALL.into_iter().map(choice).collect()
}

/// The best by the first goal; of those within its interval, the best by the second.
fn best(standings: &[Standing], among: Vec<usize>, goals: [Goal; 2]) -> Option<usize> {
    let [first, second] = goals;
    let least = |candidates: &[usize], goal| {
        let measure = |index: &usize| standings[*index].measure(goal).mean;
        candidates.iter().copied().min_by(|a, b| measure(a).total_cmp(&measure(b)))
    };
    let top = standings[least(&among, first)?].measure(first);
    let reach = top.mean + top.half_width.unwrap_or(0.0);
    let equals: Vec<usize> =
        among.into_iter().filter(|&index| standings[index].measure(first).mean <= reach).collect();
    least(&equals, second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Span;
    use crate::mechanism::retry::{Backoff, Heed, Jitter};

    fn policy(cap: u64, retry_after: Heed) -> Policy {
        let (base, cap) = (Span::from_secs(2), Span::from_secs(cap));
        let mut policy = Policy::default();
        policy.retry.attempts = 100;
        policy.retry.backoff =
            Backoff::Exponential { base, factor: 2.0, cap, jitter: Jitter::None };
        policy.retry.retry_after = retry_after;
        policy
    }

    fn standing(name: &str, time_s: Option<f64>, peak_per_s: f64, policy: Policy) -> Standing {
        let trial = |off: f64| Trial {
            seed: 1,
            class: Class::Stable,
            time_s: time_s.map(|time| time + off),
            half_s: None,
            sent: 10.0 * peak_per_s,
            peak_per_s: peak_per_s + off,
            lost_share: 0.0,
            attempts_p99: None,
            backoff_max: 0.0,
        };
        Standing { name: name.into(), policy, trials: vec![trial(0.5), trial(-0.5)] }
    }

    fn contest() -> Vec<Standing> {
        vec![
            standing("slow", Some(500.0), 1200.0, policy(60, Heed::Ignore)),
            standing("never", None, 100.0, policy(300, Heed::Ignore)),
            standing("gentle", Some(85.0), 150.0, policy(61, Heed::Ignore)),
            standing("told", Some(61.0), 1200.0, policy(60, Heed::FullJitter)),
        ]
    }

    #[test]
    fn each_situation_has_its_policy() {
        let all = contest();
        let chosen: Vec<_> =
            choices(&all, &all[0].policy, true).into_iter().map(|choice| choice.policy).collect();
        assert_eq!(chosen, [Ok(2), Ok(3), Ok(3), Ok(2)]);
    }

    #[test]
    fn without_a_retry_after_nothing_is_chosen_for_it() {
        let all = contest();
        assert!(choices(&all, &all[0].policy, false)[2].policy.is_err());
    }

    #[test]
    fn who_never_serves_everybody_comes_last_by_every_goal() {
        let all = contest();
        for goal in Goal::ALL {
            assert_eq!(ranked(&all, goal).last(), Some(&1), "{goal:?}");
        }
        assert_eq!(ranked(&all, Goal::Fastest), [3, 2, 0, 1]);
    }

    #[test]
    fn equal_means_are_told_apart_by_the_second_goal() {
        let all = vec![
            standing("loud", Some(60.0), 900.0, policy(60, Heed::Ignore)),
            standing("calm", Some(61.0), 300.0, policy(61, Heed::Ignore)),
        ];
        assert_eq!(choices(&all, &all[0].policy, true)[1].policy, Ok(1));
    }
}
