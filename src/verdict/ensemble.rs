//! Many seeds judged together: what is kept of each replication, and what they say in common.
//!
//! The class of an ensemble is that of its replications where they agree. Where they do not, the
//! question is how likely the bad end is, and the answer a probability with its exact interval; so
//! the ensemble is undecided then, however few dissent.

use super::sentence::{percent, seconds};
use super::{Class, Expectation, HerdFigures, Phase, Verdict};
use super::{herd_figures, hold_against, phases, tier_figures};
use crate::kernel::Span;
use crate::measure::{Estimate, Record, Share, TierFigures};
use crate::model::Model;

/// What is kept of a run once it is judged: nothing that grows with its length.
#[derive(Clone, Debug)]
pub struct Replication {
    /// Its seed.
    pub seed: u64,
    /// Its verdict.
    pub class: Class,
    /// From the end of the last trigger to the start of the first healthy stretch.
    pub recovery_time: Option<Span>,
    /// Its verdict in words.
    pub sentence: String,
    /// At the end of the run, attempts for each user request at the tier that suffers most.
    pub amplification: Option<f64>,
    /// By tier, what became of its herd, where it has one.
    pub herds: Vec<Option<HerdFigures>>,
    /// Expectations of the model, and what came of them.
    pub expectations: Vec<Expectation>,
    /// The phases, with the figures of all tiers in the order of the model.
    pub phases: Vec<(Phase, Vec<TierFigures>)>,
}

/// What replications say in common.
#[derive(Clone, Debug)]
pub struct Consensus {
    /// The class of all of them, or undecided.
    pub class: Class,
    /// How many had each class.
    pub counts: [(Class, u64); Class::ALL.len()],
    /// How many are metastable, and with what probability the system so is.
    pub metastable: Share,
    /// Mean recovery time (s) of those that are stable after a trigger.
    pub recovery_time: Option<Estimate>,
    /// All this in words.
    pub sentence: String,
}

impl Replication {
    /// What is kept of a judged run.
    pub fn of(model: &Model, record: &Record, verdict: &Verdict) -> Self {
        let phases = phases(model, record);
        let figures = |phase: &Phase| {
            model.tier_ids().map(|tier| tier_figures(model, record, tier, phase)).collect()
        };
        Replication {
            seed: record.seed,
            class: verdict.class,
            recovery_time: verdict.recovery_time,
            sentence: verdict.sentence.clone(),
            amplification: verdict.evidence.amplification,
            herds: model.tier_ids().map(|tier| herd_figures(model, record, tier)).collect(),
            expectations: hold_against(model, record, verdict, &phases),
            phases: phases.into_iter().map(|phase| (phase.clone(), figures(&phase))).collect(),
        }
    }

    /// Recovery time (s) of a run that recovered and stayed well.
    pub fn recovered_s(&self) -> Option<f64> {
        self.recovery_time.filter(|_| self.class == Class::Stable).map(Span::seconds)
    }

    /// User requests answered well at the end of the run [1/s], those of all clients together.
    pub fn goodput_per_s(&self, model: &Model) -> Option<f64> {
        let (_, tiers) = self.phases.iter().find(|(phase, _)| phase.name == "end")?;
        let clients = model.tiers.iter().zip(tiers).filter(|(tier, _)| tier.is_client());
        clients.map(|(_, figures)| figures.goodput_per_s).sum()
    }
}

impl Consensus {
    /// What replications of one model say in common.
    pub fn of(replications: &[Replication]) -> Self {
        let count = |class| replications.iter().filter(|run| run.class == class).count() as u64;
        let counts = Class::ALL.map(|class| (class, count(class)));
        let all = replications.len() as u64;
        let agreed = counts.iter().find(|(_, count)| *count == all && all > 0);
        let class = agreed.map_or(Class::Undecided, |(class, _)| *class);
        let recovered: Vec<f64> =
            replications.iter().filter_map(Replication::recovered_s).collect();
        let mut consensus = Consensus {
            class,
            counts,
            metastable: Share::of(count(Class::Metastable), all),
            recovery_time: Estimate::of(&recovered),
            sentence: String::new(),
        };
        consensus.sentence = consensus.in_words(agreed.is_some());
        consensus
    }

    fn in_words(&self, agreed: bool) -> String {
        let (all, title) = (self.metastable.of, self.class.title());
        let range = format!(
            "between {} and {} (95% interval)",
            percent(Some(self.metastable.low)),
            percent(Some(self.metastable.high)),
        );
        if all == 0 {
            return "Undecided: not one seed was run to its end.".into();
        }
        if !agreed {
            let there = self.counts.iter().rev().filter(|(_, count)| *count > 0);
            let each: Vec<String> =
                there.map(|(class, count)| format!("{count} are {}", class.name())).collect();
            let unsure = self.counts.contains(&(Class::Undecided, 0));
            let unsure = if unsure { "" } else { ", the undecided counted as not" };
            return format!(
                "Undecided, since the seeds disagree: of {all}, {}. The probability of metastable \
                 is {}, {range}{unsure}.{}",
                listed(&each),
                percent(self.metastable.share),
                self.recovery_in_words()
            );
        }
        let with = if all == 1 { "the only seed".into() } else { format!("each of {all} seeds") };
        let whose = match self.class {
            Class::Metastable => "its probability",
            // What each alone leaves open has no probability yet.
            Class::Undecided => return format!("{title} with {with}."),
            _ => "the probability of metastable",
        };
        format!("{title} with {with}; {whose} lies {range}.{}", self.recovery_in_words())
    }

    fn recovery_in_words(&self) -> String {
        let Some(Estimate { mean, half_width, seeds: recovered }) = self.recovery_time else {
            return String::new();
        };
        if mean == 0.0 {
            return " Recovery is immediate.".into();
        }
        let mean = seconds(Some(mean));
        let spread =
            half_width.map_or(String::new(), |width| format!(" ± {}", seconds(Some(width))));
        let whose = if recovered < self.metastable.of { " of the stable ones" } else { "" };
        format!(" The recovery time{whose} is {mean}{spread}.")
    }
}

/// "a, b and c".
fn listed(words: &[String]) -> String {
    match words {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replication(class: Class, recovery_s: Option<u64>) -> Replication {
        Replication {
            seed: 1,
            class,
            recovery_time: recovery_s.map(Span::from_secs),
            sentence: String::new(),
            amplification: None,
            herds: Vec::new(),
            expectations: Vec::new(),
            phases: Vec::new(),
        }
    }

    #[test]
    fn seeds_that_agree_have_their_class() {
        let same = vec![replication(Class::Metastable, None); 8];
        let consensus = Consensus::of(&same);
        assert_eq!(consensus.class, Class::Metastable);
        assert_eq!(
            consensus.sentence,
            "Metastable with each of 8 seeds; its probability lies between 63.1% and 100% (95% \
             interval)."
        );
    }

    #[test]
    fn seeds_that_disagree_are_undecided_with_a_probability() {
        let mut mixed = vec![replication(Class::Metastable, Some(99)); 3];
        mixed.push(replication(Class::Stable, Some(10)));
        mixed.push(replication(Class::Stable, Some(20)));
        let consensus = Consensus::of(&mixed);
        assert_eq!(consensus.class, Class::Undecided);
        assert_eq!(consensus.metastable.share, Some(0.6));
        // A relapse is no recovery: the mean is that of the stable ones.
        assert_eq!(consensus.recovery_time.map(|time| (time.mean, time.seeds)), Some((15.0, 2)));
        assert_eq!(
            consensus.sentence,
            "Undecided, since the seeds disagree: of 5, 3 are metastable and 2 are stable. \
             The probability of metastable is 60%, between 14.7% and 94.7% (95% interval). The \
             recovery time of the stable ones is 15 s ± 64 s."
        );
    }

    #[test]
    fn what_every_seed_leaves_open_has_no_probability() {
        let consensus = Consensus::of(&[replication(Class::Undecided, None)]);
        assert_eq!(consensus.sentence, "Undecided with the only seed.");
        let mixed = [replication(Class::Undecided, None), replication(Class::Metastable, None)];
        let sentence = Consensus::of(&mixed).sentence;
        assert!(sentence.contains("the undecided counted as not"), "{sentence}");
    }

    #[test]
    fn without_any_seed_nothing_is_decided() {
        let consensus = Consensus::of(&[]);
        assert_eq!((consensus.class, consensus.metastable.share), (Class::Undecided, None));
    }
}
