//! Pictures of a run: load, queues, amplification, response time and herds, each as SVG and PNG;
//! and one of many runs, the choice between retry policies ([`draw_tradeoff`]).
//!
//! One and the same code draws both. The font is part of the program, so that nothing is needed of
//! the machine and a picture is the same on each; an SVG leaves the font to its viewer. The PNG is
//! drawn larger than it is and averaged down, since the rasteriser of plotters smooths neither wide
//! lines nor the places of letters.

mod axis;
mod canvas;
mod charts;
mod herd;
mod labels;
mod paper;
mod tradeoff;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;

use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::drawing::IntoDrawingArea;
use plotters::prelude::DrawingBackend;
use plotters::style::{Color, FontStyle, RGBColor, register_font};

use crate::measure::Record;
use crate::model::Model;
use charts::Source;
use herd::HerdSource;
use paper::{FINE, Paper, Picture, SIZE};
pub use tradeoff::{Tradeoff, TradeoffField, draw_tradeoff};

/// A picture could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The drawing failed.
    #[error("cannot draw {}: {why}", .path.display())]
    Draw {
        /// Which picture.
        path: PathBuf,
        /// What the drawing library says.
        why: String,
    },
    /// The file could not be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Draws all plots of a run into `dir`: `load`, `queue`, `amplification`, `response_time`, and
/// `herd` where a tier is one (`herd_<tier>` where several are), each as SVG and PNG. `twin` is the
/// same run without triggers, shown for comparison. Gives the paths written.
///
/// # Errors
/// When a picture cannot be drawn or written. What was written before stays; nothing half-written
/// does.
pub fn draw(
    model: &Model,
    record: &Record,
    twin: Option<&Record>,
    dir: &Path,
) -> Result<Vec<PathBuf>, PlotError> {
    embed_font();
    let source = Source::new(model, record, twin);
    let mut written = Vec::new();
    for (name, chart) in source.charts() {
        written.extend(write_both(dir, name, &chart)?);
    }
    let herds = model.tier_ids().filter_map(|tier| HerdSource::new(model, record, tier));
    let herds: Vec<HerdSource<'_>> = herds.collect();
    for herd in &herds {
        let name = if herds.len() == 1 { "herd" } else { &format!("herd_{}", herd.tier_name()) };
        written.extend(write_both(dir, name, &herd.pair())?);
    }
    Ok(written)
}

/// Writes a picture as SVG and as PNG.
fn write_both(dir: &Path, name: &str, picture: &impl Picture) -> Result<[PathBuf; 2], PlotError> {
    let vector = write(dir, name, "svg", |to| svg(picture, to))?;
    Ok([vector, write(dir, name, "png", |to| png(picture, to))?])
}

/// Why a picture failed, before its path is known.
enum Failure {
    Drawing(String),
    Writing(io::Error),
}

impl Failure {
    fn drawing(error: impl ToString) -> Self {
        Failure::Drawing(error.to_string())
    }
}

/// Writes beside the file and renames: whoever looks sees the old picture or the new one.
fn write(
    dir: &Path,
    name: &str,
    kind: &str,
    draw: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<PathBuf, PlotError> {
    let path = dir.join(format!("{name}.{kind}"));
    let unfinished = dir.join(format!(".{name}.unfinished.{kind}"));
    let done = draw(&unfinished)
        .and_then(|()| std::fs::rename(&unfinished, &path).map_err(Failure::Writing));
    let Err(failure) = done else { return Ok(path) };
    // The failure that counts has happened; the file may not even exist.
    let _ = std::fs::remove_file(&unfinished);
    Err(match failure {
        Failure::Drawing(why) => PlotError::Draw { path, why },
        Failure::Writing(source) => PlotError::Write { path, source },
    })
}

fn svg(picture: &impl Picture, to: &Path) -> Result<(), Failure> {
    let (width, height) = (SIZE.0 * FINE, SIZE.1 * FINE);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
        let paper = Paper::white(&area).map_err(Failure::drawing)?;
        picture.draw(&paper).map_err(Failure::drawing)?;
        area.present().map_err(Failure::drawing)?;
    }
    let large = format!("width=\"{width}\" height=\"{height}\"");
    let shown = format!("width=\"{}\" height=\"{}\"", SIZE.0, SIZE.1);
    // Sharp turns of a curve would end in long spikes.
    let text = text.replacen(&large, &shown, 1).replace("<polyline ", ROUND_POLYLINE);
    std::fs::write(to, text).map_err(Failure::Writing)
}

const ROUND_POLYLINE: &str = "<polyline stroke-linejoin=\"round\" ";

fn png(picture: &impl Picture, to: &Path) -> Result<(), Failure> {
    let (width, height) = (SIZE.0 * FINE, SIZE.1 * FINE);
    let mut large = vec![0; (width * height * 3) as usize];
    {
        let backend = BitMapBackend::with_buffer(&mut large, (width, height));
        let area = backend.into_drawing_area();
        let paper = Paper::white(&area).map_err(Failure::drawing)?;
        picture.draw(&paper).map_err(Failure::drawing)?;
        area.present().map_err(Failure::drawing)?;
    }
    let mut small = BitMapBackend::new(to, SIZE);
    for y in 0..SIZE.1 {
        for x in 0..SIZE.0 {
            let colour = mean_colour(&large, x, y).to_backend_color();
            let place = (x as i32, y as i32);
            small.draw_pixel(place, colour).map_err(Failure::drawing)?;
        }
    }
    small.present().map_err(Failure::drawing)
}

/// The mean of the steps that make up a pixel.
fn mean_colour(large: &[u8], x: u32, y: u32) -> RGBColor {
    let row = (SIZE.0 * FINE) as usize;
    let mut sums = [0; 3];
    for step in 0..FINE * FINE {
        let (across, down) = (x * FINE + step % FINE, y * FINE + step / FINE);
        let start = 3 * (down as usize * row + across as usize);
        for (sum, &part) in sums.iter_mut().zip(&large[start..start + 3]) {
            *sum += u32::from(part);
        }
    }
    let [red, green, blue] = sums.map(|sum| (sum / (FINE * FINE)) as u8);
    RGBColor(red, green, blue)
}

/// Makes DejaVu Sans known to plotters, which has one table of fonts for the whole program.
fn embed_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (style, bytes) in
            [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())]
        {
            let known = register_font("sans-serif", style, bytes);
            assert!(known.is_ok(), "the embedded font is sound");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Simulation;

    const SPIKE: &str = r#"
        title = "A spike that outlives itself"
        run = { duration = "2m", window = "1s" }
        [tier.client]
        arrivals.poisson = "60/s"
        [tier.client.call.api]
        timeout = "1s"
        attempts = 3
        [tier.api]
        concurrency = 1
        work.exponential = "10ms"
        queue.fifo = { capacity = 300 }
        [[trigger]]
        at = "30s"
        lasts = "20s"
        demand = { client = 2.5 }
        [[playbook]]
        when = { after_trigger = "30s" }
        limit = { api = "20/s" }
    "#;

    fn drawn() -> (tempfile::TempDir, Vec<PathBuf>) {
        let model = Model::parse(SPIKE, &|_| Err("no file".into())).expect("sound");
        let record = Simulation::new(&model, 1, 0.0).run(&mut ());
        let calm = model.untriggered();
        let twin = Simulation::new(&calm, 1, 0.0).run(&mut ());
        let dir = tempfile::tempdir().expect("a place to write");
        let paths = draw(&model, &record, Some(&twin), dir.path()).expect("drawn");
        (dir, paths)
    }

    #[test]
    fn every_plot_is_written_twice_and_nothing_else_is_left() {
        let (dir, paths) = drawn();
        let mut found: Vec<_> =
            dir.path().read_dir().expect("readable").map(|e| e.expect("readable").path()).collect();
        found.sort();
        let mut expected = paths.clone();
        expected.sort();
        assert_eq!((paths.len(), found), (8, expected));
        for path in paths {
            let bytes = std::fs::read(&path).expect("readable");
            let head: &[u8] =
                if path.extension().is_some_and(|e| e == "png") { b"\x89PNG" } else { b"<svg" };
            assert!(bytes.starts_with(head) && bytes.len() > 5_000, "{}", path.display());
        }
    }

    #[test]
    fn the_same_run_gives_the_same_bytes() {
        let ((_first, a), (_second, b)) = (drawn(), drawn());
        for (a, b) in a.iter().zip(&b) {
            assert!(std::fs::read(a).expect("readable") == std::fs::read(b).expect("readable"));
        }
    }

    #[test]
    fn an_error_names_the_file_that_could_not_be_written() {
        let model = Model::parse(SPIKE, &|_| Err("no file".into())).expect("sound");
        let failed = draw(
            &model,
            &Record { tiers: vec![Vec::new(); 2], ..Record::default() },
            None,
            Path::new("/no/such"),
        );
        assert!(failed.expect_err("no directory").to_string().contains("/no/such/load.svg"));
    }
}
