//! The picture: a panel for each series, all axes logarithmic. Time is read on the left, memory on
//! the right; both axes span as many decades, so that slopes can be compared and one grid serves
//! both.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, DashedPathElement, PathElement, Rectangle};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBColor, ShapeStyle, TextStyle};
use plotters::style::{WHITE, register_font};

use crate::Measured;
use crate::point::Series;

/// Size of the picture [px].
const SIZE: (f64, f64) = (960.0, 660.0);
/// Steps to a pixel: plotters knows whole ones only.
const FINE: f64 = 3.0;

const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GRID: RGBColor = RGBColor(0xdf, 0xdf, 0xdf);
// Of the colours of Okabe and Ito, which the colour-blind tell apart.
const TIME: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const TIME_TWO: RGBColor = RGBColor(0x00, 0x9e, 0x73);
const MEMORY: RGBColor = RGBColor(0xd5, 0x5e, 0x00);

type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// How points of a curve are marked: not by colour alone.
#[derive(Clone, Copy)]
enum Mark {
    Dot,
    Square,
    Ring,
}

struct Curve {
    label: &'static str,
    colour: RGBColor,
    mark: Mark,
    memory: bool,
    points: Vec<(f64, f64)>,
}

/// Whole decades of an axis, by the exponents of their ends.
#[derive(Clone, Copy)]
struct Decades {
    low: f64,
    high: f64,
}

struct Panel<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
    /// Upper left corner of the panel [px].
    corner: (f64, f64),
    x: Decades,
    time: Decades,
    memory: Decades,
}

// Edges of the data within a panel [px].
const LEFT: f64 = 48.0;
const RIGHT: f64 = 274.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 270.0;

/// Draws the picture of all series.
pub fn write(all: &[Measured], to: &Path) -> Result<()> {
    for (style, bytes) in
        [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())]
    {
        register_font("sans-serif", style, bytes).map_err(|_| anyhow!("the font is no font"))?;
    }
    let size = ((SIZE.0 * FINE) as u32, (SIZE.1 * FINE) as u32);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area, all).map_err(|error| anyhow!("{error}"))?;
        area.present().map_err(|error| anyhow!("{error}"))?;
    }
    let large = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
    let shown = format!("width=\"{}\" height=\"{}\"", SIZE.0, SIZE.1);
    fs::write(to, text.replacen(&large, &shown, 1)).with_context(|| format!("cannot write {to:?}"))
}

fn draw<DB: DrawingBackend>(area: &DrawingArea<DB, Shift>, all: &[Measured]) -> Drawn<DB> {
    area.fill(&WHITE)?;
    for (place, measured) in all.iter().enumerate() {
        let corner = (SIZE.0 / 3.0 * (place % 3) as f64, SIZE.1 / 2.0 * (place / 3) as f64);
        let curves = curves(measured);
        let of = |memory: bool| {
            let curves = curves.iter().filter(move |curve| curve.memory == memory);
            curves.flat_map(|curve| curve.points.iter().map(|point| point.1))
        };
        let sizes = measured.points.iter().map(|point| f64::from(point.size));
        let (time, memory) = (Decades::of(of(false)), Decades::of(of(true)));
        let most = time.count().max(memory.count());
        let (time, memory) = (time.widened_up(most), memory.widened_up(most));
        let panel = Panel { area, corner, x: Decades::tight(sizes), time, memory };
        panel.text(measured.series.title(), (LEFT, 20.0), HPos::Left, INK, 15.0)?;
        panel.axes(measured.series.counts())?;
        for (row, curve) in curves.iter().enumerate() {
            panel.legend(curve, 38.0 + 16.0 * row as f64)?;
            panel.curve(curve)?;
        }
    }
    Ok(())
}

fn curves(measured: &Measured) -> Vec<Curve> {
    let points = |y: &dyn Fn(&crate::Point) -> Option<f64>| -> Vec<(f64, f64)> {
        let place = |point| Some((f64::from(crate::Point::clone(point).size), y(point)?));
        measured.points.iter().filter_map(place).collect()
    };
    let time = |label, mark, colour, y: &dyn Fn(&crate::Point) -> Option<f64>| Curve {
        label,
        colour,
        mark,
        memory: false,
        points: points(y),
    };
    let mut curves = match measured.series {
        Series::Seeds => vec![
            time("wall time, 1 thread [s]", Mark::Dot, TIME, &|p| Some(p.one.wall_s)),
            time("wall time, 2 threads [s]", Mark::Ring, TIME_TWO, &|p| Some(p.two?.wall_s)),
        ],
        Series::InFlight => {
            vec![time("CPU time per event [ns]", Mark::Dot, TIME, &|p| Some(p.one.ns_per_event()))]
        }
        _ => vec![time("CPU time per simulated second [ms]", Mark::Dot, TIME, &|p| {
            Some(measured.cpu_ms_per_simulated_s(p))
        })],
    };
    curves.push(Curve {
        label: "peak memory [MB]",
        colour: MEMORY,
        mark: Mark::Square,
        memory: true,
        points: points(&|p| p.one.peak_mb),
    });
    curves
}

impl Decades {
    /// Whole decades that hold all values.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let ends = Decades::tight(values);
        let (low, high) = (ends.low.floor(), ends.high.ceil());
        if low.is_finite() { Decades { low, high: high.max(low + 1.0) } } else { ends.or_one() }
    }

    /// From the least value to the most.
    fn tight(values: impl Iterator<Item = f64>) -> Self {
        values.map(f64::log10).fold(Decades { low: f64::INFINITY, high: -f64::INFINITY }, |d, v| {
            Decades { low: d.low.min(v), high: d.high.max(v) }
        })
    }

    /// Where nothing was measured.
    fn or_one(self) -> Self {
        Decades { low: 0.0, high: 1.0 }
    }

    fn count(self) -> f64 {
        self.high - self.low
    }

    fn widened_up(self, count: f64) -> Self {
        Decades { high: self.low + count, ..self }
    }

    fn share(self, value: f64) -> f64 {
        (value.log10() - self.low) / self.count()
    }

    /// 1, 2, 5 of each decade within the ends, and whether it has a number.
    fn ticks(self) -> Vec<(f64, bool)> {
        let narrow = self.count() < 1.9;
        let decades = (self.low.floor() as i32)..=(self.high.floor() as i32);
        let digits = decades.flat_map(|d| [1.0, 2.0, 5.0].map(|digit| (digit, 10f64.powi(d))));
        digits
            .map(|(digit, unit)| (digit * unit, digit == 1.0 || narrow))
            .filter(|(value, _)| (-1e-9..=1.0 + 1e-9).contains(&self.share(*value)))
            .collect()
    }
}

impl<DB: DrawingBackend> Panel<'_, DB> {
    fn axes(&self, counts: &str) -> Drawn<DB> {
        for (value, labelled) in self.time.ticks() {
            let y = self.y(self.time, value);
            self.line(&[(LEFT, y), (RIGHT, y)], GRID, 1.0)?;
            if labelled {
                self.text(&tick_text(value), (LEFT - 6.0, y), HPos::Right, TIME, 12.0)?;
            }
        }
        for (value, labelled) in self.memory.ticks() {
            if labelled {
                let y = self.y(self.memory, value);
                self.text(&tick_text(value), (RIGHT + 6.0, y), HPos::Left, MEMORY, 12.0)?;
            }
        }
        for (value, labelled) in self.x.ticks() {
            let x = self.at(value);
            self.line(&[(x, TOP), (x, BOTTOM)], GRID, 1.0)?;
            if labelled {
                self.text(&tick_text(value), (x, BOTTOM + 14.0), HPos::Center, INK, 12.0)?;
            }
        }
        self.line(&[(LEFT, BOTTOM), (RIGHT, BOTTOM)], INK, 1.0)?;
        self.text(counts, ((LEFT + RIGHT) / 2.0, BOTTOM + 33.0), HPos::Center, INK, 12.0)
    }

    fn legend(&self, curve: &Curve, y: f64) -> Drawn<DB> {
        self.stroke(curve, &[(LEFT, y), (LEFT + 24.0, y)])?;
        self.mark(curve, (LEFT + 12.0, y))?;
        self.text(curve.label, (LEFT + 30.0, y), HPos::Left, curve.colour, 12.0)
    }

    fn curve(&self, curve: &Curve) -> Drawn<DB> {
        let axis = if curve.memory { self.memory } else { self.time };
        let path: Vec<_> =
            curve.points.iter().map(|&(x, y)| (self.at(x), self.y(axis, y))).collect();
        self.stroke(curve, &path)?;
        path.iter().try_for_each(|&at| self.mark(curve, at))
    }

    fn stroke(&self, curve: &Curve, path: &[(f64, f64)]) -> Drawn<DB> {
        if !curve.memory {
            return self.line(path, curve.colour, 2.0);
        }
        let path: Vec<_> = path.iter().map(|&at| self.fine(at)).collect();
        let dash = (5.0 * FINE) as i32;
        self.area.draw(&DashedPathElement::new(path, dash, dash, stroke(curve.colour, 2.0)))
    }

    fn mark(&self, curve: &Curve, at: (f64, f64)) -> Drawn<DB> {
        let size = 3.6;
        let centre = self.fine(at);
        let radius = (size * FINE) as i32;
        match curve.mark {
            Mark::Dot => self.area.draw(&Circle::new(centre, radius, curve.colour.filled())),
            Mark::Ring => {
                self.area.draw(&Circle::new(centre, radius, WHITE.filled()))?;
                self.area.draw(&Circle::new(centre, radius, stroke(curve.colour, 1.6)))
            }
            Mark::Square => {
                let corners = [(at.0 - size, at.1 - size), (at.0 + size, at.1 + size)];
                let corners = corners.map(|corner| self.fine(corner));
                self.area.draw(&Rectangle::new(corners, curve.colour.filled()))
            }
        }
    }

    fn line(&self, path: &[(f64, f64)], colour: RGBColor, width: f64) -> Drawn<DB> {
        let path: Vec<_> = path.iter().map(|&at| self.fine(at)).collect();
        self.area.draw(&PathElement::new(path, stroke(colour, width)))
    }

    fn text(
        &self,
        text: &str,
        at: (f64, f64),
        across: HPos,
        colour: RGBColor,
        size: f64,
    ) -> Drawn<DB> {
        let weight = if size > 12.0 { FontStyle::Bold } else { FontStyle::Normal };
        let style = TextStyle {
            color: colour.to_backend_color(),
            pos: Pos::new(across, VPos::Center),
            ..TextStyle::from(FontDesc::new(FontFamily::SansSerif, size * FINE, weight))
        };
        // Plotters centres a line with its descenders, which sets digits too high.
        self.area.draw_text(text, &style, self.fine((at.0, at.1 + size * 0.13)))
    }

    fn at(&self, size: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * self.x.share(size)
    }

    fn y(&self, axis: Decades, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * axis.share(value)
    }

    fn fine(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let whole = |value: f64| (value * FINE).round() as i32;
        (whole(self.corner.0 + x), whole(self.corner.1 + y))
    }
}

fn stroke(colour: RGBColor, width: f64) -> ShapeStyle {
    let stroke_width = (width * FINE) as u32;
    ShapeStyle { color: colour.to_rgba(), filled: false, stroke_width }
}

/// A number at a tick: `0.1`, `20`, `3k`, `1M`.
fn tick_text(value: f64) -> String {
    let (scaled, unit) = match value {
        0.999e6.. => (value / 1e6, "M"),
        0.999e3.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let places = if scaled > 0.999 { 0 } else { (-scaled.log10()).ceil() as usize };
    format!("{scaled:.places$}{unit}")
}
