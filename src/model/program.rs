//! What a tier does with an attempt: work, calls one after the other or together, choices. Compiled
//! from the nested steps of the file into a flat list of operations, so that an attempt remembers
//! where it is by one number.

use crate::document::{EdgeId, Fault, Value};
use crate::mechanism::work::Work;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Work number so-and-so of the program.
    Work(u16),
    /// A call, and wait for its end.
    Call(EdgeId),
    /// Several calls at once, and wait for all: `count` edges of the program's list, from `first`.
    Together {
        /// First edge.
        first: u16,
        /// Number of edges.
        count: u16,
    },
    /// Go on at one of several places: `count` entries of the program's choices, from `first`.
    Choose {
        /// First entry.
        first: u16,
        /// Number of entries.
        count: u16,
    },
    /// Go on elsewhere.
    Jump(u16),
    /// Answer.
    End,
}

/// The operations of one tier and class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// In order; the last is [`Op::End`].
    pub ops: Vec<Op>,
    /// Laws of work.
    pub works: Vec<Work>,
    /// Edges of calls made together.
    pub together: Vec<EdgeId>,
    /// (probability up to here, where to go on).
    pub choices: Vec<(f64, u16)>,
}

impl Program {
    /// Work, if any, and then calls: a list of names, in which a nested list is called together.
    pub fn simple(work: Option<Work>, calls: &[Vec<EdgeId>]) -> Self {
        let mut program = Program::default();
        if let Some(work) = work {
            program.push_work(work);
        }
        calls.iter().for_each(|edges| program.push_calls(edges));
        program.ops.push(Op::End);
        program
    }

    /// Reads `steps = [ … ]`; `edge` finds the edge to a callee.
    pub fn read(
        value: &Value<'_>,
        edge: &mut dyn FnMut(&Value<'_>) -> Option<EdgeId>,
    ) -> Option<Self> {
        let mut program = Program::default();
        program.read_steps(value, edge)?;
        program.ops.push(Op::End);
        if !program.fits() {
            let Fault { what, why, cure, .. } = too_long();
            value.fault(&what, &why, &cure);
            return None;
        }
        Some(program)
    }

    /// Whether every position in the lists fits into its 16 bits.
    pub fn fits(&self) -> bool {
        let lengths = [self.ops.len(), self.works.len(), self.together.len(), self.choices.len()];
        lengths.iter().all(|&length| length <= usize::from(u16::MAX))
    }

    fn read_steps(
        &mut self,
        value: &Value<'_>,
        edge: &mut dyn FnMut(&Value<'_>) -> Option<EdgeId>,
    ) -> Option<()> {
        let steps: Vec<Option<()>> =
            value.list()?.iter().map(|step| self.read_step(step, edge)).collect();
        steps.into_iter().collect()
    }

    fn read_step(
        &mut self,
        step: &Value<'_>,
        edge: &mut dyn FnMut(&Value<'_>) -> Option<EdgeId>,
    ) -> Option<()> {
        let (name, contents) = step.choice(&["work", "call", "parallel", "choice"])?;
        let Some(contents) = contents else {
            let what = format!("the step `{name}` lacks its contents");
            let cure = "write { work.constant = \"5ms\" } or { call = \"db\" }";
            step.fault(&what, "a step says what to work or whom to call", cure);
            return None;
        };
        match name {
            "work" => self.push_work(Work::read(&contents)?),
            "call" => {
                let callee = edge(&contents)?;
                self.push_calls(&[callee]);
            }
            "parallel" => {
                let edges: Vec<Option<EdgeId>> = contents.list()?.iter().map(edge).collect();
                self.push_calls(&edges.into_iter().collect::<Option<Vec<_>>>()?);
            }
            _ => self.read_choice(&contents, edge)?,
        }
        Some(())
    }

    fn read_choice(
        &mut self,
        value: &Value<'_>,
        edge: &mut dyn FnMut(&Value<'_>) -> Option<EdgeId>,
    ) -> Option<()> {
        let branches = value.list()?;
        let (first, count) = (self.choices.len() as u16, branches.len() as u16);
        self.choices.resize(self.choices.len() + branches.len(), (1.0, 0));
        self.ops.push(Op::Choose { first, count });
        let (mut total, mut jumps) = (0.0, Vec::new());
        let mut sound = true;
        for (index, branch) in branches.iter().enumerate() {
            let Some(section) = branch.section() else {
                sound = false;
                continue;
            };
            let share = section.require("share", "add share = \"50%\"").and_then(|v| v.share());
            let steps = section.require("steps", "add steps = [ … ]; an empty list does nothing");
            section.finish();
            total += share.unwrap_or(0.0);
            self.choices[usize::from(first) + index] = (total, self.ops.len() as u16);
            let read = steps.and_then(|steps| self.read_steps(&steps, edge));
            sound &= share.is_some() && read.is_some();
            jumps.push(self.ops.len());
            self.ops.push(Op::Jump(0));
        }
        for jump in jumps {
            self.ops[jump] = Op::Jump(self.ops.len() as u16);
        }
        if sound && (total - 1.0).abs() > 1e-9 {
            value.fault(
                &format!(
                    "the shares of `{}` add up to {}",
                    value.path(),
                    crate::document::share_text(total)
                ),
                "each attempt takes exactly one branch",
                "make the shares add up to 100%; a branch may have no steps",
            );
            return None;
        }
        sound.then_some(())
    }

    fn push_work(&mut self, work: Work) {
        self.ops.push(Op::Work(self.works.len() as u16));
        self.works.push(work);
    }

    fn push_calls(&mut self, edges: &[EdgeId]) {
        match edges {
            [] => {}
            [one] => self.ops.push(Op::Call(*one)),
            _ => {
                let first = self.together.len() as u16;
                self.together.extend(edges);
                self.ops.push(Op::Together { first, count: edges.len() as u16 });
            }
        }
    }

    /// Expected work (s), and expected calls on each edge, of one attempt that meets no failure.
    pub fn expectation(&self) -> (f64, Vec<(EdgeId, f64)>) {
        let mut work = 0.0;
        let mut calls: Vec<(EdgeId, f64)> = Vec::new();
        let mut count =
            |edge: EdgeId, reach: f64| match calls.iter_mut().find(|(known, _)| *known == edge) {
                Some((_, sum)) => *sum += reach,
                None => calls.push((edge, reach)),
            };
        // Jumps lead forward only, so one pass from left to right knows the probability of reaching
        // each operation.
        let mut reach = vec![0.0; self.ops.len() + 1];
        reach[0] = 1.0;
        for (index, op) in self.ops.iter().enumerate() {
            let here = reach[index];
            let mut next = index + 1;
            match *op {
                Op::Work(number) => {
                    work += here * self.works[usize::from(number)].law.mean_seconds()
                }
                Op::Call(edge) => count(edge, here),
                Op::Together { first, count: n } => {
                    self.together[usize::from(first)..][..usize::from(n)]
                        .iter()
                        .for_each(|&e| count(e, here));
                }
                Op::Choose { first, count: n } => {
                    let mut before = 0.0;
                    for &(up_to, target) in &self.choices[usize::from(first)..][..usize::from(n)] {
                        reach[usize::from(target)] += here * (up_to - before);
                        before = up_to;
                    }
                    continue;
                }
                Op::Jump(target) => next = usize::from(target),
                Op::End => continue,
            }
            reach[next] += here;
        }
        (work, calls)
    }
}

/// The fault of a program whose positions do not fit.
pub fn too_long() -> Fault {
    Fault::new(
        "more than 65,535 steps in one tier",
        "an attempt remembers where it is by a small number",
        "merge calls that behave alike",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Distribution, Span};

    #[test]
    fn a_choice_weighs_its_branches() {
        let work = |ms| Work { law: Distribution::Constant(Span::from_millis(ms)) };
        let program = Program {
            ops: vec![
                Op::Choose { first: 0, count: 2 },
                Op::Work(0),
                Op::Call(EdgeId(0)),
                Op::Jump(6),
                Op::Work(1),
                Op::Jump(6),
                Op::End,
            ],
            works: vec![work(10), work(100)],
            together: vec![],
            choices: vec![(0.75, 1), (1.0, 4)],
        };
        let (seconds, calls) = program.expectation();
        assert!((seconds - 0.0325).abs() < 1e-12);
        assert_eq!(calls, [(EdgeId(0), 0.75)]);
    }

    #[test]
    fn calls_in_a_nested_list_are_made_together() {
        let (a, b, c) = (EdgeId(0), EdgeId(1), EdgeId(2));
        let program = Program::simple(None, &[vec![a], vec![b, c]]);
        assert_eq!(program.ops, [Op::Call(a), Op::Together { first: 0, count: 2 }, Op::End]);
    }
}
