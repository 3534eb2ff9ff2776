//! The plot of a herd: above, how hard its clients hit the server; below, how many are through.
//!
//! Clients that come back together do so within one window, and a long run has more windows than a
//! picture has columns. So a bar shows the worst window of its stretch, and a line the mean of a
//! longer one: the mean alone would hide the hit, the bars alone how little work there is.

use std::ops::Range;

use plotters::style::RGBColor;

use super::axis::{Clock, Scale, count_text, duration_text, number};
use super::canvas::{Chart, Curve, Mark, Pair, Story};
use super::charts::{
    BLACK, BLUE, GREEN, MOST_POINTS, Points, VERMILLION, dashed, middle, pale, seconds, solid,
    story, stretches,
};
use super::paper::Pen;
use crate::document::TierId;
use crate::kernel::Time;
use crate::measure::herd::SHARES;
use crate::measure::{Herd, Record};
use crate::model::Model;

/// Means over so many stretches are smooth enough to be held against a capacity.
const MEAN_POINTS: usize = 160;

/// How much of the time is shown after the last client is through, as a share of it.
const AFTER: f64 = 0.05;

/// The shares that are marked, the first of those that are timed.
const MARKS: usize = 3;

/// Sends beyond so many times the capacity leave too little of a straight axis for the rest.
const STEEP: f64 = 4.0;

/// Lighter than the line before them, and darker than the shade of a trigger.
const BARS: RGBColor = RGBColor(0xee, 0xb0, 0x80);

/// A herd in a record, and how much of the record is shown.
pub struct HerdSource<'a> {
    model: &'a Model,
    record: &'a Record,
    tier: TierId,
    herd: &'a Herd,
    clock: Clock,
    story: Story,
    /// By window, those that are shown.
    sends: Vec<u64>,
    good: Vec<u64>,
    backoff_area: Vec<f64>,
}

impl<'a> HerdSource<'a> {
    /// The herd of a tier, if it is one and something is recorded.
    pub fn new(model: &'a Model, record: &'a Record, tier: TierId) -> Option<Self> {
        let herd = record.herds.get(tier.index())?.as_ref()?;
        let begin = record.windows.first()?.from.seconds();
        let edges: Vec<_> = model.edge_ids().filter(|&e| model.edge(e).caller == tier).collect();
        let rows = |window: usize| edges.iter().map(move |e| &record.edges[e.index()][window]);
        let all = record.windows.len();
        let mut sends: Vec<u64> = (0..all).map(|w| rows(w).map(|r| r.attempts).sum()).collect();
        let mut backoff_area: Vec<f64> =
            (0..all).map(|w| rows(w).map(|r| r.backoff_area).sum()).collect();
        let mut good: Vec<u64> = record.tiers[tier.index()].iter().map(|row| row.good).collect();
        let stirs = |w: &usize| sends[*w] > 0 || good[*w] > 0 || backoff_area[*w] > 0.0;
        let settled = herd.through + herd.lost == herd.clients;
        let last = if settled { (0..all).rev().find(stirs) } else { None };
        let last = record.windows[last.unwrap_or(all - 1)].to.seconds();
        let end = begin + (last - begin) * (1.0 + AFTER);
        let shown = record.windows.partition_point(|window| window.from.seconds() < end).max(1);
        sends.truncate(shown);
        good.truncate(shown);
        backoff_area.truncate(shown);
        let clock = Clock::seconds(begin..record.windows[shown - 1].to.seconds());
        let story = story(model, record, &clock.range);
        Some(HerdSource { model, record, tier, herd, clock, story, sends, good, backoff_area })
    }

    /// The name of its tier.
    pub fn tier_name(&self) -> &str {
        self.model.names.tier_name(self.tier)
    }

    /// Both charts.
    pub fn pair(&self) -> Pair<'_> {
        Pair { upper: self.load(), lower: self.progress() }
    }

    fn load(&self) -> Chart<'_> {
        let sends = self.envelope(&self.sends, MOST_POINTS);
        let most: Points = sends.iter().map(|&(at, most, _)| (at, Some(most))).collect();
        let mean = |counts| -> Points {
            let envelope = self.envelope(counts, MEAN_POINTS);
            envelope.iter().map(|&(at, _, mean)| (at, Some(mean))).collect()
        };
        let top = sends.iter().map(|&(_, most, _)| most).fold(0.0, f64::max);
        let capacity = self.capacity().filter(|(rate, _)| *rate < STEEP * top);
        let scale = self.scale(top, capacity.map(|(rate, _)| rate));

        let windows = self.sends.len();
        let length = |most| {
            let stretch = stretches(windows, most).into_iter().next().unwrap_or(0..1);
            seconds(self.record, &stretch)
        };
        let window = duration_text(self.model.run.window.seconds());
        let over = duration_text(length(MEAN_POINTS));
        let bars = Pen { colour: BARS, width: 6.0, dash: 0.0 };
        // Where all sends are answered both means are the same: the wider one shows on both sides.
        let sends_pen = Pen { width: 3.0, ..solid(VERMILLION) };
        let mut lines = vec![
            (format!("sends, most in a window of {window}"), bars, most),
            (format!("sends, mean over {over}"), sends_pen, mean(&self.sends)),
            (format!("goodput, mean over {over}"), solid(GREEN), mean(&self.good)),
        ];
        if let Some((rate, name)) = capacity {
            let ends = [self.clock.range.start, self.clock.range.end];
            let line = ends.map(|at| (at, Some(rate))).to_vec();
            lines.push((
                format!("{name} {}/s", count_text(rate, 0)),
                dashed(BLACK, 1.7, 9.0),
                line,
            ));
        }
        let mut chart = self.chart("sends per second [1/s]", scale, lines);
        chart.curves[0].bar_s = length(MOST_POINTS);
        chart.marks.extend(self.peak());
        chart
    }

    /// Logarithmic where what the server can do would otherwise lie flat at the foot. One send in
    /// a window is then the least that is told from none.
    fn scale(&self, top: f64, capacity: Option<f64>) -> Scale {
        match capacity {
            Some(rate) if top > STEEP * rate => {
                let least = 1.0 / self.model.run.window.seconds();
                Scale::log([0.0, least.min(rate), 1.3 * top].into_iter(), 0.0)
            }
            _ => Scale::linear(capacity.map_or(top, |rate| rate.max(top))),
        }
    }

    fn progress(&self) -> Chart<'_> {
        let clients = self.herd.clients as f64;
        let recorded: u64 = self.record.tiers[self.tier.index()].iter().map(|row| row.good).sum();
        // Those that came through before the first window.
        let mut through = self.herd.through.saturating_sub(recorded);
        let mut line: Points = vec![(self.clock.range.start, Some(through as f64 / clients))];
        let mut backoff = Points::new();
        for stretch in stretches(self.good.len(), MOST_POINTS) {
            through += self.good[stretch.clone()].iter().sum::<u64>();
            let end = self.record.windows[stretch.end - 1].to.seconds();
            line.push((end, Some(through as f64 / clients)));
            let area: f64 = self.backoff_area[stretch.clone()].iter().sum();
            let mean = area / seconds(self.record, &stretch);
            backoff.push((middle(self.record, &stretch), Some(mean / clients)));
        }
        let light = Pen { width: 2.0, ..pale(BLUE) };
        let through_pen = Pen { width: 3.0, ..solid(GREEN) };
        let lines = vec![
            ("clients in back-off".to_owned(), light, backoff),
            ("clients that are through".to_owned(), through_pen, line),
        ];
        let scale = Scale::Linear { top: 1.0, step: 0.25 };
        let mut chart = self.chart("share of clients", scale, lines);
        chart.tick_text = |share, _| format!("{}%", number(100.0 * share, 0));
        chart.marks = self.milestones();
        chart
    }

    fn chart(
        &self,
        measures: &'static str,
        scale: Scale,
        lines: Vec<(String, Pen, Points)>,
    ) -> Chart<'_> {
        let stopped = if self.record.interrupted { ", stopped early" } else { "" };
        let clients = number(self.herd.clients as f64, 0);
        Chart {
            title: &self.model.title,
            subtitle: format!(
                "{clients} clients of tier {}: what they send, who is through · seed {}{stopped}",
                self.tier_name(),
                self.record.seed
            ),
            measures,
            scale,
            tick_text: count_text,
            clock: &self.clock,
            story: &self.story,
            legend: lines.iter().map(|(name, pen, _)| (name.clone(), *pen)).collect(),
            curves: lines.into_iter().map(|(_, pen, line)| Curve::line(pen, line)).collect(),
            marks: Vec::new(),
        }
    }

    /// Middle (s), most and mean rate of each stretch.
    fn envelope(&self, counts: &[u64], points: usize) -> Vec<(f64, f64, f64)> {
        let length = |window: usize| seconds(self.record, &(window..window + 1));
        let stretches = stretches(counts.len(), points);
        let rates = envelope(counts, length, &stretches);
        let middles = stretches.iter().map(|stretch| middle(self.record, stretch));
        middles.zip(rates).map(|(at, (most, mean))| (at, most, mean)).collect()
    }

    /// The window with the most sends after the trigger, or of all where no trigger ends in time.
    fn peak(&self) -> Option<Mark> {
        let end = self.model.trigger_span().map_or(Time::ZERO, |(_, end)| end);
        let windows = &self.record.windows[..self.sends.len()];
        let after = windows.partition_point(|window| window.from < end);
        let after = if after < windows.len() { after } else { 0 };
        let rate = |w: usize| self.sends[w] as f64 / seconds(self.record, &(w..w + 1));
        let worst = (after..windows.len()).reduce(|a, b| if rate(b) > rate(a) { b } else { a })?;
        let text = format!("peak {}/s", number(rate(worst), 0));
        let at = middle(self.record, &(worst..worst + 1));
        Some(Mark { at, value: rate(worst), text, colour: VERMILLION })
    }

    fn milestones(&self) -> Vec<Mark> {
        let reached = SHARES.iter().zip(self.herd.times).take(MARKS);
        let reached = reached.filter_map(|(&share, at)| Some((share, at?.seconds())));
        let mark = |(share, at): (f64, f64)| {
            let places = usize::from(at < 100.0);
            let text = format!("{}% at {} s", number(100.0 * share, 0), number(at, places));
            Mark { at, value: share, text, colour: GREEN }
        };
        reached.map(mark).collect()
    }

    /// What the only tier that the herd calls can do, and what sets it.
    fn capacity(&self) -> Option<(f64, &'static str)> {
        let own = self.model.edges.iter().filter(|edge| edge.caller == self.tier);
        let mut callees: Vec<TierId> = own.map(|edge| edge.callee).collect();
        callees.dedup();
        let [callee] = callees[..] else { return None };
        let limit = self.model.tier(callee).admission.map(|rule| (rule.rate, "rate limit"));
        let servers = self.model.capacity(callee).map(|rate| (rate, "capacity"));
        limit.into_iter().chain(servers).reduce(|a, b| if b.0 < a.0 { b } else { a })
    }
}

/// Most and mean of the rates in each stretch of windows, from their counts and lengths (s).
fn envelope(
    counts: &[u64],
    length: impl Fn(usize) -> f64,
    stretches: &[Range<usize>],
) -> Vec<(f64, f64)> {
    let rates = |stretch: &Range<usize>| {
        let windows = || stretch.clone();
        let most = windows().map(|w| counts[w] as f64 / length(w)).fold(0.0, f64::max);
        let sum: u64 = counts[windows()].iter().sum();
        (most, sum as f64 / windows().map(&length).sum::<f64>())
    };
    stretches.iter().map(rates).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Simulation;

    const HERD: &str = r#"
        title = "A herd"
        run = { duration = "20m", window = "100ms" }
        [tier.client]
        arrivals.herd = { clients = 500, over = "1s" }
        [tier.client.call.api]
        attempts = 100
        backoff.exponential = { base = "1s", cap = "20s" }
        [tier.api]
        admission = { permits = 5, every = "100ms" }
        [[trigger]]
        at = "0s"
        lasts = "10s"
        down = { api = "fail" }
    "#;

    fn with_herd(test: impl FnOnce(&HerdSource<'_>)) {
        let model = Model::parse(HERD, &|_| Err("no file".into())).expect("sound");
        let record = Simulation::new(&model, 1, 0.0).run(&mut ());
        test(&HerdSource::new(&model, &record, TierId(0)).expect("a herd"));
    }

    #[test]
    fn an_envelope_keeps_the_peak_and_the_sum() {
        let mut counts = vec![1; 12_000];
        counts[7_777] = 119;
        let stretches = stretches(counts.len(), MOST_POINTS);
        let rates = envelope(&counts, |_| 0.1, &stretches);
        let most = rates.iter().map(|(most, _)| *most).fold(0.0, f64::max);
        let sum: f64 =
            rates.iter().zip(&stretches).map(|((_, mean), s)| mean * 0.1 * s.len() as f64).sum();
        assert!((most - 1_190.0).abs() < 1e-9 && (sum - 12_118.0).abs() < 1e-6, "{most} {sum}");
        assert!(rates.len() <= MOST_POINTS);
    }

    #[test]
    fn the_axis_ends_a_little_after_the_last_client() {
        with_herd(|herd| {
            let all = herd.herd.times[3].expect("all are through").seconds();
            let end = herd.clock.range.end;
            assert!(all < end && end < 1.1 * all, "{all} {end}");
            assert_eq!(herd.sends.len(), herd.good.len());
        });
    }

    #[test]
    fn the_share_through_ends_at_one_and_its_marks_lie_on_the_curve() {
        with_herd(|herd| {
            let chart = herd.progress();
            let line = &chart.curves[1].points;
            assert_eq!(line.last().and_then(|&(_, share)| share), Some(1.0));
            assert_eq!(chart.marks.len(), 3);
            for mark in &chart.marks {
                let after = line.iter().find(|(at, _)| *at >= mark.at).and_then(|p| p.1);
                assert!(after.expect("within") >= mark.value - 1e-9, "{mark:?}");
            }
        });
    }

    #[test]
    fn the_mark_of_the_peak_is_the_highest_bar_after_the_trigger() {
        with_herd(|herd| {
            let peak = herd.peak().expect("sends");
            let chart = herd.load();
            let bars = &chart.curves[0];
            let after = bars.points.iter().filter(|(at, _)| *at > 10.0 + bars.bar_s);
            let most = after.filter_map(|(_, most)| *most).fold(0.0, f64::max);
            assert!(peak.at > 10.0 && peak.value >= most && peak.value > 0.0, "{peak:?} {most}");
            assert_eq!(chart.marks.len(), 1);
        });
    }

    #[test]
    fn the_rate_limit_of_the_called_tier_is_named() {
        with_herd(|herd| assert_eq!(herd.capacity(), Some((50.0, "rate limit"))));
    }
}
