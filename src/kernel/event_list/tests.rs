//! Tests of the event list against a binary heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;

fn nanos(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

impl Packed for u64 {
    fn pack(self) -> (u8, u64) {
        (self as u8, self)
    }

    fn unpack(kind: u8, rest: u64) -> Self {
        assert_eq!(kind, rest as u8);
        rest
    }
}

fn pop(list: &mut EventList<u64>, end: Time) -> Option<(Time, u64)> {
    list.pop_before(end).map(|due| (due.time, due.event()))
}

fn drain(list: &mut EventList<u64>) -> Vec<(Time, u64)> {
    std::iter::from_fn(|| pop(list, Time::NEVER)).collect()
}

#[test]
fn equal_times_leave_in_order_of_entry_across_wheel_and_lanes() {
    let mut list = EventList::new();
    let lane = list.lane(Span::from_nanos(5)).unwrap();
    list.push(nanos(5), 1);
    list.push_in(lane, nanos(5), 2);
    list.push(nanos(5), 3);
    list.push_in(lane, nanos(5), 4);
    let order: Vec<u64> = drain(&mut list).into_iter().map(|(_, event)| event).collect();
    assert_eq!(order, [1, 2, 3, 4]);
}

#[test]
fn an_event_at_the_end_stays_in_the_list() {
    let mut list = EventList::new();
    list.push(nanos(9), 1);
    assert_eq!(pop(&mut list, nanos(9)), None);
    assert_eq!(list.len(), 1);
    assert_eq!(pop(&mut list, nanos(10)), Some((nanos(9), 1)));
    assert!(list.is_empty());
}

#[test]
fn after_a_vain_look_an_earlier_event_may_still_come() {
    let mut list = EventList::new();
    (0..200).for_each(|number| list.push(nanos(1_000_000 + number), number));
    assert_eq!(pop(&mut list, nanos(999_999)), None);
    list.push(nanos(999_999), 1_000);
    assert_eq!(pop(&mut list, Time::NEVER), Some((nanos(999_999), 1_000)));
    assert_eq!(pop(&mut list, Time::NEVER), Some((nanos(1_000_000), 0)));
}

#[test]
fn silence_is_broken_by_any_event_of_the_present() {
    let of = |fill: &dyn Fn(&mut EventList<u64>)| {
        let mut list = EventList::new();
        fill(&mut list);
        list.is_silent(nanos(5))
    };
    assert!(of(&|_| ()));
    assert!(of(&|list| list.push(nanos(6), 1)));
    assert!(!of(&|list| list.push(nanos(5), 1)));
    assert!(!of(&|list| list.push_now(nanos(5), 1)));
    for (time, silent) in [(5, false), (6, true)] {
        let in_lane = |list: &mut EventList<u64>| {
            let lane = list.lane(Span::from_nanos(5)).unwrap();
            list.push_in(lane, nanos(time), 1);
        };
        assert_eq!(of(&in_lane), silent);
    }
}

#[test]
fn an_event_at_never_stays_forever() {
    let mut list = EventList::new();
    let lane = list.lane(Span::MAX).unwrap();
    list.push(Time::NEVER, 1);
    list.push_in(lane, Time::NEVER, 2);
    list.push(nanos(3), 3);
    assert_eq!(drain(&mut list), [(nanos(3), 3)]);
    assert_eq!(list.len(), 2);
}

#[test]
fn a_thousand_events_at_one_time_leave_in_order_while_more_come() {
    let mut list = EventList::new();
    (0..1_000).for_each(|number| list.push(nanos(77), number));
    let mut order = Vec::new();
    while let Some((now, number)) = pop(&mut list, Time::NEVER) {
        order.push(number);
        if number < 1_000 {
            list.push(now, number + 1_000);
        }
    }
    assert_eq!(order, (0..2_000).collect::<Vec<u64>>());
}

#[test]
fn a_list_copied_half_way_goes_on_alike() {
    let mut list = EventList::new();
    (0..500u64).for_each(|number| list.push(nanos(number * 7_919 % 10_007), number));
    assert_eq!((0..250).filter_map(|_| pop(&mut list, Time::NEVER)).count(), 250);
    let mut copy = list.clone();
    assert_eq!(drain(&mut copy), drain(&mut list));
}

/// What a driver may do with a list.
#[derive(Clone, Debug)]
enum Step {
    /// Push so many events, each so long after the present, with so much between them.
    Push { count: u64, wait: u64, gap: u64 },
    /// Push an event at the end of time.
    PushNever,
    /// Push after a constant span.
    PushAfter { span: usize },
    /// One who never has more than one event to come pushes it, if there is none.
    PushOwn { maker: usize, wait: u64 },
    /// Pop up to `count` events before so long after the present.
    Pop { count: u64, wait: u64, advance: bool },
}

/// Waits of every order of magnitude, equal ones among them.
fn wait() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..4,
        0u64..200,
        (0u32..63).prop_map(|bits| 1 << bits),
        (0u32..63, any::<u64>()).prop_map(|(bits, noise)| noise >> (63 - bits) >> 1),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (wait(), Just(1), Just(0)).prop_map(|(wait, count, gap)| {
            Step::Push { count, wait, gap }
        }),
        2 => (1u64..300, wait(), wait()).prop_map(|(count, wait, gap)| {
            Step::Push { count, wait, gap: gap >> 9 }
        }),
        1 => Just(Step::PushNever),
        4 => (0..SPANS.len()).prop_map(|span| Step::PushAfter { span }),
        4 => (0..MAKERS, wait()).prop_map(|(maker, wait)| Step::PushOwn { maker, wait }),
        4 => (1u64..200, wait(), any::<bool>()).prop_map(|(count, wait, advance)| {
            Step::Pop { count, wait, advance }
        }),
        2 => (1u64..200).prop_map(|count| Step::Pop { count, wait: u64::MAX, advance: false }),
    ]
}

/// More than there are lanes; one twice, one for ever.
const SPANS: [u64; 11] =
    [0, 1, 64, 100, 100, 4_096, 1_000_000, 1_000_000_000, 5, u64::MAX, 1 << 40];

/// How many have a lane of their own.
const MAKERS: usize = 2;

fn uses_few_lanes(step: &Step) -> bool {
    match step {
        Step::PushAfter { span } => SPANS[*span] <= 1,
        Step::PushOwn { maker, .. } => *maker == 0,
        _ => true,
    }
}

/// The list, and a heap that does the same.
#[derive(Default)]
struct Pair {
    list: EventList<u64>,
    heap: BinaryHeap<Reverse<(Time, u64)>>,
    pushed: u64,
    now: Time,
    makers: [Maker; MAKERS],
}

/// One with a lane of its own.
#[derive(Clone, Copy, Default)]
struct Maker {
    lane: Option<Lane>,
    /// Its event to come.
    event: Option<u64>,
}

impl Pair {
    fn clear(&mut self) {
        self.list.clear();
        *self = Pair { list: mem::take(&mut self.list), ..Pair::default() };
    }

    fn push(&mut self, time: Time) {
        self.list.push(time, self.pushed);
        self.heap.push(Reverse((time, self.pushed)));
        self.pushed += 1;
    }

    fn push_after(&mut self, span: Span) {
        if span == Span::ZERO {
            self.list.push_now(self.now, self.pushed);
            self.heap.push(Reverse((self.now, self.pushed)));
            self.pushed += 1;
            return;
        }
        match self.list.lane(span) {
            Some(lane) => self.list.push_in(lane, self.now + span, self.pushed),
            None => self.list.push(self.now + span, self.pushed),
        }
        self.heap.push(Reverse((self.now + span, self.pushed)));
        self.pushed += 1;
    }

    fn push_own(&mut self, maker: usize, time: Time) {
        let maker = &mut self.makers[maker];
        if maker.event.is_some_and(|event| self.heap.iter().any(|entry| entry.0.1 == event)) {
            return;
        }
        maker.event = Some(self.pushed);
        maker.lane = maker.lane.or_else(|| self.list.own_lane());
        match maker.lane {
            Some(lane) => self.list.push_in(lane, time, self.pushed),
            None => self.list.push(time, self.pushed),
        }
        self.heap.push(Reverse((time, self.pushed)));
        self.pushed += 1;
    }

    /// Both answers, which ought to be equal.
    fn pop_before(&mut self, end: Time) -> [Option<(Time, u64)>; 2] {
        let due = self.heap.peek().is_some_and(|entry| entry.0.0 < end);
        let expected = if due { self.heap.pop().map(|entry| entry.0) } else { None };
        [pop(&mut self.list, end), expected]
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Push { count, wait, gap } => (0..count).for_each(|number| {
                // Neither sorted nor reversed: every third first.
                let turn = number * 3 % count.max(1);
                self.push(self.now + Span::from_nanos(wait) + Span::from_nanos(gap * turn));
            }),
            Step::PushNever => self.push(Time::NEVER),
            Step::PushAfter { span } => self.push_after(Span::from_nanos(SPANS[span])),
            Step::PushOwn { maker, wait } => {
                self.push_own(maker, self.now + Span::from_nanos(wait))
            }
            Step::Pop { count, wait, advance } => {
                let end = self.now + Span::from_nanos(wait);
                for _ in 0..count {
                    let [got, expected] = self.pop_before(end);
                    prop_assert_eq!(got, expected);
                    let Some((time, _)) = got else {
                        // Without the advance, pushes before a vain end are tried as well.
                        self.now = if advance { end } else { self.now };
                        break;
                    };
                    self.now = time;
                }
            }
        }
        prop_assert_eq!(self.list.len(), self.heap.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
    #[test]
    fn every_script_pops_the_same_from_the_list_and_from_a_heap(
        script in prop_oneof![
            prop::collection::vec(step(), 1..120),
            // With two lanes at most, since of few lanes the first is chosen in another way.
            prop::collection::vec(step().prop_filter("few lanes", uses_few_lanes), 1..120),
        ],
    ) {
        let mut pair = Pair::default();
        // Once from new, and once more in a list that has been used and cleared.
        for _ in 0..2 {
            for step in &script {
                pair.step(step)?;
            }
            pair.clear();
        }
        for step in &script {
            pair.step(step)?;
        }
        loop {
            let [got, expected] = pair.pop_before(Time::NEVER);
            prop_assert_eq!(got, expected);
            if got.is_none() {
                break;
            }
        }
    }
}
