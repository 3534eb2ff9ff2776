//! What the plots show: from a record to the curves of each chart.
//!
//! Windows beyond what a picture can tell apart are joined before any figure is taken, not after: a
//! rate is then that of the whole stretch, and a percentile that of all its requests, where a mean
//! of percentiles would be neither.

use std::ops::Range;

use plotters::style::RGBColor;

use super::axis::{Clock, Scale, count_text, duration_text, number};
use super::canvas::{Chart, Curve, Story};
use super::paper::Pen;
use crate::document::TierId;
use crate::kernel::Time;
use crate::measure::{Record, Sparse, TierRow};
use crate::mechanism::trigger::Trigger;
use crate::model::Model;

/// More points than this on a curve are a smear.
pub const MOST_POINTS: usize = 800;

/// Colours of Okabe and Ito, which stay apart for the colour-blind; without yellow, which is lost
/// on white.
pub const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
pub const VERMILLION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
pub const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);
const SKY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
pub const BLACK: RGBColor = RGBColor(0x33, 0x33, 0x33);
pub const GREY: RGBColor = RGBColor(0x8a, 0x8a, 0x8a);

/// One for each tier; more tiers than colours could not be told apart.
const TIER_COLOURS: [RGBColor; 7] = [BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK];

const PERCENTILES: [(f64, &str, RGBColor); 4] =
    [(0.5, "p50", SKY), (0.9, "p90", BLUE), (0.99, "p99", ORANGE), (0.999, "p99.9", VERMILLION)];

/// A mean queue below this is next to none; its noise would fill half of a logarithmic axis.
const LEAST_QUEUE: f64 = 0.1;

/// Time (s) and value.
pub type Points = Vec<(f64, Option<f64>)>;

/// A record, joined into as many stretches as a picture can show.
pub struct Source<'a> {
    model: &'a Model,
    record: &'a Record,
    twin: Option<&'a Record>,
    clock: Clock,
    story: Story,
    stretches: Vec<Range<usize>>,
    /// By tier, then by stretch.
    rows: Vec<Vec<TierRow>>,
}

impl<'a> Source<'a> {
    /// Joins the windows of a record.
    pub fn new(model: &'a Model, record: &'a Record, twin: Option<&'a Record>) -> Self {
        let begin = record.windows.first().map_or(Time::ZERO, |window| window.from);
        let end = record.windows.last().map_or(model.run.end(), |window| window.to);
        let clock = Clock::new(begin.seconds()..end.seconds());
        let stretches = stretches(record.windows.len(), MOST_POINTS);
        let rows_of = |tier| stretches.iter().map(|s| record.tier_sum(tier, s.clone())).collect();
        let rows = model.tier_ids().map(rows_of).collect();
        let story = story(model, record, &clock.range);
        Source { model, record, twin, clock, story, stretches, rows }
    }

    /// All charts, each with the name of its file.
    pub fn charts(&self) -> [(&'static str, Chart<'_>); 4] {
        [
            ("load", self.load()),
            ("queue", self.queue()),
            ("amplification", self.amplification()),
            ("response_time", self.response_time()),
        ]
    }

    fn load(&self) -> Chart<'_> {
        let tier = self.worst_tier();
        let offered = self.points(tier, |row, seconds| Some(row.offered as f64 / seconds));
        let goodput = self.points(tier, |row, seconds| Some(row.good as f64 / seconds));
        let most = peak(&offered).max(peak(&goodput));
        let servers = self.model.tier(tier).servers().map(f64::from);
        let capacity = self.model.capacity(tier).zip(servers);
        let capacity = self.points(tier, |row, _| {
            let (capacity, servers) = capacity?;
            Some(capacity * f64::from(row.servers?) / servers)
        });
        let limit = self.points(tier, |row, _| row.limit);
        let near = [peak(&capacity), peak(&limit)].into_iter().filter(|&rate| rate < 2.5 * most);
        let scale = Scale::linear(near.fold(most, f64::max));

        // Where all is well both are the same: the wider one shows on both sides of the other.
        let offered_pen = Pen { width: 3.0, ..solid(VERMILLION) };
        let mut lines = vec![("offered rate".to_owned(), offered_pen, offered)];
        lines.push(("goodput".to_owned(), solid(GREEN), goodput));
        for (name, line, pen) in [
            ("capacity", capacity, dashed(BLACK, 1.7, 9.0)),
            ("rate limit", limit, dashed(PURPLE, 2.0, 5.0)),
        ] {
            let Some(last) = line.iter().rev().find_map(|&(_, rate)| rate) else { continue };
            let off = if peak(&line) > scale.top() { ", beyond the axis" } else { "" };
            let name = match name {
                "capacity" => {
                    let places = usize::from(last < 10.0);
                    format!("capacity ({}/s{off})", number(last, places))
                }
                _ => format!("{name}{off}"),
            };
            lines.push((name, pen, line));
        }
        let name = self.model.names.tier_name(tier);
        let chart = self.chart(format!("load of tier {name}"), "attempts per second [1/s]", scale);
        let mut chart = with_lines(chart, lines);
        // Without a trigger the twin is the run itself.
        if let Some(twin) = self.twin.filter(|_| !self.model.triggers.is_empty()) {
            let pen = dashed(GREY, 1.4, 4.0);
            chart.legend.push(("goodput without trigger".to_owned(), pen));
            chart.curves.insert(0, Curve::line(pen, twin_goodput(twin, tier)));
        }
        chart
    }

    fn queue(&self) -> Chart<'_> {
        let mean = |area: fn(&TierRow) -> f64| {
            move |tier| self.points(tier, |row, seconds| Some(area(row) / seconds))
        };
        let in_flight = mean(|row| row.in_flight_area);
        let (tiers, note) = self.shown_tiers(&in_flight);
        let waiting: Vec<Points> = tiers.iter().map(|&t| mean(|row| row.queue_area)(t)).collect();
        let flying: Vec<Points> = tiers.iter().map(|&tier| in_flight(tier)).collect();
        let values = waiting.iter().chain(&flying).flatten().filter_map(|(_, value)| *value);
        let most = values.clone().fold(0.0, f64::max);
        let least = values.clone().filter(|&value| value >= LEAST_QUEUE).fold(most, f64::min);
        let wide = most > 1e3 * least;
        let scale = if wide { Scale::log(values, LEAST_QUEUE) } else { Scale::linear(most) };

        let title = format!("queue length and attempts in flight{note}");
        let mut chart = self.chart(title, "attempts", scale);
        chart.legend = self.tier_legend(&tiers);
        chart.legend.push(("waiting in the queue".to_owned(), solid(GREY)));
        chart.legend.push(("in flight: waiting or in service".to_owned(), pale(GREY)));
        let colours = || TIER_COLOURS.into_iter();
        let behind = colours().zip(flying).map(|(c, points)| Curve::line(pale(c), points));
        let before = colours().zip(waiting).map(|(c, points)| Curve::line(solid(c), points));
        chart.curves = behind.chain(before).collect();
        chart
    }

    fn amplification(&self) -> Chart<'_> {
        let reaching = self.model.reaching_clients();
        let attempts = |tier: TierId| {
            let demand = |stretch: usize| -> u64 {
                let clients = reaching[tier.index()].iter();
                clients.map(|client| self.rows[client.index()][stretch].demand).sum()
            };
            let rows = self.rows[tier.index()].iter().enumerate();
            let each = rows.map(|(stretch, row)| {
                let ratio = row.offered as f64 / demand(stretch) as f64;
                (self.middle(stretch), Some(ratio).filter(|ratio| ratio.is_finite()))
            });
            each.collect::<Points>()
        };
        let (tiers, note) = self.shown_tiers(&attempts);
        let lines: Vec<Points> = tiers.iter().map(|&tier| attempts(tier)).collect();
        let scale = Scale::linear(lines.iter().map(|line| peak(line)).fold(0.0, f64::max));
        let title = format!("amplification{note}");
        let mut chart = self.chart(title, "attempts per user request", scale);
        chart.legend = self.tier_legend(&tiers);
        // Tiers that are called once for each other have the same amplification: those behind are
        // wider, and so show on both sides of those before.
        let count = lines.len() as f64;
        let width = |place: usize| 2.0 + (0.8 * (count - 1.0 - place as f64)).min(2.4);
        let curve = |(place, points)| {
            let pen = Pen { width: width(place), ..solid(TIER_COLOURS[place]) };
            Curve::line(pen, points)
        };
        chart.curves = lines.into_iter().enumerate().map(curve).collect();
        chart
    }

    fn response_time(&self) -> Chart<'_> {
        let clients = self.model.tier_ids().filter(|&tier| self.model.tier(tier).is_client());
        let clients: Vec<TierId> = clients.collect();
        let merged = |stretch: usize| {
            let parts = clients.iter().map(|c| &self.rows[c.index()][stretch].sojourn);
            (self.middle(stretch), Sparse::sum(parts))
        };
        let times: Vec<(f64, Sparse)> = (0..self.stretches.len()).map(merged).collect();
        let line = |p| times.iter().map(|(at, all)| (*at, all.quantile_s(p))).collect::<Points>();
        let lines = PERCENTILES.map(|(p, name, colour)| (name.to_owned(), solid(colour), line(p)));
        let values = lines.iter().flat_map(|(_, _, line)| line).filter_map(|(_, value)| *value);
        let scale = Scale::log(values, 0.0);
        let names: Vec<&str> = clients.iter().map(|&c| self.model.names.tier_name(c)).collect();
        let title = format!(
            "response time of {}, from first attempt to outcome",
            names.join(
                ", \
        "
            )
        );
        let mut chart = self.chart(title, "response time [s, ms, µs]", scale);
        chart.tick_text = |value, _| duration_text(value);
        with_lines(chart, lines.into())
    }

    /// A chart without curves; the subtitle says what one point stands for.
    fn chart(&self, what: String, measures: &'static str, scale: Scale) -> Chart<'_> {
        let window = duration_text(self.model.run.window.seconds());
        let point = match self.stretches.first().map_or(1, Range::len) {
            1 => format!("a point for each window of {window}"),
            many => format!("a point for each {many} windows of {window}"),
        };
        let stopped = if self.record.interrupted { ", stopped early" } else { "" };
        Chart {
            title: &self.model.title,
            subtitle: format!("{what} · {point} · seed {}{stopped}", self.record.seed),
            measures,
            scale,
            tick_text: count_text,
            clock: &self.clock,
            story: &self.story,
            legend: Vec::new(),
            curves: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// The server tier with the most load for its capacity once the triggers have gone.
    fn worst_tier(&self) -> TierId {
        let end = self.model.trigger_span().map_or(Time::ZERO, |(_, end)| end);
        let after = self.record.windows.partition_point(|window| window.from < end);
        let all = self.record.windows.len();
        let windows = if after < all { after..all } else { 0..all };
        let strain = |tier: TierId| {
            let offered: u64 =
                self.record.tiers[tier.index()][windows.clone()].iter().map(|r| r.offered).sum();
            Some((offered as f64 / self.model.capacity(tier)?, tier))
        };
        let worst = self.servers().filter_map(strain).reduce(|a, b| if b.0 > a.0 { b } else { a });
        let first_callee = || self.model.edges.first().map_or(TierId(0), |edge| edge.callee);
        worst.map_or_else(first_callee, |(_, tier)| tier)
    }

    fn servers(&self) -> impl Iterator<Item = TierId> {
        self.model.tier_ids().filter(|&tier| !self.model.tier(tier).is_client())
    }

    /// As many server tiers as there are colours, those with the highest peak, in order of the
    /// file; and a note when some are missing.
    fn shown_tiers(&self, points: &dyn Fn(TierId) -> Points) -> (Vec<TierId>, String) {
        let mut tiers: Vec<TierId> = self.servers().collect();
        let all = tiers.len();
        if all <= TIER_COLOURS.len() {
            return (tiers, String::new());
        }
        tiers.sort_by(|&a, &b| peak(&points(b)).total_cmp(&peak(&points(a))));
        tiers.truncate(TIER_COLOURS.len());
        tiers.sort_unstable();
        let note = format!(" (the {} highest of {all} tiers)", tiers.len());
        (tiers, note)
    }

    fn tier_legend(&self, tiers: &[TierId]) -> Vec<(String, Pen)> {
        let name = |&tier: &TierId| self.model.names.tier_name(tier).to_owned();
        tiers.iter().map(name).zip(TIER_COLOURS.map(solid)).collect()
    }

    fn points(&self, tier: TierId, figure: impl Fn(&TierRow, f64) -> Option<f64>) -> Points {
        let rows = self.rows[tier.index()].iter().enumerate();
        let length = |stretch: usize| seconds(self.record, &self.stretches[stretch]);
        rows.map(|(at, row)| (self.middle(at), figure(row, length(at)))).collect()
    }

    fn middle(&self, stretch: usize) -> f64 {
        middle(self.record, &self.stretches[stretch])
    }
}

/// Windows in runs of equal length, at most so many; the last run may be shorter.
pub fn stretches(windows: usize, most: usize) -> Vec<Range<usize>> {
    let joined = windows.div_ceil(most).max(1);
    (0..windows).step_by(joined).map(|from| from..(from + joined).min(windows)).collect()
}

/// How long a stretch is.
pub fn seconds(record: &Record, stretch: &Range<usize>) -> f64 {
    let (first, last) = (record.windows[stretch.start], record.windows[stretch.end - 1]);
    last.to.since(first.from).seconds()
}

/// The middle of a stretch (s).
pub fn middle(record: &Record, stretch: &Range<usize>) -> f64 {
    record.windows[stretch.start].from.seconds() + seconds(record, stretch) / 2.0
}

/// The twin may have been stopped at another window, so it is joined for itself.
fn twin_goodput(twin: &Record, tier: TierId) -> Points {
    let rate = |stretch: Range<usize>| {
        let good: u64 = twin.tiers[tier.index()][stretch.clone()].iter().map(|r| r.good).sum();
        (middle(twin, &stretch), Some(good as f64 / seconds(twin, &stretch)))
    };
    stretches(twin.windows.len(), MOST_POINTS).into_iter().map(rate).collect()
}

/// What triggers and the operator did, so far as it lies on the axis. What happened at one instant
/// has one label.
pub fn story(model: &Model, record: &Record, axis: &Range<f64>) -> Story {
    let mut story = Story { triggers: disturbances(&model.triggers, axis), operator: Vec::new() };
    for entry in record.log.iter().filter(|entry| entry.operator) {
        let at = entry.at.seconds().clamp(axis.start, axis.end);
        match story.operator.last_mut().filter(|last| last.0 == at) {
            Some(last) => last.1 = format!("{}, {}", last.1, entry.what),
            None => story.operator.push((at, entry.what.clone())),
        }
    }
    story
}

/// Triggers that overlap share a label, for which each alone might have no room.
fn disturbances(triggers: &[Trigger], axis: &Range<f64>) -> Vec<(f64, f64, String)> {
    let mut seen: Vec<&Trigger> = triggers.iter().collect();
    seen.retain(|trigger| trigger.at.seconds() < axis.end && trigger.until.seconds() >= axis.start);
    seen.sort_by_key(|trigger| trigger.at);
    let mut joined: Vec<(f64, f64, Vec<&str>)> = Vec::new();
    for trigger in seen {
        let (from, to) = (trigger.at.seconds(), trigger.until.seconds());
        let (from, to, name) = (from.max(axis.start), to.min(axis.end), trigger.lever.name());
        match joined.last_mut().filter(|last| from < last.1 || from == last.0) {
            Some(last) => {
                last.1 = last.1.max(to);
                if !last.2.contains(&name) {
                    last.2.push(name);
                }
            }
            None => joined.push((from, to, vec![name])),
        }
    }
    let label = |(from, to, names): (f64, f64, Vec<&str>)| {
        (from, to, format!("trigger: {}", names.join(" + ")))
    };
    joined.into_iter().map(label).collect()
}

fn peak(points: &[(f64, Option<f64>)]) -> f64 {
    points.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max)
}

/// Lines with their names, the hindmost first.
fn with_lines<'a>(mut chart: Chart<'a>, lines: Vec<(String, Pen, Points)>) -> Chart<'a> {
    chart.legend = lines.iter().map(|(name, pen, _)| (name.clone(), *pen)).collect();
    chart.curves = lines.into_iter().map(|(_, pen, points)| Curve::line(pen, points)).collect();
    chart
}

/// Unbroken.
pub fn solid(colour: RGBColor) -> Pen {
    Pen { colour, width: 2.0, dash: 0.0 }
}

/// Broken.
pub fn dashed(colour: RGBColor, width: f64, dash: f64) -> Pen {
    Pen { colour, width, dash }
}

/// Wide and light, so that it shows on both sides of a solid line that covers it.
pub fn pale(colour: RGBColor) -> Pen {
    let lighter = |part: u8| 255 - (255 - part) / 3;
    let RGBColor(red, green, blue) = colour;
    Pen { colour: RGBColor(lighter(red), lighter(green), lighter(blue)), width: 5.0, dash: 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::trigger::Lever;

    #[test]
    fn every_window_of_a_long_run_is_in_exactly_one_stretch() {
        for windows in [0, 1, 799, 800, 801, 3_600, 20_000] {
            let stretches = stretches(windows, MOST_POINTS);
            assert!(stretches.len() <= MOST_POINTS);
            assert!(stretches.iter().cloned().flatten().eq(0..windows));
        }
    }

    #[test]
    fn short_runs_keep_a_point_for_each_window() {
        assert_eq!(stretches(800, 800).len(), 800);
        assert_eq!(
            stretches(801, 800),
            (0..401).map(|n| 2 * n..(2 * n + 2).min(801)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn triggers_that_overlap_share_a_label() {
        let trigger = |at: u64, until: u64, lever| {
            let instant = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
            Trigger { at: instant(at), until: instant(until), lever }
        };
        let slow = || Lever::Slow(Vec::new());
        let triggers = [
            trigger(40, 40, Lever::Flush(Vec::new())),
            trigger(10, 20, slow()),
            trigger(15, 30, Lever::Demand(Vec::new())),
            trigger(25, 28, slow()),
        ];
        let expected = [
            (10.0, 30.0, "trigger: slow + demand".to_owned()),
            (40.0, 40.0, "trigger: flush".to_owned()),
        ];
        assert_eq!(disturbances(&triggers, &(0.0..60.0)), expected);
    }
}
