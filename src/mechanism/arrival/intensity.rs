//! The rate of an open source as it changes with time, and the instant at which its integral
//! reaches a number.

use super::{SourceState, Surge};
use crate::document::Value;
use crate::kernel::{Span, Time};

/// A rate that changes with time: straight lines between points, constant before the first and
/// after the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Intensity {
    /// (seconds, rate [1/s], Λ up to here).
    pub(super) points: Vec<(f64, f64, f64)>,
}

impl Intensity {
    /// The same rate for ever.
    pub fn constant(rate: f64) -> Self {
        Intensity { points: vec![(0.0, rate, 0.0)] }
    }

    /// Reads `[{ at = "0s", rate = "100/s" }, …]`; two points at one instant make a step.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        let items = value.list()?;
        let points: Vec<Option<(f64, f64)>> = items
            .iter()
            .map(|item| {
                let section = item.section()?;
                let at = section.require("at", "add at = \"5m\"").and_then(|v| v.duration());
                let rate = section.require("rate", "add rate = \"100/s\"").and_then(|v| v.rate());
                section.finish();
                Some((at?.seconds(), rate?))
            })
            .collect();
        let points: Vec<(f64, f64)> = points.into_iter().collect::<Option<_>>()?;
        if let Some(index) = points.windows(2).position(|pair| pair[0].0 > pair[1].0) {
            let what = format!("the points of `{}` do not rise in time", value.path());
            let why = "a profile is read from left to right, and this point lies before the last";
            items[index + 1].fault(&what, why, "order the points by `at`");
            return None;
        }
        if points.iter().all(|point| point.1 <= 0.0) {
            value.fault(
                "the profile is zero everywhere",
                "nothing would arrive",
                "give at least one rate",
            );
            return None;
        }
        Some(Self::through(&points))
    }

    pub(super) fn through(points: &[(f64, f64)]) -> Self {
        let mut cumulative = points[0].0 * points[0].1;
        let mut all = vec![(0.0, points[0].1, 0.0), (points[0].0, points[0].1, cumulative)];
        for pair in points.windows(2) {
            cumulative += (pair[1].0 - pair[0].0) * f64::midpoint(pair[0].1, pair[1].1);
            all.push((pair[1].0, pair[1].1, cumulative));
        }
        Intensity { points: all }
    }

    /// λ at an instant [1/s].
    pub(super) fn at(&self, seconds: f64) -> f64 {
        let after = self.points.partition_point(|point| point.0 <= seconds);
        match (after.checked_sub(1).map(|i| self.points[i]), self.points.get(after)) {
            (Some((t0, r0, _)), Some((t1, r1, _))) => r0 + (r1 - r0) * (seconds - t0) / (t1 - t0),
            (Some((_, rate, _)), None) => rate,
            (None, _) => self.points[0].1,
        }
    }

    /// Λ at an instant: expected arrivals until then.
    pub(super) fn integral(&self, seconds: f64) -> f64 {
        let after = self.points.partition_point(|point| point.0 <= seconds).max(1);
        let (t0, r0, before) = self.points[after - 1];
        before + (seconds - t0) * f64::midpoint(r0, self.at(seconds))
    }

    /// What a surge adds from `from` on: (factor(t) − 1) · λ(t).
    pub(super) fn extra(&self, surge: Surge, from: Time) -> Option<Intensity> {
        // Within a ramp the product of two straight lines bends; this many pieces keep it within
        // 0.1 %.
        const PIECES: u32 = 32;
        if surge.top() <= 1.0 {
            return None;
        }
        let start = from.seconds();
        let rise = match surge {
            Surge::Ramp { over, .. } => over.seconds(),
            _ => 0.0,
        };
        let mut instants: Vec<f64> =
            self.points.iter().map(|p| p.0).filter(|t| *t > start).collect();
        instants.extend((0..=PIECES).map(|i| start + rise * f64::from(i) / f64::from(PIECES)));
        instants.sort_by(f64::total_cmp);
        instants.dedup();
        let factor = |t: f64| if rise > 0.0 { ((t - start) / rise).min(1.0) } else { 1.0 };
        let added = |t: f64| (surge.top() - 1.0) * factor(t) * self.at(t);
        let mut points = vec![(0.0, 0.0), (start, 0.0)];
        points.extend(instants.iter().map(|&t| (t, added(t))));
        Some(Self::through(&points))
    }

    /// The instant at which Λ reaches the state's cumulative count; `None` when it never does.
    #[inline(always)]
    pub(super) fn reach(&self, state: &mut SourceState) -> Option<Time> {
        let seconds = match &self.points[state.segment..] {
            // Nothing to look for and no slope after the last point, where most of a run lies.
            [(t0, rate, before)] => t0 + (state.cumulative - before) / rate,
            _ => self.reach_between(state),
        };
        seconds.is_finite().then(|| Time::ZERO + Span::from_seconds(seconds))
    }

    /// The same (s), while there may be a point to come; infinite or NaN where Λ never gets there.
    #[inline(never)]
    fn reach_between(&self, state: &mut SourceState) -> f64 {
        while self.points.get(state.segment + 1).is_some_and(|next| next.2 <= state.cumulative) {
            state.segment += 1;
        }
        let (t0, r0, before) = self.points[state.segment];
        let needed = state.cumulative - before;
        let slope =
            self.points.get(state.segment + 1).map_or(0.0, |&(t1, r1, _)| (r1 - r0) / (t1 - t0));
        let elapsed = if slope == 0.0 {
            needed / r0
        } else {
            // needed = r0·s + slope·s²/2, in the form that stays exact for a small slope.
            2.0 * needed / (r0 + (r0 * r0 + 2.0 * slope * needed).max(0.0).sqrt())
        };
        t0 + elapsed
    }
}
