//! The call graph as a graph: cycles, who reaches whom, how attempts multiply along a path.

use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::Dfs;

use super::tier::System;
use super::{Edge, Model};
use crate::document::{EdgeId, Fault, Faults, Names, TierId};

fn graph(names: &Names) -> DiGraph<(), EdgeId> {
    let mut graph = DiGraph::new();
    names.tiers().for_each(|_| {
        graph.add_node(());
    });
    for (index, &(caller, callee)) in names.edges().iter().enumerate() {
        graph.add_edge(node(caller), node(callee), EdgeId(index as u16));
    }
    graph
}

fn node(tier: TierId) -> NodeIndex {
    NodeIndex::new(tier.index())
}

/// Makes each cycle a fault that prints it.
pub fn refuse_cycles(system: &System, faults: &Faults) {
    let graph = graph(&system.names);
    for component in kosaraju_scc(&graph) {
        let looped = component.len() > 1 || graph.contains_edge(component[0], component[0]);
        if !looped {
            continue;
        }
        let path = cycle_within(&graph, &component);
        let names: Vec<&str> =
            path.iter().map(|n| system.names.tier_name(TierId(n.index() as u16))).collect();
        let what = format!("the calls go round in a circle: {}", names.join(" -> "));
        let why = "an attempt would call itself for ever";
        let mut fault =
            Fault::new(what, why, "break the circle at one call, or split a tier in two");
        for (pair, ends) in names.windows(2).zip(path.windows(2)) {
            let edge = graph.find_edge(ends[0], ends[1]).expect("a cycle runs along edges");
            let place = system.edge_places[graph[edge].index()].clone();
            fault = fault.at(place, format!("{} calls {}", pair[0], pair[1]));
        }
        faults.add(fault);
    }
}

/// One cycle through the first node of a strongly connected component.
fn cycle_within(graph: &DiGraph<(), EdgeId>, component: &[NodeIndex]) -> Vec<NodeIndex> {
    let start = *component.iter().min().expect("a component has a node");
    let mut path = vec![start];
    loop {
        let here = *path.last().expect("never empty");
        let mut next: Vec<NodeIndex> =
            graph.neighbors(here).filter(|n| component.contains(n)).collect();
        next.sort_unstable();
        if next.contains(&start) {
            path.push(start);
            return path;
        }
        let onward = next.iter().find(|n| !path.contains(n)).or(next.first());
        match onward {
            Some(&onward) if !path.contains(&onward) => path.push(onward),
            Some(&seen) => {
                let from = path.iter().position(|&n| n == seen).expect("seen before");
                let mut cycle = path.split_off(from);
                cycle.push(seen);
                return cycle;
            }
            None => return path,
        }
    }
}

impl Model {
    /// For each tier, the client tiers whose requests can reach it (a client reaches itself).
    pub fn reaching_clients(&self) -> Vec<Vec<TierId>> {
        let graph = graph(&self.names);
        let mut reached = vec![Vec::new(); self.tiers.len()];
        for client in self.tier_ids().filter(|&tier| self.tier(tier).is_client()) {
            let mut search = Dfs::new(&graph, node(client));
            while let Some(next) = search.next(&graph) {
                reached[next.index()].push(client);
            }
        }
        reached
    }

    /// Tiers from the clients down: each after all its callers.
    pub fn top_down(&self) -> Vec<TierId> {
        let graph = graph(&self.names);
        let sorted = toposort(&graph, None).expect("cycles are refused when the model is read");
        sorted.into_iter().map(|n| TierId(n.index() as u16)).collect()
    }

    /// Expected attempts [1/s] on each edge and at each tier in the normal state: nothing fails,
    /// caches as at the start.
    pub fn normal_flow(&self) -> Flow {
        self.flow(|_| 1.0)
    }

    /// The same when every call uses up all its attempts: the load of a full outage without
    /// budgets.
    pub fn worst_flow(&self) -> Flow {
        self.flow(|edge| f64::from(edge.retry.attempts))
    }

    fn flow(&self, attempts: impl Fn(&Edge) -> f64) -> Flow {
        let mut flow =
            Flow { tiers: vec![0.0; self.tiers.len()], edges: vec![0.0; self.edges.len()] };
        let mut by_class = vec![vec![0.0; self.classes.len()]; self.tiers.len()];
        for tier in self.top_down() {
            let here = self.tier(tier);
            if let Some(arrivals) = &here.arrivals {
                let mut before = 0.0;
                for &(up_to, class) in &here.mix {
                    by_class[tier.index()][usize::from(class)] +=
                        arrivals.rate(self.run.duration) * (up_to - before);
                    before = up_to;
                }
            }
            flow.tiers[tier.index()] = by_class[tier.index()].iter().sum();
            let rates = by_class[tier.index()].clone();
            for (class, rate) in rates.into_iter().enumerate() {
                for (edge, calls) in here.programs[class].expectation().1 {
                    let rule = self.edge(edge);
                    let missed =
                        rule.cache.as_ref().map_or(1.0, |cache| cache.steady_miss(rate * calls));
                    let sent = rate * calls * missed * attempts(rule);
                    flow.edges[edge.index()] += sent;
                    by_class[rule.callee.index()][class] += sent;
                }
            }
        }
        flow
    }

    /// Names of the tiers along the path on which attempts multiply most, from a client to `tier`,
    /// with the product.
    pub fn steepest_path(&self, tier: TierId) -> (Vec<EdgeId>, u64) {
        let mut best: Vec<(Vec<EdgeId>, u64)> = vec![(Vec::new(), 1); self.tiers.len()];
        for caller in self.top_down() {
            for edge in self.edge_ids().filter(|&edge| self.edge(edge).caller == caller) {
                let callee = self.edge(edge).callee.index();
                let (path, product) = &best[caller.index()];
                let reached = product.saturating_mul(u64::from(self.edge(edge).retry.attempts));
                if reached > best[callee].1 || best[callee].0.is_empty() {
                    let mut path = path.clone();
                    path.push(edge);
                    best[callee] = (path, reached);
                }
            }
        }
        best.swap_remove(tier.index())
    }

    /// A path as "client -> api -> db".
    pub fn path_text(&self, path: &[EdgeId]) -> String {
        let callers = path.first().map(|edge| self.edge(*edge).caller);
        let tiers = callers.into_iter().chain(path.iter().map(|edge| self.edge(*edge).callee));
        tiers.map(|tier| self.names.tier_name(tier)).collect::<Vec<_>>().join(" -> ")
    }

    /// Mean work of one attempt at a tier, over the mix of classes that reaches it in the normal
    /// state (s).
    pub fn mean_work(&self, tier: TierId) -> f64 {
        let weights = self.class_weights();
        let programs = &self.tier(tier).programs;
        programs.iter().zip(weights).map(|(program, weight)| program.expectation().0 * weight).sum()
    }

    /// Attempts that a tier can finish, were it never to wait for a callee [1/s]; `None`:
    /// unlimited.
    pub fn capacity(&self, tier: TierId) -> Option<f64> {
        let capacity = f64::from(self.tier(tier).servers()?) / self.mean_work(tier);
        capacity.is_finite().then_some(capacity)
    }

    /// Attempts that a tier can let in and finish [1/s]; `None`: unlimited.
    pub fn most_admitted(&self, tier: TierId) -> Option<f64> {
        let limit = self.tier(tier).admission.map(|admission| admission.rate);
        limit.into_iter().chain(self.capacity(tier)).reduce(f64::min)
    }

    /// Share of each class in the demand of all clients.
    fn class_weights(&self) -> Vec<f64> {
        let mut weights = vec![0.0; self.classes.len()];
        let mut total = 0.0;
        for tier in &self.tiers {
            let Some(arrivals) = &tier.arrivals else { continue };
            let rate = arrivals.rate(self.run.duration);
            let mut before = 0.0;
            for &(up_to, class) in &tier.mix {
                weights[usize::from(class)] += rate * (up_to - before);
                before = up_to;
            }
            total += rate;
        }
        weights.iter().map(|weight| weight / total).collect()
    }
}

/// Expected attempts [1/s].
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Reaching each tier.
    pub tiers: Vec<f64>,
    /// On each edge.
    pub edges: Vec<f64>,
}
