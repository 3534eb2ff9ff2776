//! How a budget is written in a model file.

use super::{Budget, Debit, Deposit, Ratio, Rule, Scope, THOUSAND};
use crate::document::{Section, Value};
use crate::kernel::Span;

impl Budget {
    /// Reads `budget = { ratio = "10%", cap = 100, floor = "1/s", … }`, or `budget.NAME = { … }`
    /// for the other rules.
    pub fn read(value: &Value<'_>) -> Option<Self> {
        const NAMES: [&str; 4] = ["grpc", "aws", "concurrent", "window"];
        let section = value.section()?;
        let named = |entry: &Value<'_>| entry.is_section() || NAMES.contains(&entry.key());
        if !value.section()?.entries().iter().any(named) {
            return Self::read_rule(&section, Rule::read_ratio);
        }
        let (name, contents) = value.choice(&NAMES)?;
        let section = contents?.section()?;
        match name {
            "grpc" => Self::read_rule(&section, Rule::read_grpc),
            "aws" => Self::read_rule(&section, Rule::read_aws),
            "concurrent" => Self::read_rule(&section, Rule::read_concurrent),
            _ => Self::read_rule(&section, Rule::read_window),
        }
    }

    fn read_rule(
        section: &Section<'_>,
        rule: impl FnOnce(&Section<'_>) -> Option<Rule>,
    ) -> Option<Self> {
        let rule = rule(section);
        let debit = section.get("debit").map_or(Some(Debit::default()), |v| {
            v.word(&[("decision", Debit::Decision), ("send", Debit::Send)])
        });
        let scope = section.get("scope").map_or(Some(Scope::default()), |v| {
            v.word(&[("instance", Scope::Instance), ("fleet", Scope::Fleet)])
        });
        section.finish();
        Some(Budget { rule: rule?, debit: debit?, scope: scope? })
    }
}

impl Rule {
    fn read_ratio(section: &Section<'_>) -> Option<Self> {
        let ratio = section.require("ratio", "add ratio = \"10%\"").and_then(|v| {
            let ratio = v.share()?;
            if ratio == 0.0 {
                v.fault(
                    "a budget of 0% never allows a retry",
                    "that is what `attempts = 1` says",
                    "give a ratio above 0%",
                );
                return None;
            }
            Some(ratio)
        });
        let cap = section.get("cap").map_or(Some(10.0), |v| v.number_above(0.0, 1e9));
        let start = section.get("start").map(|v| v.number_from(0.0, 1e9));
        let floor = section.get("floor").map_or(Some(0.0), |v| v.rate());
        let deposit = section.get("deposit").map_or(Some(Deposit::default()), |v| {
            v.word(&[("success", Deposit::Success), ("request", Deposit::Request)])
        });
        let cap = cap?;
        let start = start.map_or(Some(cap), |start| start)?.min(cap);
        Some(Rule::Ratio(Ratio { ratio: ratio?, cap, start, floor: floor?, deposit: deposit? }))
    }

    /// Both values are required, as in a service config of gRPC.
    fn read_grpc(section: &Section<'_>) -> Option<Self> {
        let tokens = section
            .require("max_tokens", "add max_tokens = 10")
            .and_then(|v| v.whole(1, u64::from(THOUSAND)));
        let ratio = section.require("token_ratio", "add token_ratio = 0.1").and_then(|v| {
            let ratio = v.number_above(0.0, f64::from(THOUSAND))?;
            // 1.001 is 1000.9999999999999 thousandths.
            let thousandths = (ratio * f64::from(THOUSAND) + 1e-9).floor() as u32;
            if thousandths == 0 {
                v.fault(
                    &format!("`{}` = {ratio} is too small", v.path()),
                    "gRPC keeps three decimals of it, and all of them are zero",
                    "give at least 0.001",
                );
                return None;
            }
            Some(thousandths)
        });
        Some(Rule::Grpc { max_tokens: tokens? as u32 * THOUSAND, token_ratio: ratio? })
    }

    fn read_aws(section: &Section<'_>) -> Option<Self> {
        const MOST: u64 = 1_000_000;
        let tokens = section.get("tokens").map_or(Some(500), |v| v.whole(1, MOST));
        let cost = |key, usual| {
            let Some(value) = section.get(key) else { return Some(usual) };
            let cost = value.whole(1, MOST)?;
            if tokens.is_some_and(|tokens| cost > tokens) {
                value.fault(
                    &format!("`{}` = {cost} is more than all tokens", value.path()),
                    "no such retry could ever be paid",
                    "lower the cost or raise `tokens`",
                );
                return None;
            }
            Some(cost)
        };
        let (retry_cost, timeout_cost) = (cost("retry_cost", 5), cost("timeout_cost", 10));
        Some(Rule::Aws {
            tokens: tokens? as u32,
            retry_cost: retry_cost? as u32,
            timeout_cost: timeout_cost? as u32,
        })
    }

    fn read_concurrent(section: &Section<'_>) -> Option<Self> {
        let ratio = section.get("ratio").map_or(Some(0.2), |v| v.share());
        let least = section.get("least").map_or(Some(3), |v| v.whole(0, 1_000_000));
        let (ratio, least) = (ratio?, least?);
        never(section, ratio == 0.0 && least == 0)?;
        Some(Rule::Concurrent { ratio, least: least as u32 })
    }

    fn read_window(section: &Section<'_>) -> Option<Self> {
        let ratio = section.get("ratio").map_or(Some(0.2), |v| v.percentage());
        let floor = section.get("floor").map_or(Some(10.0), |v| v.rate());
        let over = section.get("over").map_or(Some(Span::from_secs(10)), |v| {
            let over = v.duration()?;
            let sound = (Span::from_secs(1)..=Span::from_secs(60)).contains(&over);
            if !sound {
                v.fault(
                    &format!("`{}` = \"{over}\" is out of range", v.path()),
                    "Finagle takes a window from 1s to 60s",
                    "choose one inside, usually \"10s\"",
                );
            }
            sound.then_some(over)
        });
        let (ratio, floor) = (ratio?, floor?);
        never(section, ratio == 0.0 && floor == 0.0)?;
        Some(Rule::Window { ratio, floor, over: over? })
    }
}

/// Makes a budget that is always empty a fault.
fn never(section: &Section<'_>, empty: bool) -> Option<()> {
    if empty {
        section.fault(
            "a budget of nothing never allows a retry",
            "that is what `attempts = 1` says",
            "raise one of its values above zero",
        );
    }
    (!empty).then_some(())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::document::Faults;
    use toml::de::DeTable;

    /// The budget, or the number of faults.
    pub fn read(text: &str) -> Result<Budget, usize> {
        let faults = Faults::default();
        let table = DeTable::parse(text).unwrap();
        let budget = Section::root(table.get_ref(), &faults).get("budget").unwrap();
        let budget = Budget::read(&budget);
        if faults.is_empty() { Ok(budget.unwrap()) } else { Err(faults.count()) }
    }

    #[test]
    fn senseless_budgets_are_refused() {
        for text in [
            "budget.grpc = { max_tokens = 0, token_ratio = 0.1 }",
            "budget.grpc = { max_tokens = 1001, token_ratio = 0.1 }",
            "budget.grpc = { max_tokens = 10, token_ratio = 0 }",
            "budget.grpc = { max_tokens = 10, token_ratio = 0.0009 }",
            "budget.grpc = { max_tokens = 10, token_ratio = -0.1 }",
            "budget.grpc = { max_tokens = 10 }",
            "budget.aws = { tokens = 4 , timeout_cost = 1 , retry_cost = 5 }",
            "budget.concurrent = { ratio = \"0%\", least = 0 }",
            "budget.window = { ratio = \"0%\", floor = \"0/s\" }",
            "budget.window = { over = \"100ms\" }",
            "budget.windov = {}",
            "budget = { aws = {}, grpc = { max_tokens = 10, token_ratio = 0.1 } }",
            "budget = { aws = {}, ratio = \"10%\" }",
        ] {
            assert_eq!(read(text), Err(1), "{text}");
        }
        let rule = read("budget.grpc = { max_tokens = 1000, token_ratio = 1, scope = \"fleet\" }");
        assert_eq!(rule.unwrap().scope, Scope::Fleet);
    }
}
