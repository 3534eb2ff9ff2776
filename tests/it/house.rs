//! Taste, enforced: imports point down, things stay short, words keep their meaning, only the right
//! rooms touch the world outside.

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the ground up. A room sees those below it.
const ROOMS: [&str; 10] = [
    "kernel",
    "document",
    "mechanism",
    "measure",
    "model",
    "simulation",
    "verdict",
    "experiment",
    "output",
    "cli",
];

/// Mechanisms see no other mechanism, but for what they share, and the rule that a lever or an
/// action carries.
const SHARED_MECHANISMS: [(&str, &str); 5] = [
    ("*", "outcome"),
    ("*", "conditions"),
    ("trigger", "arrival"),
    ("playbook", "admission"),
    ("mod", "*"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files_under(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<(PathBuf, String)> {
    let all = ["src", "tests", "benches"].into_iter().flat_map(|folder| files_under(folder, "rs"));
    all.map(|path| {
        (path.strip_prefix(root()).unwrap().to_owned(), fs::read_to_string(&path).unwrap())
    })
    .collect()
}

fn room_of(path: &Path) -> Option<usize> {
    let room = path.strip_prefix("src").ok()?.components().next()?.as_os_str().to_str()?;
    ROOMS.iter().position(|name| *name == room.trim_end_matches(".rs"))
}

/// The program without its unit tests.
fn program(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap()
}

fn complain(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn imports_point_down() {
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        let Some(here) = room_of(&path) else { continue };
        for (number, line) in program(&text).lines().enumerate() {
            for (room, name) in ROOMS.iter().enumerate().filter(|(room, _)| *room > here) {
                if line.contains(&format!("crate::{name}")) && !line.trim_start().starts_with("//")
                {
                    complaints.push(format!(
                        "{}:{}: {} sees {}",
                        path.display(),
                        number + 1,
                        ROOMS[here],
                        ROOMS[room]
                    ));
                }
            }
        }
    }
    complain(&complaints);
}

#[test]
fn mechanisms_do_not_see_each_other() {
    let mut complaints = Vec::new();
    for (path, text) in sources().iter().filter(|(path, _)| path.starts_with("src/mechanism")) {
        let here = path.file_stem().unwrap().to_str().unwrap();
        for line in program(text).lines().filter(|line| line.contains("crate::mechanism::")) {
            let seen = line.split("crate::mechanism::").nth(1).unwrap().split("::").next().unwrap();
            let allowed = |(who, whom): &(&str, &str)| {
                (*who == "*" || *who == here) && (*whom == "*" || *whom == seen)
            };
            if !SHARED_MECHANISMS.iter().any(allowed) {
                complaints.push(format!("{}: sees {seen}", path.display()));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn functions_stay_within_70_lines() {
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let indent = &line[..line.len() - code.len()];
            let words: Vec<&str> = code.split([' ', '(']).take(4).collect();
            if !words.contains(&"fn") || code.starts_with("//") || code.ends_with(';') {
                continue;
            }
            let end = lines[start..].iter().position(|line| *line == format!("{indent}}}"));
            if let Some(length) = end.filter(|length| *length >= 70) {
                complaints.push(format!("{}:{}: {} lines", path.display(), start + 1, length + 1));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn lines_stay_within_100_characters() {
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            if line.chars().count() > 100 {
                complaints.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn files_stay_within_600_lines() {
    let long = sources().into_iter().filter(|(_, text)| text.lines().count() > 600);
    complain(
        &long
            .map(|(path, text)| format!("{}: {}", path.display(), text.lines().count()))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn only_the_right_rooms_touch_the_world_outside() {
    let rules: [(&[&str], &[&str]); 3] = [
        (&["println!", "print!(", "stdout()", "stderr()"], &["cli"]),
        (&["std::fs", "File::"], &["output", "cli"]),
        (&["thread::spawn", "thread::scope", ".spawn(", "rayon"], &["experiment"]),
    ];
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        let Some(here) = room_of(&path) else { continue };
        for (words, rooms) in rules {
            let code = program(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                if !rooms.contains(&ROOMS[here]) && words.iter().any(|word| line.contains(word)) {
                    complaints.push(format!("{}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    complain(&complaints);
}

#[test]
fn words_keep_their_meaning() {
    // Each has one word in this house: response time or sojourn time, demand, hidden capacity.
    const NEVER: [&str; 4] = ["latency", "rps", "headroom", "success_rate"];
    const UNFINISHED: [&str; 5] = ["todo!", "unimplemented!", "FIXME", "XXX", "dbg!"];
    let mut complaints = Vec::new();
    for (path, text) in sources().iter().filter(|(path, _)| !path.ends_with("house.rs")) {
        for (number, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            let words: Vec<&str> =
                lower.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let wrong = NEVER.iter().find(|word| words.contains(word));
            let left = UNFINISHED.iter().find(|mark| line.contains(**mark));
            if let Some(word) = wrong.or(left) {
                complaints.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn every_file_has_a_home() {
    const HOMELESS: [&str; 6] = ["util", "utils", "common", "helpers", "types", "manager"];
    let named = |path: &Path| {
        path.components().any(|part| {
            let name = part.as_os_str().to_str().unwrap();
            HOMELESS.contains(&name.trim_end_matches(".rs"))
        })
    };
    let found = sources().into_iter().filter(|(path, _)| named(path));
    complain(&found.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>());
}

#[test]
fn every_model_file_is_used_by_a_test() {
    let tests: String = sources()
        .into_iter()
        .filter(|(path, _)| path.starts_with("tests"))
        .map(|(_, text)| text)
        .collect();
    let unused = files_under("models", "toml").into_iter().filter(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        !tests.contains(&format!("\"{name}\""))
    });
    complain(&unused.map(|path| path.display().to_string()).collect::<Vec<_>>());
}

#[test]
fn every_public_file_says_what_it_is() {
    let silent = sources().into_iter().filter(|(_, text)| !text.starts_with("//!"));
    complain(&silent.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>());
}
