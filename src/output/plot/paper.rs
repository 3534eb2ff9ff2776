//! A sheet of paper: lines, texts and shapes at places in pixels, the same on every backend.
//!
//! Everything is drawn [`FINE`] times as large as it is shown: plotters knows whole pixels only,
//! and lines and letters would be set a pixel off.

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle,
};

/// Size of the picture [px].
pub const SIZE: (u32, u32) = (1200, 675);

/// Steps to a pixel, each way.
pub const FINE: u32 = 3;

/// Colour of what is read first.
pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Colour of what explains it.
pub const QUIET: RGBColor = RGBColor(0x66, 0x66, 0x66);
/// Colour of the grid.
pub const GRID: RGBColor = RGBColor(0xdf, 0xdf, 0xdf);

/// Outcome of drawing on a backend.
pub type Drawn<DB> = Known<(), DB>;

/// What could be found out about a text on a backend.
pub type Known<T, DB> = Result<T, DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// From the left and from the top [px].
pub type Place = (f64, f64);

/// What can be drawn, by the same strokes on every backend.
pub trait Picture {
    /// Draws it on an empty sheet.
    fn draw<DB: DrawingBackend>(&self, paper: &Paper<'_, DB>) -> Drawn<DB>;
}

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

/// How a text is set.
#[derive(Clone, Copy)]
pub struct Type {
    /// Height of a line [px].
    pub size: f64,
    /// Heavy letters.
    pub bold: bool,
    /// Colour.
    pub colour: RGBColor,
    /// Which part of the text lies at its place.
    pub across: HPos,
    /// Read from the bottom up.
    pub upwards: bool,
}

/// Names of axes.
pub const PLAIN: Type =
    Type { size: 16.0, bold: false, colour: INK, across: HPos::Left, upwards: false };
/// The first line.
pub const TITLE: Type = Type { size: 25.0, bold: true, ..PLAIN };
/// The second line.
pub const SUBTITLE: Type = Type { size: 17.0, colour: QUIET, ..PLAIN };
/// Everything else.
pub const NOTE: Type = Type { size: 15.0, ..PLAIN };

/// An area of [`SIZE`] times [`FINE`].
pub struct Paper<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
}

impl<'a, DB: DrawingBackend> Paper<'a, DB> {
    /// An empty sheet.
    pub fn white(area: &'a DrawingArea<DB, Shift>) -> Known<Self, DB> {
        area.fill(&plotters::style::WHITE)?;
        Ok(Paper { area })
    }

    /// The two lines on top, cut to the width of the sheet.
    pub fn head(&self, title: &str, subtitle: &str) -> Drawn<DB> {
        let room = f64::from(SIZE.0) - 56.0;
        self.text(&self.cut(title, TITLE, room)?, (28.0, 32.0), TITLE)?;
        self.text(&self.cut(subtitle, SUBTITLE, room)?, (28.0, 58.0), SUBTITLE)
    }

    /// A line through these places.
    pub fn line(&self, path: &[Place], pen: Pen) -> Drawn<DB> {
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

    /// A text, its middle at this height.
    pub fn text(&self, text: &str, at: Place, kind: Type) -> Drawn<DB> {
        // Plotters centres the line with its descenders, which sets digits too high beside their
        // tick.
        let drop = kind.size * 0.13;
        let (x, y) = if kind.upwards { (at.0 + drop, at.1) } else { (at.0, at.1 + drop) };
        self.area.draw_text(text, &style(kind), fine((x, y)))
    }

    /// How wide a text is.
    pub fn width(&self, text: &str, kind: Type) -> Known<f64, DB> {
        let (width, _) = self.area.estimate_text_size(text, &style(kind))?;
        Ok(f64::from(width) / f64::from(FINE))
    }

    /// A text, or as much of its beginning as there is room for.
    pub fn cut(&self, text: &str, kind: Type, room: f64) -> Known<String, DB> {
        let mut shown = text.to_owned();
        let mut kept = text.chars().count();
        while self.width(&shown, kind)? > room && kept > 0 {
            kept -= 1;
            shown = text.chars().take(kept).chain(['…']).collect();
        }
        Ok(shown)
    }

    /// A filled rectangle between two opposite corners.
    pub fn fill(&self, from: Place, to: Place, colour: RGBColor) -> Drawn<DB> {
        self.area.draw(&Rectangle::new([fine(from), fine(to)], colour.filled()))
    }

    /// A filled disc.
    pub fn disc(&self, at: Place, radius: f64, colour: RGBColor) -> Drawn<DB> {
        let radius = (radius * f64::from(FINE)) as i32;
        self.area.draw(&Circle::new(fine(at), radius, colour.filled()))
    }

    /// A filled shape.
    pub fn shape(&self, corners: &[Place], colour: RGBColor) -> Drawn<DB> {
        let corners: Vec<_> = corners.iter().map(|&corner| fine(corner)).collect();
        self.area.draw(&Polygon::new(corners, colour.filled()))
    }
}

fn fine((x, y): Place) -> (i32, i32) {
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
