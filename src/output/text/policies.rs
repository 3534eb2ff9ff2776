//! The page of a contest of retry policies: a row for each, and which to take.

use super::{Style, rate, seconds, table};
use crate::measure::Estimate;
use crate::output::policies::{ChoiceSummary, PoliciesSummary, PolicySummary};

/// The page.
pub fn render(summary: &PoliciesSummary, style: Style) -> String {
    let herd = summary.herd;
    let rows = summary.policies.iter().map(|policy| row(policy, herd)).collect();
    let header = [
        "policy",
        if herd { "50% through" } else { "metastable" },
        if herd { "99% through" } else { "recovery" },
        "peak/s",
        "sent",
        if herd { "tries p99" } else { "in back-off" },
        "lost",
    ];
    let title = style.bold(&summary.model.title);
    let mut page = format!("{title}\n\n{}\n\n", table(header.into_iter(), rows, 1));
    if summary.interrupted {
        page.push_str(&style.wrapped("  Interrupted: means are over the seeds that were run.", 4));
    }
    page.push_str(&format!("{}\n", style.bold("Which to take")));
    let choices: Vec<Vec<String>> =
        summary.choices.iter().filter_map(|choice| chosen(choice, summary)).collect();
    let served = if herd { "99% served" } else { "recovery" };
    let header = ["where …", "take", served, "peak/s", "of capacity"];
    if !choices.is_empty() {
        page.push_str(&format!("{}\n", table(header.into_iter(), choices, 2)));
    }
    for choice in &summary.choices {
        if let Some(why) = &choice.why_none {
            page.push_str(&style.wrapped(&format!("  {}: {why}", choice.title), 4));
        }
    }
    page.push('\n');
    page.push_str(&style.wrapped(&format!("  {}", drawn(summary)), 4));
    page
}

fn row(policy: &PolicySummary, herd: bool) -> Vec<String> {
    let name = if policy.present { format!("{} *", policy.name) } else { policy.name.clone() };
    let never = policy.complete - policy.served;
    let mut time = match (policy.served, policy.time_s) {
        (0, _) | (_, None) => "never".into(),
        (_, time) => estimate(time, seconds),
    };
    if never > 0 && policy.served > 0 {
        time.push_str(&format!(" ({never} never)"));
    }
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let bad = format!("{} of {}", policy.metastable, policy.complete);
    vec![
        name,
        if herd { estimate(policy.half_s, seconds) } else { bad },
        time,
        estimate(policy.peak_per_s, rate),
        estimate(policy.sent, rate),
        estimate(if herd { policy.attempts_p99 } else { policy.backoff_max }, rate),
        estimate(policy.lost_share, percent),
    ]
}

/// "1.17k ± 6"; a spread that the digits shown do not reach is left out.
fn estimate(estimate: Option<Estimate>, show: impl Fn(f64) -> String) -> String {
    let Some(Estimate { mean, half_width, .. }) = estimate else { return "-".into() };
    let shown = show(mean);
    let visible = |width: &f64| show(mean + width) != shown || show(mean - width) != shown;
    let spread = half_width.filter(visible);
    spread.map_or(shown.clone(), |width| format!("{shown} ± {}", show(width)))
}

fn chosen(choice: &ChoiceSummary, summary: &PoliciesSummary) -> Option<Vec<String>> {
    let name = choice.policy.as_ref()?;
    let policy = summary.policies.iter().find(|policy| policy.name == *name)?;
    let peak = policy.peak_per_s.map_or(0.0, |peak| peak.mean);
    let load = summary.capacity_per_s.map_or("-".into(), |all| format!("{:.1}x", peak / all));
    let time = estimate(policy.time_s, seconds);
    Some(vec![choice.title.clone(), policy.name.clone(), time, rate(peak), load])
}

/// What the rows rest on.
fn drawn(summary: &PoliciesSummary) -> String {
    let PoliciesSummary { seeds, root_seed, edges, peak_window_s, goal, .. } = summary;
    let by = match goal.as_str() {
        "peak" => "peak",
        "sends" => "number sent",
        _ => "time",
    };
    let plural = if *seeds == 1 { "" } else { "s" };
    let time = match summary.herd {
        true => "times are since the start of the run",
        false => "recovery is counted from the end of the trigger",
    };
    let spread = if *seeds > 1 { "; ± is half the width of a 95% interval" } else { "" };
    format!(
        "policies of {}, sorted by {by}, those under which users are lost or not all seeds are \
         stable last: they are never taken. * is the model's own. {seeds} seed{plural} each, the \
         same for all, hashed from seed {root_seed}{spread}; {time}; what is sent, and the peak \
         (most in {}, as a rate), count after the trigger; lost are those who gave up",
        edges.join(" and "),
        seconds(*peak_window_s),
    )
}
