//! A chart on paper: title, legend, shaded times, grid, curves. The same strokes for every backend.
//!
//! Why not the chart builder of plotters: legend and labels would lie on top of the data. Here both
//! have rows of their own above it, which are as high as what they hold, so that no text can hide a
//! curve or another text. Everything is drawn [`FINE`] times as large as it is shown: plotters
//! knows whole pixels only, and lines and letters would be set a pixel off.

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle,
};

use super::axis::{Clock, Scale};

/// Size of the picture [px].
pub const SIZE: (u32, u32) = (1200, 675);

/// Steps to a pixel, each way.
pub const FINE: u32 = 3;

const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const QUIET: RGBColor = RGBColor(0x66, 0x66, 0x66);
const GRID: RGBColor = RGBColor(0xdf, 0xdf, 0xdf);
const TRIGGER: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const TRIGGER_SHADE: RGBColor = RGBColor(0xfd, 0xe6, 0xe0);
const OPERATOR: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const OPERATOR_SHADE: RGBColor = RGBColor(0xe8, 0xf3, 0xfb);

const LEFT: f64 = 96.0;
const RIGHT: f64 = 1172.0;
const BOTTOM: f64 = 613.0;
const LEGEND_TOP: f64 = 78.0;
const ROW: f64 = 24.0;

/// Outcome of drawing on a backend.
pub type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pen {
    /// Colour.
    pub colour: RGBColor,
    /// Width [px].
    pub width: f64,
    /// Length of a dash and of the gap after it [px]; 0: unbroken.
    pub dash: f64,
}

/// A line of a chart, by rising time; `None` breaks it.
#[derive(Clone, Debug)]
pub struct Curve {
    /// How it looks.
    pub pen: Pen,
    /// Time (s) and value.
    pub points: Vec<(f64, Option<f64>)>,
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
}

/// How a text is set.
#[derive(Clone, Copy)]
struct Type {
    size: f64,
    bold: bool,
    colour: RGBColor,
    across: HPos,
    upwards: bool,
}

const PLAIN: Type =
    Type { size: 16.0, bold: false, colour: INK, across: HPos::Left, upwards: false };
const TITLE: Type = Type { size: 25.0, bold: true, ..PLAIN };
const SUBTITLE: Type = Type { size: 17.0, colour: QUIET, ..PLAIN };
const NOTE: Type = Type { size: 15.0, ..PLAIN };

struct Canvas<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
    chart: &'a Chart<'a>,
    top: f64,
}

/// Draws a chart on an area of [`SIZE`] times [`FINE`].
pub fn draw<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, chart: &Chart<'_>) -> Drawn<DB> {
    area.fill(&plotters::style::WHITE)?;
    let mut canvas = Canvas { area, chart, top: 0.0 };
    let room = RIGHT - 28.0;
    canvas.text(&canvas.cut(chart.title, TITLE, room)?, (28.0, 32.0), TITLE)?;
    canvas.text(&canvas.cut(&chart.subtitle, SUBTITLE, room)?, (28.0, 58.0), SUBTITLE)?;
    let legend_end = canvas.legend()?;
    let triggers = if chart.story.triggers.is_empty() { 0.0 } else { ROW };
    let operator = if chart.story.operator.is_empty() { 0.0 } else { ROW };
    canvas.top = legend_end + 20.0 + triggers + operator;
    canvas.shades()?;
    canvas.grid()?;
    canvas.triggers(canvas.top - operator - 13.0)?;
    canvas.operator(canvas.top - 19.0)?;
    chart.curves.iter().try_for_each(|curve| canvas.curve(curve))
}

impl<DB: DrawingBackend> Canvas<'_, DB> {
    /// Names and their lines, row after row; gives the middle of the last row.
    fn legend(&self) -> Result<f64, DrawingAreaErrorKind<DB::ErrorType>> {
        let (mut x, mut y) = (LEFT, LEGEND_TOP + 12.0);
        for (name, pen) in &self.chart.legend {
            let name = self.cut(name, NOTE, 420.0)?;
            let width = 34.0 + self.width(&name, NOTE)? + 26.0;
            if x > LEFT && x + width > RIGHT + 26.0 {
                (x, y) = (LEFT, y + ROW - 2.0);
            }
            self.line(&[(x, y), (x + 26.0, y)], *pen)?;
            self.text(&name, (x + 34.0, y), NOTE)?;
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
        let corners = [fine((left, self.top)), fine((right, BOTTOM))];
        self.area.draw(&Rectangle::new(corners, colour.filled()))
    }

    fn grid(&self) -> Drawn<DB> {
        let thin = |colour| Pen { colour, width: 1.0, dash: 0.0 };
        let chart = self.chart;
        let right = Type { across: HPos::Right, ..NOTE };
        for tick in chart.scale.ticks() {
            let y = self.y(tick.value);
            self.line(&[(LEFT, y), (RIGHT, y)], thin(GRID))?;
            if tick.labelled {
                let text = (chart.tick_text)(tick.value, chart.scale.decimals());
                self.text(&text, (LEFT - 10.0, y), right)?;
            }
        }
        let centre = Type { across: HPos::Center, ..NOTE };
        for (at, label) in chart.clock.ticks() {
            let x = self.x(at);
            self.line(&[(x, self.top), (x, BOTTOM)], thin(GRID))?;
            self.line(&[(x, BOTTOM), (x, BOTTOM + 5.0)], thin(QUIET))?;
            self.text(&label, (x, BOTTOM + 18.0), centre)?;
        }
        self.line(&[(LEFT, BOTTOM), (RIGHT, BOTTOM)], thin(QUIET))?;
        let middle = f64::midpoint(LEFT, RIGHT);
        let centre = Type { across: HPos::Center, colour: QUIET, ..PLAIN };
        self.text(&format!("time [{}]", chart.clock.unit), (middle, BOTTOM + 43.0), centre)?;
        let upwards = Type { upwards: true, ..centre };
        self.text(chart.measures, (22.0, f64::midpoint(self.top, BOTTOM)), upwards)
    }

    /// A curve in its unbroken pieces; a piece of one point is a dot.
    fn curve(&self, curve: &Curve) -> Drawn<DB> {
        let top = self.chart.scale.top() * 1.000_001;
        let beyond = |value: &Option<f64>| value.is_none_or(|value| value > top);
        for piece in curve.points.split(|(_, value)| beyond(value)) {
            let place = |&(at, value): &(f64, Option<f64>)| Some((self.x(at), self.y(value?)));
            let path: Vec<_> = piece.iter().filter_map(place).collect();
            match path[..] {
                [] => {}
                [point] => {
                    let radius = (curve.pen.width * f64::from(FINE)) as i32;
                    let dot = Circle::new(fine(point), radius, curve.pen.colour.filled());
                    self.area.draw(&dot)?;
                }
                _ => self.line(&path, curve.pen)?,
            }
        }
        Ok(())
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
            self.area.draw(&Polygon::new(corners.map(fine), OPERATOR.filled()))?;
        }
        self.notes(actions.iter().map(|(at, what)| (self.x(*at), &what[..])).collect(), y, OPERATOR)
    }

    fn notes(&self, wanted: Vec<(f64, &str)>, y: f64, colour: RGBColor) -> Drawn<DB> {
        let note = Type { colour, ..NOTE };
        let mut texts = Vec::with_capacity(wanted.len());
        let mut sizes = Vec::with_capacity(wanted.len());
        for (centre, text) in wanted {
            let text = self.cut(text, note, 300.0)?;
            sizes.push((centre, self.width(&text, note)?));
            texts.push(text);
        }
        for (text, left) in texts.iter().zip(thin_labels(&sizes, LEFT, RIGHT)) {
            if let Some(left) = left {
                self.text(text, (left, y), note)?;
            }
        }
        Ok(())
    }

    fn line(&self, path: &[(f64, f64)], pen: Pen) -> Drawn<DB> {
        let mut path: Vec<(i32, i32)> = path.iter().map(|&point| fine(point)).collect();
        // The rasteriser has no direction for a step of no length.
        path.dedup();
        let width = (pen.width * f64::from(FINE)) as u32;
        let style = ShapeStyle { color: pen.colour.to_rgba(), filled: false, stroke_width: width };
        if pen.dash > 0.0 {
            let dash = (pen.dash * f64::from(FINE)) as i32;
            return self.area.draw(&DashedPathElement::new(path, dash, dash, style));
        }
        self.area.draw(&PathElement::new(path, style))
    }

    fn text(&self, text: &str, at: (f64, f64), kind: Type) -> Drawn<DB> {
        // Plotters centres the line with its descenders, which sets digits too high beside their
        // tick.
        let drop = kind.size * 0.13;
        let (x, y) = if kind.upwards { (at.0 + drop, at.1) } else { (at.0, at.1 + drop) };
        self.area.draw_text(text, &style(kind), fine((x, y)))
    }

    fn width(&self, text: &str, kind: Type) -> Result<f64, DrawingAreaErrorKind<DB::ErrorType>> {
        let (width, _) = self.area.estimate_text_size(text, &style(kind))?;
        Ok(f64::from(width) / f64::from(FINE))
    }

    /// A text, or as much of its beginning as there is room for.
    fn cut(
        &self,
        text: &str,
        kind: Type,
        room: f64,
    ) -> Result<String, DrawingAreaErrorKind<DB::ErrorType>> {
        let mut shown = text.to_owned();
        let mut kept = text.chars().count();
        while self.width(&shown, kind)? > room && kept > 0 {
            kept -= 1;
            shown = text.chars().take(kept).chain(['…']).collect();
        }
        Ok(shown)
    }

    fn x(&self, at: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * self.chart.clock.share(at)
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - self.top) * self.chart.scale.share(value)
    }
}

fn fine((x, y): (f64, f64)) -> (i32, i32) {
    ((x * f64::from(FINE)).round() as i32, (y * f64::from(FINE)).round() as i32)
}

fn style(kind: Type) -> TextStyle<'static> {
    let weight = if kind.bold { FontStyle::Bold } else { FontStyle::Normal };
    let turn = if kind.upwards { FontTransform::Rotate270 } else { FontTransform::None };
    let font = FontDesc::new(FontFamily::SansSerif, kind.size * f64::from(FINE), weight);
    TextStyle {
        color: kind.colour.to_backend_color(),
        pos: Pos::new(kind.across, VPos::Center),
        ..TextStyle::from(font.transform(turn))
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
