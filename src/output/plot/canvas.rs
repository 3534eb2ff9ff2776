//! A chart on paper: title, legend, shaded times, grid, curves. The same strokes for every backend.
//!
//! Why not the chart builder of plotters: legend and labels would lie on top of the data. Here both
//! have rows of their own above it, which are as high as what they hold, so that no text can hide a
//! curve or another text.

use plotters::prelude::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::axis::{Clock, Scale};
use super::labels::{Area, Dot, place};
use super::paper::{Drawn, GRID, Known, NOTE, PLAIN, Paper, Pen, Picture, Place, QUIET, Type};

const TRIGGER: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const TRIGGER_SHADE: RGBColor = RGBColor(0xfd, 0xe6, 0xe0);
const OPERATOR: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const OPERATOR_SHADE: RGBColor = RGBColor(0xe8, 0xf3, 0xfb);

const LEFT: f64 = 96.0;
const RIGHT: f64 = 1172.0;
const BOTTOM: f64 = 613.0;
/// Lower end of the upper chart of two.
const MIDDLE: f64 = 372.0;
const LEGEND_TOP: f64 = 78.0;
const ROW: f64 = 24.0;

/// A line of a chart, by rising time; `None` breaks it.
#[derive(Clone, Debug)]
pub struct Curve {
    /// How it looks.
    pub pen: Pen,
    /// Time (s) and value.
    pub points: Vec<(f64, Option<f64>)>,
    /// Length of the bar that each value is (s); 0: a line through all.
    pub bar_s: f64,
}

impl Curve {
    /// A line.
    pub fn line(pen: Pen, points: Vec<(f64, Option<f64>)>) -> Self {
        Curve { pen, points, bar_s: 0.0 }
    }
}

/// A point of a chart that has its own text.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Time (s).
    pub at: f64,
    /// Value.
    pub value: f64,
    /// What is written beside it.
    pub text: String,
    /// Colour of both.
    pub colour: RGBColor,
}

/// What happened during the run, for the rows above the data.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// From when until when (s), and its label.
    pub triggers: Vec<(f64, f64, String)>,
    /// When (s) the operator did what.
    pub operator: Vec<(f64, String)>,
}

/// Everything that a picture shows.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// First line.
    pub title: &'a str,
    /// Second line.
    pub subtitle: String,
    /// What the vertical axis measures, with its unit.
    pub measures: &'a str,
    /// Vertical axis.
    pub scale: Scale,
    /// Text at a tick of the vertical axis.
    pub tick_text: fn(f64, usize) -> String,
    /// Horizontal axis.
    pub clock: &'a Clock,
    /// What happened.
    pub story: &'a Story,
    /// Names of the lines.
    pub legend: Vec<(String, Pen)>,
    /// Lines, the hindmost first.
    pub curves: Vec<Curve>,
    /// Points with a text, in front of all.
    pub marks: Vec<Mark>,
}

/// Two charts on the same clock, one above the other; the title is that of the upper one.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// Above.
    pub upper: Chart<'a>,
    /// Below, without labels of what happened.
    pub lower: Chart<'a>,
}

struct Canvas<'a, DB: DrawingBackend> {
    paper: &'a Paper<'a, DB>,
    chart: &'a Chart<'a>,
    top: f64,
    bottom: f64,
}

impl Picture for Chart<'_> {
    fn draw<DB: DrawingBackend>(&self, paper: &Paper<'_, DB>) -> Drawn<DB> {
        paper.head(self.title, &self.subtitle)?;
        let mut canvas = Canvas { paper, chart: self, top: LEGEND_TOP, bottom: BOTTOM };
        canvas.fill(true)?;
        canvas.clock()
    }
}

impl Picture for Pair<'_> {
    fn draw<DB: DrawingBackend>(&self, paper: &Paper<'_, DB>) -> Drawn<DB> {
        paper.head(self.upper.title, &self.upper.subtitle)?;
        let mut above = Canvas { paper, chart: &self.upper, top: LEGEND_TOP, bottom: MIDDLE };
        above.fill(true)?;
        let mut below = Canvas { paper, chart: &self.lower, top: MIDDLE + 8.0, bottom: BOTTOM };
        below.fill(false)?;
        below.clock()
    }
}

impl<DB: DrawingBackend> Canvas<'_, DB> {
    /// Legend, labels of what happened if `told`, and data, from `top` down.
    fn fill(&mut self, told: bool) -> Drawn<DB> {
        let legend_end = self.legend()?;
        let story = self.chart.story;
        let triggers = if !told || story.triggers.is_empty() { 0.0 } else { ROW };
        let operator = if !told || story.operator.is_empty() { 0.0 } else { ROW };
        self.top = legend_end + 20.0 + triggers + operator;
        self.shades()?;
        self.grid()?;
        if told {
            self.triggers(self.top - operator - 13.0)?;
            self.operator(self.top - 19.0)?;
        }
        self.chart.curves.iter().try_for_each(|curve| self.curve(curve))?;
        self.marks()
    }

    /// Names and their lines, row after row; gives the middle of the last row.
    fn legend(&self) -> Known<f64, DB> {
        let (mut x, mut y) = (LEFT, self.top + 12.0);
        for (name, pen) in &self.chart.legend {
            let name = self.paper.cut(name, NOTE, 420.0)?;
            let width = 34.0 + self.paper.width(&name, NOTE)? + 26.0;
            if x > LEFT && x + width > RIGHT + 26.0 {
                (x, y) = (LEFT, y + ROW - 2.0);
            }
            self.paper.line(&[(x, y), (x + 26.0, y)], *pen)?;
            self.paper.text(&name, (x + 34.0, y), NOTE)?;
            x += width;
        }
        Ok(y)
    }

    fn shades(&self) -> Drawn<DB> {
        let story = self.chart.story;
        if let Some((from, _)) = story.operator.first() {
            self.shade(*from, self.chart.clock.range.end, OPERATOR_SHADE)?;
        }
        story.triggers.iter().try_for_each(|(from, to, _)| self.shade(*from, *to, TRIGGER_SHADE))
    }

    fn shade(&self, from: f64, to: f64, colour: RGBColor) -> Drawn<DB> {
        let left = self.x(from);
        let right = self.x(to).max(left + 2.0);
        self.paper.fill((left, self.top), (right, self.bottom), colour)
    }

    fn grid(&self) -> Drawn<DB> {
        let thin = |colour| Pen { colour, width: 1.0, dash: 0.0 };
        let chart = self.chart;
        let right = Type { across: HPos::Right, ..NOTE };
        for tick in chart.scale.ticks() {
            let y = self.y(tick.value);
            self.paper.line(&[(LEFT, y), (RIGHT, y)], thin(GRID))?;
            if tick.labelled {
                let text = (chart.tick_text)(tick.value, chart.scale.decimals());
                self.paper.text(&text, (LEFT - 10.0, y), right)?;
            }
        }
        for (at, _) in chart.clock.ticks() {
            let x = self.x(at);
            self.paper.line(&[(x, self.top), (x, self.bottom)], thin(GRID))?;
            self.paper.line(&[(x, self.bottom), (x, self.bottom + 5.0)], thin(QUIET))?;
        }
        self.paper.line(&[(LEFT, self.bottom), (RIGHT, self.bottom)], thin(QUIET))?;
        let upwards = Type { across: HPos::Center, colour: QUIET, upwards: true, ..PLAIN };
        let middle = f64::midpoint(self.top, self.bottom);
        self.paper.text(chart.measures, (22.0, middle), upwards)
    }

    /// What is written at the ticks of the horizontal axis, and its name.
    fn clock(&self) -> Drawn<DB> {
        let centre = Type { across: HPos::Center, ..NOTE };
        for (at, label) in self.chart.clock.ticks() {
            self.paper.text(&label, (self.x(at), self.bottom + 18.0), centre)?;
        }
        let middle = f64::midpoint(LEFT, RIGHT);
        let centre = Type { across: HPos::Center, colour: QUIET, ..PLAIN };
        let name = format!("time [{}]", self.chart.clock.unit);
        self.paper.text(&name, (middle, self.bottom + 43.0), centre)
    }

    /// A curve in its unbroken pieces; a piece of one point is a dot.
    fn curve(&self, curve: &Curve) -> Drawn<DB> {
        if curve.bar_s > 0.0 {
            return self.bars(curve);
        }
        let top = self.chart.scale.top() * 1.000_001;
        let beyond = |value: &Option<f64>| value.is_none_or(|value| value > top);
        for piece in curve.points.split(|(_, value)| beyond(value)) {
            let place = |&(at, value): &(f64, Option<f64>)| Some((self.x(at), self.y(value?)));
            let path: Vec<_> = piece.iter().filter_map(place).collect();
            match path[..] {
                [] => {}
                [point] => self.paper.disc(point, curve.pen.width, curve.pen.colour)?,
                _ => self.paper.line(&path, curve.pen)?,
            }
        }
        Ok(())
    }

    /// A bar from zero up for each value, at least a pixel wide so that none is lost.
    fn bars(&self, curve: &Curve) -> Drawn<DB> {
        for &(at, value) in &curve.points {
            let Some(value) = value.filter(|&value| value > 0.0) else { continue };
            let (from, to) = (self.x(at - curve.bar_s / 2.0), self.x(at + curve.bar_s / 2.0));
            let to = to.max(from + 1.0).min(RIGHT);
            self.paper.fill((from, self.y(value)), (to, self.bottom), curve.pen.colour)?;
        }
        Ok(())
    }

    /// Dots with their texts, which stand clear of curves and of each other.
    fn marks(&self) -> Drawn<DB> {
        let marks = &self.chart.marks;
        let note = |mark: &Mark| Type { colour: mark.colour, bold: true, ..NOTE };
        let within = Area { left: LEFT, top: self.top, right: RIGHT, bottom: self.bottom };
        let mut dots = Vec::with_capacity(marks.len());
        for mark in marks {
            let size = (self.paper.width(&mark.text, note(mark))?, 17.0);
            dots.push(Dot { at: (self.x(mark.at), self.y(mark.value)), clear: 6.0, size, within });
        }
        let own = dots.iter().map(|dot| Area::around(dot.at, dot.clear, dot.clear));
        let taken: Vec<Area> = own.chain(self.covered()).collect();
        for ((mark, dot), label) in marks.iter().zip(&dots).zip(place(&dots, &taken)) {
            if let Some((from, to)) = label.leader {
                self.paper.line(&[from, to], Pen { colour: mark.colour, width: 1.0, dash: 0.0 })?;
            }
            self.paper.disc(dot.at, 5.0, mark.colour)?;
            let middle = f64::midpoint(label.area.top, label.area.bottom);
            self.paper.text(&mark.text, (label.area.left, middle), note(mark))?;
        }
        Ok(())
    }

    /// Where curves and bars lie.
    fn covered(&self) -> Vec<Area> {
        let mut areas = Vec::new();
        for curve in &self.chart.curves {
            let place = |&(at, value): &(f64, Option<f64>)| Some((self.x(at), self.y(value?)));
            let path: Vec<Place> = curve.points.iter().filter_map(place).collect();
            if curve.bar_s > 0.0 {
                areas.extend(path.iter().map(|&top| Area::stroke(top, (top.0, self.bottom))));
            } else {
                areas.extend(path.windows(2).map(|step| Area::stroke(step[0], step[1])));
            }
        }
        areas
    }

    fn triggers(&self, y: f64) -> Drawn<DB> {
        let labels: Vec<_> = self.chart.story.triggers.iter().collect();
        let centre = |(from, to, _): &(f64, f64, String)| self.x(f64::midpoint(*from, *to));
        let wanted = labels.iter().map(|trigger| (centre(trigger), &trigger.2[..])).collect();
        self.notes(wanted, y, TRIGGER)
    }

    /// A marker for each action, and the labels for which there is room.
    fn operator(&self, y: f64) -> Drawn<DB> {
        let actions = &self.chart.story.operator;
        for (at, _) in actions {
            let (x, top) = (self.x(*at), self.top);
            let corners = [(x - 4.5, top - 8.0), (x + 4.5, top - 8.0), (x, top)];
            self.paper.shape(&corners, OPERATOR)?;
        }
        self.notes(actions.iter().map(|(at, what)| (self.x(*at), &what[..])).collect(), y, OPERATOR)
    }

    fn notes(&self, wanted: Vec<(f64, &str)>, y: f64, colour: RGBColor) -> Drawn<DB> {
        let note = Type { colour, ..NOTE };
        let mut texts = Vec::with_capacity(wanted.len());
        let mut sizes = Vec::with_capacity(wanted.len());
        for (centre, text) in wanted {
            let text = self.paper.cut(text, note, 300.0)?;
            sizes.push((centre, self.paper.width(&text, note)?));
            texts.push(text);
        }
        for (text, left) in texts.iter().zip(thin_labels(&sizes, LEFT, RIGHT)) {
            if let Some(left) = left {
                self.paper.text(text, (left, y), note)?;
            }
        }
        Ok(())
    }

    fn x(&self, at: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * self.chart.clock.share(at)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.chart.scale.share(value)
    }
}

/// For labels given by centre and width, by rising centre: where each begins, or `None` when it
/// would touch the one before. A label near an end is moved inside.
fn thin_labels(wanted: &[(f64, f64)], from: f64, to: f64) -> Vec<Option<f64>> {
    const GAP: f64 = 16.0;
    let mut free = from;
    let mut place = |&(centre, width): &(f64, f64)| {
        let left = (centre - width / 2.0).min(to - width).max(from);
        let fits = left >= free;
        if fits {
            free = left + width + GAP;
        }
        fits.then_some(left)
    };
    wanted.iter().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_would_touch_the_one_before_is_left_out() {
        let wanted = [(100.0, 80.0), (150.0, 80.0), (220.0, 80.0)];
        assert_eq!(thin_labels(&wanted, 0.0, 500.0), [Some(60.0), None, Some(180.0)]);
    }

    #[test]
    fn a_label_near_an_end_is_moved_inside() {
        assert_eq!(thin_labels(&[(5.0, 80.0)], 0.0, 500.0), [Some(0.0)]);
        assert_eq!(thin_labels(&[(499.0, 80.0)], 0.0, 500.0), [Some(420.0)]);
    }
}
