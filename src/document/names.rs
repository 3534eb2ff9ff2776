//! The names that a model file declares, and the numbers they become.

use super::{Value, nearest};

/// A tier of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TierId(pub u16);

/// An edge of the call graph: what one tier does about one callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EdgeId(pub u16);

/// All declared tiers and edges, in order of the file.
#[derive(Clone, Debug, Default)]
pub struct Names {
    tiers: Vec<String>,
    edges: Vec<(TierId, TierId)>,
    /// Tiers with a call that could not be read: which edges they have is not known.
    doubtful: Vec<TierId>,
}

impl TierId {
    /// Position in every per-tier list.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl EdgeId {
    /// Position in every per-edge list.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Names {
    /// Declares a tier.
    pub fn add_tier(&mut self, name: &str) -> TierId {
        self.tiers.push(name.to_owned());
        TierId(self.tiers.len() as u16 - 1)
    }

    /// Declares an edge.
    pub fn add_edge(&mut self, caller: TierId, callee: TierId) -> EdgeId {
        self.edges.push((caller, callee));
        EdgeId(self.edges.len() as u16 - 1)
    }

    /// Notes that a call of the tier could not be read.
    pub fn doubt(&mut self, caller: TierId) {
        self.doubtful.push(caller);
    }

    /// True when a call of the tier could not be read.
    pub fn in_doubt(&self, caller: TierId) -> bool {
        self.doubtful.contains(&caller)
    }

    /// The tier of that name.
    pub fn find_tier(&self, name: &str) -> Option<TierId> {
        self.tiers.iter().position(|tier| tier == name).map(|index| TierId(index as u16))
    }

    /// The edge between two tiers.
    pub fn find_edge(&self, caller: TierId, callee: TierId) -> Option<EdgeId> {
        self.edges.iter().position(|&e| e == (caller, callee)).map(|index| EdgeId(index as u16))
    }

    /// The tier that `name` in `value` means; unknown names are faults.
    pub fn tier(&self, name: &str, value: &Value<'_>) -> Option<TierId> {
        let found = self.find_tier(name);
        if found.is_none() {
            let cure = nearest(name, self.tiers.iter().map(String::as_str));
            let what = format!("there is no tier `{name}`");
            value.name_fault(name, &what, "no [tier.…] of the model has this name", &cure);
        }
        found
    }

    /// The edge that `name`, written "caller->callee", means; unknown names are faults.
    pub fn edge(&self, name: &str, value: &Value<'_>) -> Option<EdgeId> {
        let ends = name.split_once("->").map(|(from, to)| (from.trim(), to.trim()));
        let caller = ends.and_then(|(from, _)| self.find_tier(from));
        let found = ends.and_then(|(_, to)| self.find_edge(caller?, self.find_tier(to)?));
        // The faulty call may be this very edge: one mistake is not told twice.
        let doubtful = caller.is_some_and(|caller| self.in_doubt(caller));
        if found.is_none() && !doubtful {
            let known: Vec<String> =
                (0..self.edges.len()).map(|e| self.edge_name(EdgeId(e as u16))).collect();
            let why = "it must be the two ends of a [tier.CALLER.call.CALLEE], written \
            \"caller->callee\"";
            let cure = nearest(name, known.iter().map(String::as_str));
            value.name_fault(name, &format!("there is no edge `{name}`"), why, &cure);
        }
        found
    }

    /// Caller and callee of every edge.
    pub fn edges(&self) -> &[(TierId, TierId)] {
        &self.edges
    }

    /// "caller->callee".
    pub fn edge_name(&self, edge: EdgeId) -> String {
        let (caller, callee) = self.edges[edge.index()];
        format!("{}->{}", self.tiers[caller.index()], self.tiers[callee.index()])
    }

    /// The edges that a tier calls, in order of declaration.
    pub fn edges_of(&self, caller: TierId) -> impl Iterator<Item = EdgeId> {
        let edges = self.edges.iter().enumerate();
        edges.filter(move |(_, ends)| ends.0 == caller).map(|(index, _)| EdgeId(index as u16))
    }

    /// The names of all tiers.
    pub fn tiers(&self) -> impl Iterator<Item = &str> {
        self.tiers.iter().map(String::as_str)
    }

    /// The name of a tier.
    pub fn tier_name(&self, tier: TierId) -> &str {
        &self.tiers[tier.index()]
    }
}

/// Reads a table whose keys are tiers. Every entry is read before the first fault ends it.
pub fn by_tier<'a, T>(
    value: &Value<'a>,
    names: &Names,
    read: impl Fn(&Value<'a>) -> Option<T>,
) -> Option<Vec<(TierId, T)>> {
    by_name(value, |v| names.tier(v.key(), v), read)
}

/// Reads a table whose keys are edges, "caller->callee".
pub fn by_edge<'a, T>(
    value: &Value<'a>,
    names: &Names,
    read: impl Fn(&Value<'a>) -> Option<T>,
) -> Option<Vec<(EdgeId, T)>> {
    by_name(value, |v| names.edge(v.key(), v), read)
}

fn by_name<'a, I, T>(
    value: &Value<'a>,
    resolve: impl Fn(&Value<'a>) -> Option<I>,
    read: impl Fn(&Value<'a>) -> Option<T>,
) -> Option<Vec<(I, T)>> {
    let entries = value.section()?.entries();
    let read_all: Vec<_> = entries.iter().map(|entry| (resolve(entry), read(entry))).collect();
    read_all.into_iter().map(|(id, setting)| Some((id?, setting?))).collect()
}

/// Reads a list of names.
pub fn list_of<I>(
    value: &Value<'_>,
    resolve: impl Fn(&str, &Value<'_>) -> Option<I>,
) -> Option<Vec<I>> {
    let items = value.list()?;
    let read_all: Vec<Option<I>> = items.iter().map(|item| resolve(item.text()?, item)).collect();
    read_all.into_iter().collect()
}
