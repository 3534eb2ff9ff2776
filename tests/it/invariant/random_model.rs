//! Random model files: a client or two, up to four tiers in a random graph without cycles, and
//! every mechanism that the file format has. The text is what the generator makes, so that a
//! failing case is a model one can read and run.

use proptest::prelude::*;
use std::fmt::Write;

/// A random model as lines: what the property tests change is added or replaced before it is
/// written out.
#[derive(Clone, Debug)]
pub struct RandomModel {
    /// Length of the run [s].
    pub duration_s: u32,
    /// Tables of clients and tiers.
    pub system: String,
    /// Triggers.
    pub triggers: String,
    /// Steps of the operator.
    pub playbook: String,
    /// Names of edges, "caller->callee", and whether the edge has a cache.
    pub edges: Vec<(String, bool)>,
    /// Which tiers have a limited number of servers.
    pub bounded: Vec<bool>,
    /// Number of tiers that serve.
    pub tiers: usize,
}

impl RandomModel {
    /// The text of the file.
    pub fn text(&self) -> String {
        let RandomModel { duration_s, system, triggers, playbook, .. } = self;
        format!(
            "run = {{ duration = \"{duration_s}s\", window = \"500ms\" }}\n\
             {system}{triggers}{playbook}"
        )
    }

    /// The same without caches, since a cached call makes no attempt that a trace would show; what
    /// acts on caches acts on something else.
    pub fn without_caches(&self) -> RandomModel {
        let change = |text: &str| {
            let lines = text.lines().map(|line| match line {
                _ if line.starts_with("cache") => "",
                _ if line.starts_with("warm") => "retries = \"on\"",
                _ if line.starts_with("flush") && line.contains("->") => "slow = { t0 = 2.0 }",
                _ => line,
            });
            lines.collect::<Vec<_>>().join("\n") + "\n"
        };
        RandomModel {
            system: change(&self.system),
            triggers: change(&self.triggers),
            playbook: change(&self.playbook),
            ..self.clone()
        }
    }

    /// The same with attempts, back-off and budgets of every edge taken away.
    pub fn without_retries(&self) -> RandomModel {
        let keep = |line: &&str| {
            let keys = ["attempts", "backoff", "budget", "retry", "offset"];
            !keys.iter().any(|key| line.starts_with(key))
        };
        let system: Vec<&str> = self.system.lines().filter(keep).collect();
        RandomModel { system: system.join("\n") + "\n", ..self.clone() }
    }

    /// The same where no caller turns its own attempts away.
    pub fn without_throttles(&self) -> RandomModel {
        let guards =
            |line: &&str| ["throttle", "breaker", "pace"].iter().any(|key| line.starts_with(key));
        let lines = self.system.lines().filter(|line| !guards(line));
        RandomModel { system: lines.collect::<Vec<_>>().join("\n") + "\n", ..self.clone() }
    }
}

fn choose(options: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(options).prop_map(str::to_owned).boxed()
}

/// None of the lines half of the time.
fn maybe(options: &'static [&'static str]) -> BoxedStrategy<String> {
    prop_oneof![Just(String::new()), choose(options)].boxed()
}

const WORK: &[&str] = &[
    "work.constant = \"20ms\"",
    "work.constant = \"0ms\"",
    "work.exponential = \"15ms\"",
    "work.lognormal = { p50 = \"5ms\", p99 = \"80ms\" }",
    "work.uniform = { from = \"1ms\", to = \"30ms\" }",
    "work.mixture = [{ share = \"90%\", law.constant = \"2ms\" }, \
     { share = \"10%\", law.exponential = \"100ms\" }]",
];

const SERVERS: &[&str] = &[
    "",
    "concurrency = 1",
    "concurrency = 3",
    "concurrency = 2\nqueue.fifo = { capacity = 4 }",
    "concurrency = 2\nqueue.lifo = { capacity = 40, max_wait = \"120ms\" }",
    "concurrency = 1\nqueue.fifo = { max_wait = \"200ms\" }",
    "concurrency = 4\nqueue = \"none\"",
    "concurrency = 2\nqueue = \"lifo\"",
    "concurrency = 1\nqueue.fifo = { capacity = 3 }\nrefusal.cost = \"4ms\"",
];

/// Settings of a tier beside its work, servers and calls.
fn tier_settings() -> BoxedStrategy<String> {
    let parts = [
        maybe(&[
            "replicas = 2",
            "replicas = 3\nbalance = \"random\"",
            "replicas = 2\nbalance = \"shared\"",
            "replicas = 3\nbalance = \"least-busy\"",
        ]),
        maybe(&["abandoned = \"skip\"", "abandoned = \"interrupt\"", "abandoned = \"finish\""]),
        maybe(&["drawn = \"enqueue\""]),
        maybe(&["asynchronous = true"]),
        maybe(&["min_remaining = \"20ms\""]),
        maybe(&[
            "admission = \"60/s\"",
            "admission = { rate = \"40/s\", burst = 9 }",
            "admission = { permits = 6, every = \"100ms\" }",
        ]),
        maybe(&[
            "refusal.status = 429\nrefusal.retry_after = \"50ms\"",
            "refusal.status = 500\nrefusal.retry_after = { from = \"20ms\", to = \"300ms\" }",
        ]),
        maybe(&[
            "errors = \"5%\"",
            "errors = \"40%\"",
            "errors = { share = \"9%\", status = 400 }",
        ]),
        maybe(&["optimistic = true"]),
        maybe(&["write = { keyed = true, keep = \"2s\" }", "write = { keyed = false }"]),
    ];
    parts.to_vec().prop_map(|lines| lines.join("\n")).boxed()
}

/// Settings of an edge. Where all is to drain every attempt has a timeout, so that none waits for
/// ever.
fn edge_settings(drains: bool) -> BoxedStrategy<(String, bool)> {
    let timeout = choose(&["timeout = \"50ms\"", "timeout = \"300ms\"", "timeout = \"1s\""]);
    let timeout = if drains { timeout } else { prop_oneof![Just(String::new()), timeout].boxed() };
    let retry = maybe(&[
        "attempts = 2",
        "attempts = 4\nretry_on = [\"timeout\", \"refused\"]",
        "attempts = 3\nbackoff.fixed = { wait = \"40ms\", jitter = \"equal\" }",
        "attempts = 4\nbackoff.exponential = { base = \"10ms\", cap = \"1s\", jitter = \"full\" }",
        "attempts = 3\nbackoff.decorrelated = { base = \"10ms\", cap = \"300ms\" }",
        "attempts = 3\nbackoff.linear = { base = \"10ms\", jitter = { spread = \"20%\" } }",
        "attempts = 4\nretry_on = [\"network\", 429, 503]\nretry_after = \"exact\"",
        "retry = \"envoy\"",
        "retry = \"grpc\"\nretry_after = \"full_jitter\"",
        "retry = \"herd-safe\"\nattempts = 3\noffset = \"30ms\"",
    ]);
    let cache = maybe(&[
        "cache = { keys = 50, start = \"cold\" }",
        "cache = { keys = 50, ttl = \"1s\", late = \"fill\", lookup.constant = \"2ms\" }",
        "cache = { keys = 80, zipf = 1.0, uncacheable = \"20%\", start = \"30%\", \
         in_process = true }",
    ]);
    const TURN_AWAY: &[&str] = &[
        "throttle = { k = 1.5, window = \"2s\" }",
        "breaker = { failures = 2, open = \"200ms\" }",
    ];
    // A caller that paces itself may hold attempts back for hours.
    const HOLD_BACK: &[&str] = &["pace = \"adaptive\""];
    let turn_away = prop_oneof![Just(String::new()), choose(TURN_AWAY)];
    let guards = match drains {
        true => turn_away.boxed(),
        false => prop_oneof![4 => turn_away, 1 => choose(HOLD_BACK)].boxed(),
    };
    let rest = [
        maybe(&["deadline = \"250ms\"", "deadline = \"2s\""]),
        maybe(&["pass_deadline = true"]),
        maybe(&[
            "budget = { ratio = \"10%\" }",
            "budget = { ratio = \"20%\", floor = \"1/s\", debit = \"send\", scope = \"fleet\" }",
            "budget = { ratio = \"50%\", deposit = \"request\", start = 0 }",
            "budget.grpc = { max_tokens = 10, token_ratio = 0.1, debit = \"send\" }",
            "budget.aws = { tokens = 50 }",
            "budget.concurrent = { least = 1, debit = \"send\" }",
            "budget.concurrent = { scope = \"fleet\" }",
            "budget.window = { floor = \"0/s\", over = \"2s\" }",
        ]),
        maybe(&[
            "pool = { size = 1 }",
            "pool = { size = 3, wait = \"60ms\" }",
            "pool = { size = 2, wait = \"80ms\", clock = \"own\", queue = 3 }",
        ]),
        maybe(&[
            "network = { delay.constant = \"3ms\" }",
            "network = { delay.exponential = \"5ms\" }",
            "network = { reply_loss = \"3%\" }",
        ]),
        guards,
        maybe(&["optional = true", "optional = true\nfallback.exponential = \"5ms\""]),
    ];
    (timeout, retry, cache, rest.to_vec())
        .prop_map(|(timeout, retry, cache, rest)| {
            let cached = !cache.is_empty();
            (format!("{timeout}\n{retry}\n{cache}\n{}\n", rest.join("\n")), cached)
        })
        .boxed()
}

/// How a tier calls the tiers below it: one after the other, together, by choice, in steps around
/// its work.
fn calls(below: Vec<String>, style: u8, work: &str) -> String {
    let quoted: Vec<String> = below.iter().map(|name| format!("\"{name}\"")).collect();
    let work_step = format!("{{ {work} }}");
    let call_steps: Vec<String> =
        quoted.iter().map(|name| format!("{{ call = {name} }}")).collect();
    match (style, &quoted[..]) {
        (_, []) => format!("{work}\n"),
        (0, _) => format!("{work}\ncalls = [{}]\n", quoted.join(", ")),
        (1, _) => format!("{work}\ncalls = [[{}]]\n", quoted.join(", ")),
        (2, _) => format!("steps = [{}, {work_step}]\n", call_steps.join(", ")),
        (3, _) => format!(
            "steps = [{work_step}, {{ parallel = [{}] }}, {work_step}]\n",
            quoted.join(", ")
        ),
        _ => format!(
            "steps = [{{ choice = [{{ share = \"60%\", steps = [{}] }}, \
             {{ share = \"40%\", steps = \
             [{work_step}, {}] }}] }}]\n",
            call_steps.join(", "),
            call_steps[0]
        ),
    }
}

/// Users who leave, and clients that go on for them.
const GHOSTS: &str = "patience = { wait = \"90ms\", cancel = false }";

fn arrivals(drains: bool) -> BoxedStrategy<String> {
    const ENDING: &str = "arrivals.profile = [{ at = \"0s\", rate = \"40/s\" }, \
        { at = \"4s\", rate = \"70/s\" }, { at = \"4s\", rate = \"0/s\" }]";
    const HERD: &str = "arrivals.herd = { clients = 200, over = \"2s\" }";
    if drains {
        return prop_oneof![
            choose(&[ENDING, HERD]),
            choose(&[HERD]).prop_map(|herd| format!("{herd}\ntimer = \"7ms\"")),
            choose(&[ENDING, HERD]).prop_map(|other| format!("{other}\n{GHOSTS}")),
        ]
        .boxed();
    }
    choose(&[
        "arrivals.herd = { clients = 200, over = \"2s\" }\npatience = \"300ms\"",
        "arrivals.herd = { clients = 90 }\ntimer = \"100ms\"",
        "arrivals.poisson = \"50/s\"\npatience = \"120ms\"",
        "arrivals.closed = { clients = 6, think.exponential = \"90ms\" }\n\
         patience = { wait = \"110ms\", cancel = false }",
        "arrivals.poisson = \"50/s\"",
        "arrivals.poisson = \"30/s\"\nclients = 5",
        "arrivals.even = \"40/s\"",
        "arrivals.closed = { clients = 4, think.exponential = \"100ms\" }",
        "arrivals.closed = { clients = 9, think.constant = \"150ms\" }",
        ENDING,
    ])
}

/// One trigger of any lever; `tier` and `edge` are names.
fn trigger(kind: u8, tier: &str, bounded: bool, edge: &(String, bool)) -> String {
    match kind {
        0 => "demand = { client = 3.5 }".to_owned(),
        1 => "demand = { client = { to = 3.0, over = \"1s\" } }".to_owned(),
        2 => "demand = { client = { burst = 60, over = \"200ms\" } }".to_owned(),
        3 => format!("slow = {{ {tier} = 5.0 }}"),
        4 => format!("fail = {{ {tier} = \"70%\" }}"),
        5 => format!("down = {{ {tier} = \"fail\" }}"),
        6 => format!("down = {{ {tier} = \"black-hole\" }}"),
        7 => format!("down = {{ {tier} = \"hold\" }}"),
        8 => format!("delay = {{ \"{}\" = \"70ms\" }}", edge.0),
        9 => format!("pause = [\"{tier}\"]"),
        12 if bounded => format!("lose = {{ {tier} = \"60%\" }}"),
        13 if bounded => format!("lose = {{ {tier} = \"100%\" }}"),
        10 if edge.1 => format!("flush = [\"{}\"]", edge.0),
        _ => format!("slow = {{ {tier} = 0.5 }}"),
    }
}

/// One action of the operator.
fn action(kind: u8, tier: &str, edge: &(String, bool)) -> String {
    match kind {
        0 => format!("limit = {{ {tier} = \"15/s\" }}"),
        1 => format!("limit = {{ {tier} = \"10/s\" }}\nrestart = {{ {tier} = \"400ms\" }}"),
        2 => format!("ramp = {{ {tier} = {{ by = \"30%\", every = \"300ms\", to = \"30/s\" }} }}"),
        3 => "retries = \"off\"".to_owned(),
        4 => "retries = \"on\"".to_owned(),
        5 => format!("flush = [\"{tier}\"]"),
        6 => format!("restart = {{ {tier} = \"700ms\" }}"),
        7 => format!("add = {{ {tier} = 2 }}"),
        8 if edge.1 => format!("warm = {{ \"{}\" = \"50%\" }}", edge.0),
        _ => format!("limit = {{ {tier} = \"none\" }}"),
    }
}

type Piece = (u8, usize, usize, u8);

fn events(count: usize) -> BoxedStrategy<Vec<Piece>> {
    prop::collection::vec((0..14u8, 0..100usize, 0..100usize, 0..6u8), 0..count).boxed()
}

/// What is drawn for one tier: settings, servers, work, style of calls, which tiers below, and
/// their edges.
type TierDraw = (String, String, String, u8, Vec<bool>, Vec<(String, bool)>);

fn tier_draw(drains: bool) -> BoxedStrategy<TierDraw> {
    (
        tier_settings(),
        choose(SERVERS),
        choose(WORK),
        0..5u8,
        prop::collection::vec(any::<bool>(), 4),
        prop::collection::vec(edge_settings(drains), 4),
    )
        .boxed()
}

/// Any model; when `drains`, one in which every request comes to an end.
pub fn random_model(drains: bool) -> BoxedStrategy<RandomModel> {
    let tiers = prop::collection::vec(tier_draw(drains), 1..=4);
    let classes = any::<bool>();
    (
        tiers,
        arrivals(drains),
        classes,
        prop::collection::vec(edge_settings(drains), 4),
        events(4),
        events(5),
    )
        .prop_map(move |(tiers, arrivals, classes, entry, triggers, playbook)| {
            let mut model = RandomModel {
                // Nested retries leave up to some 10,000 attempts to one server of 100 ms.
                duration_s: if drains { 7_000 } else { 8 },
                system: String::new(),
                triggers: String::new(),
                playbook: String::new(),
                edges: Vec::new(),
                bounded: tiers.iter().map(|tier| !tier.1.is_empty()).collect(),
                tiers: tiers.len(),
            };
            write_client(&mut model, &arrivals, classes, &entry);
            for (index, tier) in tiers.iter().enumerate() {
                write_tier(&mut model, index, tier);
            }
            write_triggers(&mut model, &triggers);
            write_playbook(&mut model, &playbook);
            model
        })
        .boxed()
}

fn write_client(model: &mut RandomModel, arrivals: &str, classes: bool, entry: &[(String, bool)]) {
    let _ = writeln!(model.system, "[tier.client]\n{arrivals}");
    let last = model.tiers - 1;
    let called = if last > 0 { vec![0, last] } else { vec![0] };
    let names: Vec<String> = called.iter().map(|tier| format!("\"t{tier}\"")).collect();
    let _ = writeln!(model.system, "calls = [{}]", names.join(", "));
    if classes {
        let _ = writeln!(
            model.system,
            "class.read = {{ share = \"50%\", calls = [\"t0\"] }}\n\
             class.both = {{ share = \"25%\", calls = [[{}]] }}\n\
             class.own = {{ share = \"10%\", steps = [{{ work.constant = \"4ms\" }}] }}\n\
             class.late = {{ share = \"15%\", steps = [\n    \
             {{ work.exponential = \"3ms\" }}, {{ call = \"t0\" }},\n] }}",
            names.join(", ")
        );
    }
    for (tier, (settings, cached)) in called.iter().zip(entry) {
        let _ = writeln!(model.system, "[tier.client.call.t{tier}]\n{settings}");
        model.edges.push((format!("client->t{tier}"), *cached));
    }
}

fn write_tier(model: &mut RandomModel, index: usize, tier: &TierDraw) {
    let (settings, servers, work, style, below, edges) = tier;
    let below: Vec<String> = (index + 1..model.tiers)
        .filter(|&other| below[other % below.len()])
        .map(|other| format!("t{other}"))
        .collect();
    let _ = writeln!(model.system, "[tier.t{index}]\n{servers}\n{settings}");
    model.system += &calls(below.clone(), *style, work);
    for (callee, (settings, cached)) in below.iter().zip(edges) {
        let _ = writeln!(model.system, "[tier.t{index}.call.{callee}]\n{settings}");
        model.edges.push((format!("t{index}->{callee}"), *cached));
    }
}

fn write_triggers(model: &mut RandomModel, triggers: &[Piece]) {
    for (kind, tier, edge, when) in triggers {
        let closed = model.system.contains("arrivals.closed");
        let bounded = model.bounded[tier % model.tiers];
        let tier = format!("t{}", tier % model.tiers);
        let edge = model.edges[edge % model.edges.len()].clone();
        let herd = model.system.contains("arrivals.herd");
        let kind = match *kind {
            1 if closed => 0,
            // A herd has no demand to move.
            0..=2 if herd => 3,
            kind => kind,
        };
        let at = 500 * u32::from(*when) + 500;
        let lasts = if when % 2 == 0 { 1000 } else { 1230 };
        let _ = writeln!(
            model.triggers,
            "[[trigger]]\nat = \"{at}ms\"\nlasts = \"{lasts}ms\"\n{}",
            trigger(kind, &tier, bounded, &edge)
        );
    }
}

fn write_playbook(model: &mut RandomModel, playbook: &[Piece]) {
    for (kind, tier, edge, when) in playbook {
        let tier = format!("t{}", tier % model.tiers);
        let edge = model.edges[edge % model.edges.len()].clone();
        let when = match when {
            0 => "{ at = \"2s\" }".to_owned(),
            1 => "{ after_trigger = \"0s\" }".to_owned(),
            2 => "{ after = \"500ms\" }".to_owned(),
            3 => "{ goodput = \"< 90%\" }".to_owned(),
            4 => format!("{{ queue_empty = \"{tier}\", for = \"500ms\" }}"),
            _ => "{ goodput = \">= 10%\", for = \"1s\" }".to_owned(),
        };
        let _ = writeln!(
            model.playbook,
            "[[playbook]]\nwhen = {when}\n{}",
            action(*kind, &tier, &edge)
        );
    }
}
