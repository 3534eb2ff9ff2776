//! A radix-64 wheel: a monotone priority queue over nanoseconds.
//!
//! Eleven levels of 64 slots, one level for each 6-bit digit of a `u64`. An entry lies on the level
//! of the highest digit in which its time differs from `origin`, in the slot of its own digit.
//! Whatever lies on a lower level is therefore earlier, and within a level a lower slot is earlier:
//! two bit scans find the next slot. A reached slot with few entries is sorted into `bottom`, from
//! whose end entries leave; a fuller one moves `origin` to its start and spreads over the levels
//! below. A slot is a list of chunks from one pool, so a warm wheel allocates nothing, and memory
//! follows the number of entries rather than the fullest moment of each slot.
//!
//! Cost: in and out O(1) amortised, with at most one move per level in a lifetime (two or three in
//! practice), plus a sort or a sorted insertion among [`BOTTOM`] entries.
//!
//! Promise: entries leave in order of time, then of sequence, whatever is pushed when. The speed
//! holds when no push lies before the last pop, or before the limit of a pop that found nothing.
//!
//! Why not a binary heap: its log n levels each cost a cache miss; at a million entries it takes
//! many times as long. Why not a calendar queue: it must guess the width of its days and rebuild
//! when it guessed wrong. Why not slots of single ticks (a plain timing wheel): ticks of 1 ns would
//! need as many slots as nanoseconds, coarser ones would lose the order within a tick.
//!
//! Sources: Varghese & Lauck 1987, "Hashed and hierarchical timing wheels"; Ahuja, Mehlhorn, Orlin
//! & Tarjan 1990, "Faster algorithms for the shortest path problem" (the radix heap).

use std::mem;

use super::{Entry, Hint, NO_HINT};
use crate::kernel::pages;

const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 1 << DIGIT_BITS;
const LEVELS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;

/// A slot of at most so many entries is sorted rather than spread.
const FEW: usize = 48;
/// A bottom of fewer entries is searched from its end, one by one.
const SMALL: usize = 8;
/// With fewer than so many entries at hand, the next slots are taken along.
const BATCH: usize = 12;
/// When insertions have brought the bottom past this, its later part goes back to the slots.
const BOTTOM: usize = 64;
/// What then stays.
const KEPT: usize = 32;

/// The wheel.
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    /// Descending; every entry here leaves before every entry in the slots.
    bottom: Vec<Entry>,
    /// Pushes before this time go to the bottom, all others to the slots. Equal times may lie on
    /// both sides, since a later push has the higher sequence.
    bound: u64,
    /// The time against which levels are told; no entry in the slots lies before it.
    origin: u64,
    /// Bit per level: some slot there has entries.
    levels: u32,
    /// Bit per slot: it has entries.
    occupied: [u64; LEVELS],
    slots: Box<[[Slot; SLOTS]; LEVELS]>,
    pool: Pool,
}

/// Entries of one slot: `len` of them in a list of chunks; only the first may be part full.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    chunk: u32,
    len: u32,
}

impl Wheel {
    pub fn new() -> Self {
        Wheel {
            bottom: Vec::new(),
            bound: u64::MAX,
            origin: 0,
            levels: 0,
            occupied: [0; LEVELS],
            slots: Box::new([[Slot::default(); SLOTS]; LEVELS]),
            pool: Pool::new(),
        }
    }

    pub fn clear(&mut self) {
        self.bottom.clear();
        (self.bound, self.origin, self.levels) = (u64::MAX, 0, 0);
        self.occupied = [0; LEVELS];
        self.slots.as_flattened_mut().fill(Slot::default());
        self.pool.clear();
    }

    /// Adds an entry, whose sequence must be the highest so far.
    #[inline(always)]
    pub fn push(&mut self, entry: Entry) {
        if entry.time < self.bound && self.bottom.len() < SMALL {
            return self.slide_in(entry);
        }
        let Entry { time, order, rest } = entry;
        self.push_far(time, order, rest);
    }

    /// Inserts into a small bottom: cheaper than a search and a block move. Past the last, and that
    /// without a jump: whether the next event comes before the newest nobody can foresee.
    #[inline(always)]
    fn slide_in(&mut self, entry: Entry) {
        let Some(&last) = self.bottom.last() else { return self.bottom.push(entry) };
        let later = last.time <= entry.time;
        let first = Entry::choose(later, last, entry);
        let second = Entry::choose(later, entry, last);
        let mut at = self.bottom.len() - 1;
        self.bottom.push(first);
        while at > 0 && self.bottom[at - 1].key() < second.key() {
            self.bottom[at] = self.bottom[at - 1];
            at -= 1;
        }
        self.bottom[at] = second;
    }

    /// Adds an entry to the slots or a large bottom; by its parts, which stay in registers.
    #[inline(never)]
    fn push_far(&mut self, time: u64, order: u64, rest: u64) {
        if time >= self.bound {
            return self.place(Entry { time, order, rest });
        }
        let at = self.bottom.partition_point(|other| other.time > time);
        self.bottom.insert(at, Entry { time, order, rest });
        if self.bottom.len() > BOTTOM {
            self.spill();
        }
    }

    /// The earliest entry, if one lies before the limit; perhaps also if the earliest lies later.
    #[inline(always)]
    pub fn look(&mut self, limit: impl FnOnce() -> u64) -> Option<&Entry> {
        if self.bottom.is_empty() && self.levels != 0 {
            self.fill(limit());
        }
        self.bottom.last()
    }

    /// The third entry at hand, and the sixth: soon enough for what has to come from memory. Of a
    /// few, what is later is the third.
    #[inline(always)]
    pub fn ahead(&self) -> [Hint; 2] {
        match self.bottom[..] {
            [.., sixth, _, _, third, _, _] => [third.hint(), sixth.hint()],
            [.., third, _, _] => [NO_HINT, third.hint()],
            _ => [NO_HINT; 2],
        }
    }

    /// Takes what `look` has shown.
    #[inline(always)]
    pub fn pop(&mut self) -> Entry {
        self.bottom.pop().unwrap_or(Entry::NONE)
    }

    pub fn len(&self) -> usize {
        self.bottom.len() + self.slots.iter().flatten().map(|slot| slot.len as usize).sum::<usize>()
    }

    /// Fills the empty bottom, unless every entry lies at `limit` or later. Up to there `origin`
    /// may not move: pushes before it are still to come. Where it moves, `bound` moves with it, so
    /// that a push before it finds the bottom and never a slot.
    #[inline(never)]
    fn fill(&mut self, limit: u64) {
        while let Some((level, digit)) = self.next_slot() {
            let start = self.start(level, digit);
            if start >= limit {
                return;
            }
            self.origin = start;
            self.bound = start;
            let slot = self.unhook(level, digit);
            // All entries of a slot on level 0 have one time.
            if slot.len as usize <= FEW || level == 0 {
                self.take(slot);
                return self.complete();
            }
            self.spread(slot);
        }
    }

    /// Takes small slots along, turns the bottom round and sets its bound. `origin` stays at the
    /// first slot: the clock has come no further.
    fn complete(&mut self) {
        while self.bottom.len() < BATCH
            && let Some((level, digit)) = self.next_slot()
            && self.slots[level][digit].len as usize + self.bottom.len() <= FEW
        {
            let slot = self.unhook(level, digit);
            self.take(slot);
        }
        self.bottom.reverse();
        // A small list lives in the bottom alone. A large bottom takes no more, lest one push spill
        // all that has just been sorted.
        self.bound = if self.levels == 0 && self.bottom.len() <= FEW {
            u64::MAX
        } else {
            self.bottom[0].time
        };
    }

    /// Adds a slot to the bottom that is being filled, ascending as yet. Sorting slot by slot is
    /// less work than sorting them all, and none where a slot has one entry.
    fn take(&mut self, slot: Slot) {
        let from = self.bottom.len();
        self.pool.drain(slot, &mut self.bottom);
        if slot.len > 1 {
            self.bottom[from..].sort_unstable_by_key(Entry::key);
        }
    }

    /// Gives the later part of the bottom back to the slots.
    #[cold]
    fn spill(&mut self) {
        let surplus = self.bottom.len() - KEPT;
        let bound = self.bottom[surplus - 1].time;
        if bound < self.origin {
            return;
        }
        for index in 0..surplus {
            self.place(self.bottom[index]);
        }
        self.bottom.drain(..surplus);
        self.bound = bound;
    }

    fn spread(&mut self, slot: Slot) {
        let (mut chunk, mut left) = (slot.chunk, slot.len as usize);
        while left > 0 {
            let range = Pool::filled(chunk, left);
            left -= range.len();
            self.pool.prefetch_after(chunk);
            for index in range {
                self.place(self.pool.entries[index]);
            }
            chunk = self.pool.release(chunk);
        }
    }

    /// Puts an entry of `origin` or later into its slot.
    #[inline(always)]
    fn place(&mut self, entry: Entry) {
        let time = entry.time;
        debug_assert!(time >= self.origin, "slots begin at the origin");
        let level = ((time ^ self.origin) | 1).ilog2() / DIGIT_BITS;
        let digit = (time >> (level * DIGIT_BITS)) as usize % SLOTS;
        self.levels |= 1 << level;
        self.occupied[level as usize] |= 1 << digit;
        self.pool.append(&mut self.slots[level as usize][digit], entry);
    }

    fn next_slot(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize % SLOTS))
    }

    /// The first instant of a slot: the digits of `origin` above it, its own, and zeros.
    fn start(&self, level: usize, digit: usize) -> u64 {
        let shift = level as u32 * DIGIT_BITS;
        let above = u64::MAX.checked_shl(shift + DIGIT_BITS).unwrap_or(0);
        (self.origin & above) | ((digit as u64) << shift)
    }

    fn unhook(&mut self, level: usize, digit: usize) -> Slot {
        self.occupied[level] &= !(1 << digit);
        self.levels &= !(u32::from(self.occupied[level] == 0) << level);
        mem::take(&mut self.slots[level][digit])
    }
}

/// Chunks of entries for all slots.
#[derive(Clone, Debug)]
struct Pool {
    /// `CHUNK` entries per chunk; what lies past the end of a slot is left over.
    entries: Vec<Entry>,
    /// Per chunk the next one of its list.
    next: Vec<u32>,
    /// First of the list of free chunks.
    free: u32,
}

const CHUNK: usize = 16;
const NO_CHUNK: u32 = u32::MAX;

impl Pool {
    fn new() -> Self {
        Pool { entries: Vec::new(), next: Vec::new(), free: NO_CHUNK }
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.next.clear();
        self.free = NO_CHUNK;
    }

    #[inline(always)]
    fn append(&mut self, slot: &mut Slot, entry: Entry) {
        let fill = slot.len as usize % CHUNK;
        if fill == 0 {
            slot.chunk = self.take(slot.chunk);
        }
        self.entries[slot.chunk as usize * CHUNK + fill] = entry;
        slot.len += 1;
    }

    /// A chunk that has `next` after it.
    #[inline]
    fn take(&mut self, next: u32) -> u32 {
        if self.free == NO_CHUNK {
            self.free = self.next.len() as u32;
            self.next.push(NO_CHUNK);
            pages::make_room(&mut self.entries, CHUNK);
            self.entries.extend_from_slice(&[Entry::NONE; CHUNK]);
        }
        let chunk = self.free;
        self.free = mem::replace(&mut self.next[chunk as usize], next);
        chunk
    }

    /// Frees a chunk and names the one after it.
    #[inline]
    fn release(&mut self, chunk: u32) -> u32 {
        mem::replace(&mut self.next[chunk as usize], mem::replace(&mut self.free, chunk))
    }

    /// Hints to the processor that the chunk after this one is wanted soon: among very many entries
    /// it lies anywhere, and the next chunk is known only by this one.
    #[inline]
    fn prefetch_after(&self, chunk: u32) {
        let next = self.next[chunk as usize];
        if let Some(first) = self.entries.get(next as usize * CHUNK) {
            const PER_LINE: usize = 64 / size_of::<Entry>();
            let first = std::ptr::from_ref(first);
            (0..CHUNK).step_by(PER_LINE).for_each(|at| pages::prefetch(first.wrapping_add(at)));
        }
    }

    /// Where the entries of `chunk` lie when it is followed by full ones to `left` entries in all.
    fn filled(chunk: u32, left: usize) -> std::ops::Range<usize> {
        let first = chunk as usize * CHUNK;
        first..first + (left - 1) % CHUNK + 1
    }

    fn drain(&mut self, slot: Slot, to: &mut Vec<Entry>) {
        let (mut chunk, mut left) = (slot.chunk, slot.len as usize);
        while left > 0 {
            let range = Self::filled(chunk, left);
            left -= range.len();
            to.extend_from_slice(&self.entries[range]);
            chunk = self.release(chunk);
        }
    }
}
