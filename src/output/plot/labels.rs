//! Where the names of dots stand, so that none lies on another, on a dot or on a line.
//!
//! Each name in turn takes the first free place around its dot: beside it if it can, else farther
//! out with a line that leads back. Simple, and with a dozen dots enough; the names given first
//! stand nearest.

use super::paper::Place;

/// Distances from the edge of the dot that are tried, the nearest first [px].
const DISTANCES: [f64; 9] = [5.0, 18.0, 32.0, 48.0, 66.0, 86.0, 110.0, 138.0, 170.0];

/// Directions that are tried at each distance, as (right, down): beside before above and below.
const DIRECTIONS: [Place; 12] = [
    (1.0, 0.0),
    (-1.0, 0.0),
    (0.87, -0.5),
    (0.87, 0.5),
    (-0.87, -0.5),
    (-0.87, 0.5),
    (0.5, -0.87),
    (0.5, 0.87),
    (-0.5, -0.87),
    (-0.5, 0.87),
    (0.0, -1.0),
    (0.0, 1.0),
];

/// A pixel nearer is worth so much that is hidden [px²].
const WORTH: f64 = 0.2;

/// Room around a text [px].
const GAP: f64 = 3.0;

/// A rectangle by its left, top, right and lower end [px].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Left end.
    pub left: f64,
    /// Upper end.
    pub top: f64,
    /// Right end.
    pub right: f64,
    /// Lower end.
    pub bottom: f64,
}

impl Area {
    /// The area so far around a place.
    pub fn around((x, y): Place, across: f64, down: f64) -> Self {
        Area { left: x - across, top: y - down, right: x + across, bottom: y + down }
    }

    /// The area that a stroke of 3 px between two places takes up, as a rectangle.
    pub fn stroke(from: Place, to: Place) -> Self {
        let half = 1.5;
        Area {
            left: from.0.min(to.0) - half,
            top: from.1.min(to.1) - half,
            right: from.0.max(to.0) + half,
            bottom: from.1.max(to.1) + half,
        }
    }

    /// How much of it lies on another [px²].
    pub fn overlap(&self, other: &Area) -> f64 {
        let across = self.right.min(other.right) - self.left.max(other.left);
        let down = self.bottom.min(other.bottom) - self.top.max(other.top);
        across.max(0.0) * down.max(0.0)
    }

    fn wider(&self, by: f64) -> Self {
        Area {
            left: self.left - by,
            top: self.top - by,
            right: self.right + by,
            bottom: self.bottom + by,
        }
    }

    /// The same rectangle inside a larger one.
    fn moved_into(&self, outer: &Area) -> Self {
        let by = |from: f64, to: f64, least: f64, most: f64| (most - to).min(0.0).max(least - from);
        let right = by(self.left, self.right, outer.left, outer.right);
        let down = by(self.top, self.bottom, outer.top, outer.bottom);
        Area {
            left: self.left + right,
            top: self.top + down,
            right: self.right + right,
            bottom: self.bottom + down,
        }
    }

    fn nearest(&self, (x, y): Place) -> Place {
        (x.clamp(self.left, self.right), y.clamp(self.top, self.bottom))
    }
}

/// A dot that has a name.
#[derive(Clone, Copy, Debug)]
pub struct Dot {
    /// Where.
    pub at: Place,
    /// Its radius [px].
    pub clear: f64,
    /// Width and height of its name [px].
    pub size: (f64, f64),
    /// Where its name must stay.
    pub within: Area,
}

/// Where a name stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label {
    /// The place of its text.
    pub area: Area,
    /// The line back to its dot, where it stands apart.
    pub leader: Option<(Place, Place)>,
}

/// A place for each name, in the order of the dots; clear of `taken`, which holds dots and lines,
/// if it can.
pub fn place(dots: &[Dot], taken: &[Area]) -> Vec<Label> {
    let mut taken = taken.to_vec();
    let mut leaders: Vec<(Place, Place)> = Vec::new();
    let mut placed = Vec::with_capacity(dots.len());
    for dot in dots {
        let mut best: Option<(f64, Label)> = None;
        for (distance, label) in candidates(dot) {
            let cost = cost(dot, &label, &taken, &leaders) + WORTH * distance;
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, label));
            }
        }
        let Some((_, label)) = best else { continue };
        taken.push(label.area.wider(GAP));
        leaders.extend(label.leader);
        placed.push(label);
    }
    placed
}

fn candidates(dot: &Dot) -> impl Iterator<Item = (f64, Label)> {
    let around = |distance: f64| DIRECTIONS.iter().map(move |direction| (distance, direction));
    DISTANCES.into_iter().flat_map(around).map(|(distance, &(right, down))| {
        let (half_width, half_height) = (dot.size.0 / 2.0, dot.size.1 / 2.0);
        let side = if right == 0.0 { 0.0 } else { right.signum() };
        let centre = (
            dot.at.0 + right * (dot.clear + distance) + side * half_width,
            dot.at.1 + down * (dot.clear + distance + half_height),
        );
        let area = Area::around(centre, half_width, half_height).moved_into(&dot.within);
        let apart = distance > DISTANCES[0];
        (distance, Label { area, leader: apart.then(|| (dot.at, area.nearest(dot.at))) })
    })
}

/// What a place hides [px²].
fn cost(dot: &Dot, label: &Label, taken: &[Area], leaders: &[(Place, Place)]) -> f64 {
    let wide = label.area.wider(GAP);
    let hidden: f64 = taken.iter().map(|area| area.overlap(&wide)).sum();
    let crossed = leaders.iter().map(|leader| under(leader, &wide)).sum::<f64>();
    let own = label.leader.map_or(0.0, |leader| {
        // Its own dot is one of those taken.
        let others =
            taken.iter().filter(|area| area.overlap(&Area::around(dot.at, 1.0, 1.0)) == 0.0);
        others.map(|area| under(&leader, area)).sum()
    });
    hidden + crossed + own
}

/// How much of a line lies on an area, as the area of a stroke of 3 px.
fn under(&(from, to): &(Place, Place), area: &Area) -> f64 {
    const STEPS: u32 = 40;
    let length = libm::hypot(to.0 - from.0, to.1 - from.1);
    let inside = |step: &u32| {
        let share = f64::from(*step) / f64::from(STEPS);
        let at = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
        area.nearest(at) == at
    };
    let steps = (0..=STEPS).filter(inside).count();
    3.0 * length * steps as f64 / f64::from(STEPS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHEET: Area = Area { left: 0.0, top: 0.0, right: 1000.0, bottom: 500.0 };

    fn dots(places: &[Place]) -> (Vec<Dot>, Vec<Area>) {
        let dot = |&at: &Place| Dot { at, clear: 6.0, size: (150.0, 16.0), within: SHEET };
        let taken = |&at: &Place| Area::around(at, 6.0, 6.0);
        (places.iter().map(dot).collect(), places.iter().map(taken).collect())
    }

    #[test]
    fn a_lone_name_stands_right_beside_its_dot_without_a_leader() {
        let (dots, taken) = dots(&[(300.0, 200.0)]);
        let label = place(&dots, &taken)[0];
        assert_eq!((label.area.left, label.leader), (311.0, None));
    }

    #[test]
    fn at_the_right_end_a_name_stands_on_the_left() {
        let (dots, taken) = dots(&[(990.0, 200.0)]);
        assert!(place(&dots, &taken)[0].area.right < 990.0);
    }

    #[test]
    fn a_name_keeps_clear_of_a_curve_through_its_dot() {
        let (dots, mut taken) = dots(&[(300.0, 200.0)]);
        let flat = Area { left: 0.0, top: 199.0, right: 1000.0, bottom: 201.0 };
        taken.push(flat);
        let label = place(&dots, &taken)[0];
        assert_eq!((label.area.overlap(&flat), label.leader), (0.0, None));
    }

    #[test]
    fn names_of_a_crowd_hide_neither_each_other_nor_a_dot() {
        let row = [38.0, 110.0, 112.0, 113.0, 140.0, 190.0, 192.0, 400.0, 410.0];
        let (dots, taken) = dots(&row.map(|x| (x, 120.0)));
        let labels = place(&dots, &taken);
        for (index, label) in labels.iter().enumerate() {
            assert_eq!(label.area, label.area.moved_into(&SHEET));
            let others = labels[..index].iter().map(|other| &other.area).chain(&taken);
            assert!(others.map(|other| label.area.overlap(other)).sum::<f64>() == 0.0, "{label:?}");
        }
    }
}
