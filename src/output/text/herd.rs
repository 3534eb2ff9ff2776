//! The table of a herd: when its clients are through, and what that cost.

use super::{Style, rate, seconds, table};
use crate::model::Model;
use crate::output::herd::Herds;

/// A figure of a herd as pages show it.
struct Column {
    figure: &'static str,
    heading: &'static str,
    show: fn(f64) -> String,
}

const COLUMNS: [Column; 9] = [
    Column { figure: "through_50_s", heading: "50% at", show: seconds },
    Column { figure: "through_90_s", heading: "90% at", show: seconds },
    Column { figure: "through_99_s", heading: "99% at", show: seconds },
    Column { figure: "through_all_s", heading: "all at", show: seconds },
    Column { figure: "sent", heading: "sent", show: rate },
    Column { figure: "peak_per_s", heading: "peak/s", show: rate },
    Column { figure: "attempts_p99", heading: "tries p99", show: rate },
    Column { figure: "backoff_max", heading: "in back-off", show: rate },
    Column { figure: "lost_share", heading: "lost", show: percent },
];

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// The herds of a run, or of many.
pub(super) fn section(model: &Model, herds: &Herds, style: Style) -> String {
    let mut page = String::new();
    for (tier, figures) in herds {
        let clients = model.names.find_tier(tier).map_or(0, |id| model.tier(id).replicas);
        let title = style.bold(&format!("Herd of {tier} ({clients} clients)"));
        let names = COLUMNS.iter().map(|column| column.heading);
        let cell = |column: &Column| {
            let figure = figures.get(column.figure);
            figure.map_or("never".into(), |figure| (column.show)(figure.mean))
        };
        let spread = |column: &Column| {
            let width = figures.get(column.figure).and_then(|figure| figure.half_width);
            width.map_or(String::new(), |width| format!("± {}", (column.show)(width)))
        };
        let mut rows = vec![COLUMNS.iter().map(cell).collect::<Vec<String>>()];
        let spreads: Vec<String> = COLUMNS.iter().map(spread).collect();
        if spreads.iter().any(|spread| !spread.is_empty()) {
            rows.push(spreads);
        }
        page.push_str(&format!("{title}\n{}\n\n", table(names, rows, 0)));
    }
    page
}
