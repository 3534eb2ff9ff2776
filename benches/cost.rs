//! What a run costs: processor time and memory, as load, tiers, windows, clients, seeds and
//! requests in flight grow.
//!
//! Each point runs in a process of its own, a child of this program, so that its peak of memory is
//! its own. `cargo bench --bench cost` prints the tables; with `-- --write` they go into
//! `benches/cost.md`, and the picture into `benches/cost.svg`.

#[path = "cost/picture.rs"]
mod picture;
#[path = "cost/point.rs"]
mod point;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use comfy_table::{Cell, CellAlignment, Table, presets};

use point::{Report, Series};

/// How often each point is measured. The least counts: what other programs on the machine add to a
/// cost differs from round to round.
const ROUNDS: u32 = 3;

const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";

/// A series as measured.
struct Measured {
    series: Series,
    points: Vec<Point>,
}

/// One point of a series.
#[derive(Clone, Copy)]
struct Point {
    size: u32,
    one: Report,
    /// The same on two threads; seeds alone.
    two: Option<Report>,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [command, series, size, threads] = &arguments[..]
        && command == "point"
    {
        let series = Series::named(series).context("no series of this name")?;
        println!("{}", point::measure(series, size.parse()?, threads.parse()?)?.line());
        return Ok(());
    }
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    // Cargo says `--bench` when it measures; without it, or with `--test`, this is a mere test.
    if has("--test") || !has("--bench") {
        let report = spawn(Series::Load, 100, 1)?;
        ensure!(report.events > 0, "a run without events");
        return Ok(());
    }
    let measured = measure_all()?;
    let tables: String = measured.iter().map(|measured| measured.text()).collect();
    print!("{tables}");
    if has("--write") {
        write_page(&tables)?;
        picture::write(&measured, &beside_this("cost.svg"))?;
    }
    Ok(())
}

/// Every point, round after round, so that a busy minute of the machine falls on all series.
fn measure_all() -> Result<Vec<Measured>> {
    let mut all: Vec<Measured> = Series::ALL.map(Measured::empty).into();
    for round in 1..=ROUNDS {
        for measured in &mut all {
            eprintln!("round {round} of {ROUNDS}: {}", measured.series.title());
            measured.add_round()?;
        }
    }
    Ok(all)
}

impl Measured {
    fn empty(series: Series) -> Self {
        Measured { series, points: Vec::new() }
    }

    fn add_round(&mut self) -> Result<()> {
        for (place, &size) in self.series.sizes().iter().enumerate() {
            let one = spawn(self.series, size, 1)?;
            let two = match self.series {
                Series::Seeds => Some(spawn(self.series, size, 2)?),
                _ => None,
            };
            match self.points.get_mut(place) {
                None => self.points.push(Point { size, one, two }),
                Some(point) => {
                    point.one = point.one.least(one);
                    point.two = point.two.zip(two).map(|(a, b)| a.least(b));
                }
            }
        }
        Ok(())
    }

    /// Title and table, as Markdown.
    fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        let mut titles = vec![self.series.counts(), "simulated s", "events", "CPU ms", "ns/event"];
        titles.extend(["CPU ms per simulated s", "peak MB", "bytes for each more"]);
        if self.series == Series::Seeds {
            titles.extend(["wall s", "wall s, 2 threads", "peak MB, 2 threads"]);
        }
        table.set_header(titles);
        for point in &self.points {
            table.add_row(self.cells(point));
        }
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!("**{}.** {}\n\n{table}\n\n", self.series.title(), self.series.model_in_words())
    }

    fn cells(&self, point: &Point) -> Vec<Cell> {
        let report = point.one;
        let mb = |report: Report| report.peak_mb.map_or("-".into(), figure);
        let mut cells = vec![
            grouped(f64::from(point.size)),
            figure(self.series.simulated_s(point.size)),
            grouped(report.events as f64),
            figure(report.cpu_s * 1e3),
            figure(report.ns_per_event()),
            figure(self.cpu_ms_per_simulated_s(point)),
            mb(report),
            self.bytes_for_each_more(point).map_or("-".into(), grouped),
        ];
        if let Some(two) = point.two {
            cells.extend([figure(report.wall_s), figure(two.wall_s), mb(two)]);
        }
        cells.into_iter().map(Cell::new).collect()
    }

    fn cpu_ms_per_simulated_s(&self, point: &Point) -> f64 {
        point.one.cpu_s * 1e3 / self.series.simulated_s(point.size)
    }

    /// Memory above that of the smallest point, for each that this one has more (B).
    fn bytes_for_each_more(&self, point: &Point) -> Option<f64> {
        let first = self.points.first().filter(|first| first.size < point.size)?;
        let more_mb = point.one.peak_mb? - first.one.peak_mb?;
        Some((more_mb * 1e6 / f64::from(point.size - first.size)).max(0.0))
    }
}

/// Has a point measured in a process of its own.
fn spawn(series: Series, size: u32, threads: usize) -> Result<Report> {
    let program = env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command.args(["point", series.name(), &size.to_string(), &threads.to_string()]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot start a child")?;
    ensure!(output.status.success(), "a child ended with {}", output.status);
    Report::read(&String::from_utf8_lossy(&output.stdout)).context("a child printed no report")
}

fn beside_this(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(name)
}

/// Puts the tables between the marks of the page.
fn write_page(tables: &str) -> Result<()> {
    let path = beside_this("cost.md");
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let (before, rest) = page.split_once(BEGIN).context("the page has no mark of the begin")?;
    let (_, after) = rest.split_once(END).context("the page has no mark of the end")?;
    let page = format!("{before}{BEGIN}\n{tables}{END}{after}");
    fs::write(&path, page).with_context(|| format!("cannot write {path:?}"))
}

/// Three digits or more.
fn figure(value: f64) -> String {
    match value {
        99.95.. => grouped(value),
        9.995.. => format!("{value:.1}"),
        0.9995.. => format!("{value:.2}"),
        0.09995.. => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// A whole number with a separator between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
