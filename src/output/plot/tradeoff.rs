//! The choice between retry policies: how soon the clients get through against how hard they hit
//! the server.
//!
//! Each policy is a dot, and nearer to the lower left corner is better in both. Most are beaten
//! there by another and stand back in grey, so that what is left to choose from is seen at once.

use std::path::{Path, PathBuf};

use plotters::prelude::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::axis::{Scale, count_text, duration_text, number};
use super::charts::{BLACK, BLUE, GREY, VERMILLION, dashed, pale, solid};
use super::labels::{Area, Dot, place};
use super::paper::{Drawn, GRID, Known, NOTE, PLAIN, Paper, Pen, Picture, Place, QUIET, Type};
use super::{PlotError, embed_font, write_both};

const LEFT: f64 = 96.0;
const RIGHT: f64 = 1172.0;
const LEGEND: f64 = 90.0;
const TOP: f64 = 118.0;
const BOTTOM: f64 = 613.0;

/// Height of a line of a name [px].
const LINE: f64 = 18.0;

/// How large a dot is, and the ring around one that is chosen [px].
const DISC: f64 = 6.0;
const RING: f64 = 12.0;

const NEVER_SHADE: RGBColor = RGBColor(0xf3, 0xf3, 0xf3);

/// What became of the clients under a retry policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Tradeoff {
    /// Name of the policy.
    pub name: String,
    /// Until 99 % of the clients were through (s); `None`: never within the run.
    pub time_s: Option<f64>,
    /// Half the width of its 95 % interval (s).
    pub time_spread_s: f64,
    /// Most sends in a window, as a rate [1/s].
    pub peak_per_s: f64,
    /// Half the width of its 95 % interval [1/s].
    pub peak_spread: f64,
    /// Why it is chosen, in a word or two, such as "users first".
    pub chosen: Option<String>,
}

/// Policies held against each other.
#[derive(Clone, Copy, Debug)]
pub struct TradeoffField<'a> {
    /// First line of the picture.
    pub title: &'a str,
    /// In the order of the caller, which does not matter.
    pub policies: &'a [Tradeoff],
    /// What the server can do [1/s].
    pub capacity_per_s: Option<f64>,
    /// Length of the run (s).
    pub run_s: f64,
    /// Of how many seeds the figures are means.
    pub seeds: usize,
}

/// Draws the choice between retry policies into `dir`, as `tradeoff.svg` and `tradeoff.png`. Gives
/// the paths written.
///
/// Time until 99 % of the clients are through lies on the horizontal axis, the highest rate of
/// sends on the vertical one, both logarithmic. Policies under which they never are have a band of
/// their own at the right. Those with [`Tradeoff::chosen`] are highlighted.
///
/// # Errors
/// When a picture cannot be drawn or written; nothing half-written stays.
pub fn draw_tradeoff(field: &TradeoffField<'_>, dir: &Path) -> Result<[PathBuf; 2], PlotError> {
    embed_font();
    write_both(dir, "tradeoff", field)
}

/// How good a policy is beside the others.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rank {
    Chosen,
    Unbeaten,
    Beaten,
}

impl Rank {
    fn colour(self) -> RGBColor {
        match self {
            Rank::Chosen => VERMILLION,
            Rank::Unbeaten => BLUE,
            Rank::Beaten => GREY,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Rank::Chosen => "chosen",
            Rank::Unbeaten => "no other is both sooner and gentler",
            Rank::Beaten => "another is both sooner and gentler",
        }
    }
}

fn rank(policies: &[Tradeoff], policy: &Tradeoff) -> Rank {
    let time = |policy: &Tradeoff| policy.time_s.unwrap_or(f64::INFINITY);
    let beats = |other: &Tradeoff| {
        let (sooner, gentler) = (time(other) - time(policy), other.peak_per_s - policy.peak_per_s);
        // Of two that never get there, neither is sooner.
        let level = other.time_s == policy.time_s;
        let sooner_or_level = level || sooner < 0.0;
        sooner_or_level && gentler <= 0.0 && !(level && gentler == 0.0)
    };
    match &policy.chosen {
        Some(_) => Rank::Chosen,
        None if policy.time_s.is_none() || policies.iter().any(beats) => Rank::Beaten,
        None => Rank::Unbeaten,
    }
}

/// A policy on the sheet.
struct Spot<'a> {
    policy: &'a Tradeoff,
    rank: Rank,
    at: Place,
    /// Its name, and beneath it why it is chosen.
    lines: Vec<(String, Type)>,
    dot: Dot,
}

struct Sheet<'a, DB: DrawingBackend> {
    paper: &'a Paper<'a, DB>,
    field: &'a TradeoffField<'a>,
    across: Scale,
    up: Scale,
    /// Right end of the axis of time, and the band of those that never get there.
    end: f64,
    band: Option<Area>,
}

impl Picture for TradeoffField<'_> {
    fn draw<DB: DrawingBackend>(&self, paper: &Paper<'_, DB>) -> Drawn<DB> {
        let figures = match self.seeds {
            0 | 1 => "one seed".to_owned(),
            seeds => format!("mean of {seeds} seeds, bars: 95% interval"),
        };
        let subtitle =
            format!("Retry policies: how soon clients get through, how hard they hit · {figures}");
        paper.head(self.title, &subtitle)?;
        let sheet = Sheet::new(paper, self)?;
        sheet.legend()?;
        sheet.grid()?;
        sheet.names_of_axes()?;
        let mut taken = vec![sheet.best_corner()?];
        taken.extend(sheet.capacity()?);
        sheet.policies(taken)
    }
}

impl<'a, DB: DrawingBackend> Sheet<'a, DB> {
    fn new(paper: &'a Paper<'a, DB>, field: &'a TradeoffField<'a>) -> Known<Self, DB> {
        let mut widest: f64 = 110.0;
        let never = || field.policies.iter().filter(|policy| policy.time_s.is_none());
        for policy in never() {
            let lines = lines_of(policy, rank(field.policies, policy));
            widest = widest.max(size(paper, &lines)?.0);
        }
        let left = RIGHT - (widest + 24.0).min(320.0);
        let area = Area { left, top: TOP, right: RIGHT, bottom: BOTTOM };
        let band = never().next().map(|_| area);
        let times = field.policies.iter().filter_map(|policy| {
            let time = policy.time_s?;
            Some([time, time - policy.time_spread_s, time + policy.time_spread_s])
        });
        let peaks = field.policies.iter().map(|policy| {
            let peak = policy.peak_per_s;
            [peak, peak - policy.peak_spread, peak + policy.peak_spread]
        });
        let rates = peaks.flatten().chain(field.capacity_per_s);
        Ok(Sheet {
            paper,
            field,
            across: Scale::snug(times.flatten(), 1.25, 1.25),
            up: Scale::snug(rates, 1.6, 1.6),
            end: band.map_or(RIGHT, |band| band.left - 14.0),
            band,
        })
    }

    /// What the colours mean, those that there are.
    fn legend(&self) -> Drawn<DB> {
        let mut x = LEFT;
        for rank_shown in [Rank::Chosen, Rank::Unbeaten, Rank::Beaten] {
            let policies = self.field.policies;
            if !policies.iter().any(|policy| rank(policies, policy) == rank_shown) {
                continue;
            }
            self.paper.disc((x + 7.0, LEGEND), 6.0, rank_shown.colour())?;
            self.paper.text(rank_shown.name(), (x + 20.0, LEGEND), NOTE)?;
            x += 20.0 + self.paper.width(rank_shown.name(), NOTE)? + 28.0;
        }
        Ok(())
    }

    fn grid(&self) -> Drawn<DB> {
        let thin = |colour| Pen { width: 1.0, ..solid(colour) };
        let right = Type { across: HPos::Right, ..NOTE };
        let centre = Type { across: HPos::Center, ..NOTE };
        if let Some(band) = self.band {
            self.paper.fill((band.left, TOP), (band.right, BOTTOM), NEVER_SHADE)?;
            let middle = f64::midpoint(band.left, band.right);
            self.paper.text("never", (middle, BOTTOM + 18.0), Type { bold: true, ..centre })?;
            let run = format!("within {}", length_text(self.field.run_s));
            let quiet = Type { colour: QUIET, ..centre };
            self.paper.text(&run, (middle, BOTTOM + 38.0), quiet)?;
        }
        for tick in self.up.ticks() {
            let y = self.y(tick.value);
            self.paper.line(&[(LEFT, y), (self.end, y)], thin(GRID))?;
            if let Some(band) = self.band {
                self.paper.line(&[(band.left, y), (band.right, y)], thin(GRID))?;
            }
            if tick.labelled {
                self.paper.text(&count_text(tick.value, 0), (LEFT - 10.0, y), right)?;
            }
        }
        for tick in self.across.ticks() {
            let x = self.x(tick.value);
            self.paper.line(&[(x, TOP), (x, BOTTOM)], thin(GRID))?;
            self.paper.line(&[(x, BOTTOM), (x, BOTTOM + 5.0)], thin(QUIET))?;
            if tick.labelled {
                self.paper.text(&count_text(tick.value, 0), (x, BOTTOM + 18.0), centre)?;
            }
        }
        self.paper.line(&[(LEFT, BOTTOM), (self.end, BOTTOM)], thin(QUIET))
    }

    fn names_of_axes(&self) -> Drawn<DB> {
        let centre = Type { across: HPos::Center, colour: QUIET, ..PLAIN };
        let upwards = Type { upwards: true, ..centre };
        let below = (f64::midpoint(LEFT, self.end), BOTTOM + 43.0);
        self.paper.text("time until 99% of the clients are through [s]", below, centre)?;
        let beside = (22.0, f64::midpoint(TOP, BOTTOM));
        self.paper.text("highest rate of sends [1/s]", beside, upwards)
    }

    /// An arrow into the corner that is best, and its note; gives their area.
    fn best_corner(&self) -> Known<Area, DB> {
        let (x, y) = (LEFT + 9.0, BOTTOM - 9.0);
        let note = Type { colour: QUIET, bold: true, ..NOTE };
        let text = "best: soon through, gentle on the server";
        self.paper.line(
            &[(x + 17.0, y - 17.0), (x + 4.0, y - 4.0)],
            Pen { width: 3.0, ..solid(QUIET) },
        )?;
        self.paper.shape(&[(x, y), (x + 12.0, y), (x, y - 12.0)], QUIET)?;
        self.paper.text(text, (x + 27.0, y - 9.0), note)?;
        let right = x + 27.0 + self.paper.width(text, note)?;
        Ok(Area { left: x, top: y - 20.0, right, bottom: y })
    }

    /// The line that no server passes; gives what it takes up.
    fn capacity(&self) -> Known<Vec<Area>, DB> {
        let Some(rate) = self.field.capacity_per_s else { return Ok(Vec::new()) };
        let y = self.y(rate);
        self.paper.line(&[(LEFT, y), (RIGHT, y)], dashed(BLACK, 1.7, 9.0))?;
        let note = Type { across: HPos::Right, bold: true, ..NOTE };
        let text = format!("capacity {}/s", count_text(rate, 0));
        let right = self.end - 8.0;
        self.paper.text(&text, (right, y + 14.0), note)?;
        let left = right - self.paper.width(&text, note)?;
        let line = Area::stroke((LEFT, y), (RIGHT, y));
        Ok(vec![line, Area { left, top: y + 5.0, right, bottom: y + 23.0 }])
    }

    fn policies(&self, mut taken: Vec<Area>) -> Drawn<DB> {
        let spots = self.spots()?;
        taken.extend(self.frontier(&spots)?);
        for spot in &spots {
            let (across, up) = self.bars(spot);
            taken.push(Area::around(spot.at, spot.dot.clear, spot.dot.clear));
            for (from, to) in [across, up] {
                let pen = Pen { width: 1.6, ..solid(spot.rank.colour()) };
                self.paper.line(&[from, to], pen)?;
                taken.push(Area::stroke(from, to));
            }
        }
        let labels = place(&spots.iter().map(|spot| spot.dot).collect::<Vec<_>>(), &taken);
        for label in &labels {
            if let Some((from, to)) = label.leader {
                self.paper.line(&[from, to], Pen { width: 1.0, ..solid(GREY) })?;
            }
        }
        // The best in front.
        for spot in spots.iter().rev() {
            if spot.rank == Rank::Chosen {
                self.paper.disc(spot.at, RING, pale(VERMILLION).colour)?;
            }
            self.paper.disc(spot.at, DISC, spot.rank.colour())?;
        }
        for (spot, label) in spots.iter().zip(&labels) {
            let towards_left = label.area.right < spot.at.0;
            let across = if towards_left { HPos::Right } else { HPos::Left };
            let x = if towards_left { label.area.right } else { label.area.left };
            let mut y = label.area.top + LINE / 2.0;
            for (text, kind) in &spot.lines {
                self.paper.text(text, (x, y), Type { across, ..*kind })?;
                y += LINE;
            }
        }
        Ok(())
    }

    /// All policies, the chosen first, since their names should stand nearest.
    fn spots(&self) -> Known<Vec<Spot<'a>>, DB> {
        let policies = self.field.policies;
        let nevers = policies.iter().filter(|policy| policy.time_s.is_none()).count();
        let mut nevers_before = 0;
        let mut spots = Vec::with_capacity(policies.len());
        for policy in policies {
            let rank = rank(policies, policy);
            let main = Area { left: LEFT + 4.0, top: TOP, right: self.end, bottom: BOTTOM };
            let (x, within) = match (policy.time_s, self.band) {
                (None, Some(band)) => {
                    nevers_before += 1;
                    let share = f64::from(nevers_before) / (nevers as f64 + 1.0);
                    (band.left + share * (band.right - band.left), band)
                }
                (time, _) => (self.x(time.unwrap_or(0.0)), main),
            };
            let at = (x, self.y(policy.peak_per_s));
            let lines = lines_of(policy, rank);
            let clear = if rank == Rank::Chosen { RING } else { DISC };
            let dot = Dot { at, clear, size: size(self.paper, &lines)?, within };
            spots.push(Spot { policy, rank, at, lines, dot });
        }
        let order = |spot: &Spot<'_>| (spot.rank != Rank::Chosen, spot.rank != Rank::Unbeaten);
        spots.sort_by(|a, b| order(a).cmp(&order(b)).then(a.at.0.total_cmp(&b.at.0)));
        Ok(spots)
    }

    /// A pale line through those that no other beats; gives what it takes up.
    fn frontier(&self, spots: &[Spot<'_>]) -> Known<Vec<Area>, DB> {
        let policies = self.field.policies;
        let unchosen = |policy: &Tradeoff| Tradeoff { chosen: None, ..policy.clone() };
        let best = |spot: &&Spot<'_>| rank(policies, &unchosen(spot.policy)) == Rank::Unbeaten;
        let mut path: Vec<Place> = spots.iter().filter(best).map(|spot| spot.at).collect();
        path.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        if path.len() > 1 {
            self.paper.line(&path, pale(BLUE))?;
        }
        Ok(path.windows(2).flat_map(|step| strokes(step[0], step[1])).collect())
    }

    /// Intervals as lines: of the time, from left to right, and of the peak, from below up.
    fn bars(&self, spot: &Spot<'_>) -> ((Place, Place), (Place, Place)) {
        let (x, y) = spot.at;
        let Tradeoff { time_s, time_spread_s, peak_per_s, peak_spread, .. } = spot.policy;
        let across = time_s
            .map_or((x, x), |time| (self.x(time - time_spread_s), self.x(time + time_spread_s)));
        let up = (self.y(peak_per_s - peak_spread), self.y(peak_per_s + peak_spread));
        (((across.0, y), (across.1, y)), ((x, up.0), (x, up.1)))
    }

    fn x(&self, time_s: f64) -> f64 {
        LEFT + (self.end - LEFT) * share(&self.across, time_s)
    }

    fn y(&self, rate: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * share(&self.up, rate)
    }
}

/// The length of a run, which is most often of whole minutes.
fn length_text(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    let whole = seconds >= 120.0 && minutes == minutes.round();
    if whole { format!("{} min", number(minutes, 0)) } else { duration_text(seconds) }
}

/// A line in short pieces, since the rectangle around a long slanting one is mostly empty.
fn strokes(from: Place, to: Place) -> impl Iterator<Item = Area> {
    const PIECES: u32 = 40;
    let at = move |piece: u32| {
        let share = f64::from(piece) / f64::from(PIECES);
        (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1))
    };
    (0..PIECES).map(move |piece| Area::stroke(at(piece), at(piece + 1)))
}

/// Zero and less, which a logarithm does not know, lie at the lower end.
fn share(scale: &Scale, value: f64) -> f64 {
    if value > 0.0 { scale.share(value).clamp(0.0, 1.0) } else { 0.0 }
}

fn lines_of(policy: &Tradeoff, rank: Rank) -> Vec<(String, Type)> {
    let Some(why) = &policy.chosen else {
        let colour = if rank == Rank::Beaten { QUIET } else { BLUE };
        return vec![(policy.name.clone(), Type { colour, bold: rank != Rank::Beaten, ..NOTE })];
    };
    let time = policy.time_s.map_or("never".to_owned(), |time| format!("{} s", number(time, 0)));
    let figures = format!("{time}, {}/s", number(policy.peak_per_s, 0));
    let bold = Type { colour: VERMILLION, bold: true, ..NOTE };
    vec![(format!("{why}: {}", policy.name), bold), (figures, Type { bold: false, ..bold })]
}

fn size<DB: DrawingBackend>(
    paper: &Paper<'_, DB>,
    lines: &[(String, Type)],
) -> Known<(f64, f64), DB> {
    let mut widest: f64 = 0.0;
    for (text, kind) in lines {
        widest = widest.max(paper.width(text, *kind)?);
    }
    Ok((widest, LINE * lines.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str, time_s: Option<f64>, peak_per_s: f64) -> Tradeoff {
        let (time_spread_s, peak_spread) = (2.0, 20.0);
        let name = name.to_owned();
        Tradeoff { name, time_s, time_spread_s, peak_per_s, peak_spread, chosen: None }
    }

    fn field(policies: &[Tradeoff]) -> TradeoffField<'_> {
        TradeoffField {
            title: "A herd comes back",
            policies,
            capacity_per_s: Some(120.0),
            run_s: 1200.0,
            seeds: 200,
        }
    }

    #[test]
    fn only_what_another_beats_in_both_stands_back() {
        let policies = [
            policy("soon", Some(60.0), 1200.0),
            policy("gentle", Some(90.0), 160.0),
            policy("late", Some(300.0), 1200.0),
            policy("never", None, 100.0),
            Tradeoff { chosen: Some("users first".into()), ..policy("both", Some(74.0), 280.0) },
        ];
        let ranks: Vec<Rank> = policies.iter().map(|policy| rank(&policies, policy)).collect();
        use Rank::{Beaten, Chosen, Unbeaten};
        assert_eq!(ranks, [Unbeaten, Unbeaten, Beaten, Beaten, Chosen]);
    }

    #[test]
    fn equals_do_not_beat_each_other() {
        let policies = [policy("a", Some(60.0), 200.0), policy("b", Some(60.0), 200.0)];
        assert!(policies.iter().all(|policy| rank(&policies, policy) == Rank::Unbeaten));
    }

    #[test]
    fn a_run_of_whole_minutes_is_named_in_minutes() {
        assert_eq!([90.0, 1200.0].map(length_text), ["90 s", "20 min"]);
    }

    #[test]
    fn a_field_of_none_one_or_only_hopeless_policies_is_drawn() {
        let dir = tempfile::tempdir().expect("a place to write");
        let zero = Tradeoff { time_spread_s: 90.0, ..policy("wide", Some(60.0), 0.0) };
        let fields = [
            vec![],
            vec![policy("a", Some(60.0), 200.0)],
            vec![policy("a", None, 9.0)],
            vec![zero],
        ];
        for policies in fields {
            let paths = draw_tradeoff(&field(&policies), dir.path()).expect("drawn");
            assert!(paths.iter().all(|path| path.is_file()));
        }
        let without = TradeoffField { capacity_per_s: None, ..field(&[]) };
        draw_tradeoff(&without, dir.path()).expect("drawn");
    }
}
