//! Records with a short life, named by slot and generation. A name that has outlived its record is
//! recognised, so a stale event needs no removal. Cost: O(1) everywhere; slots are used again,
//! newest first.

use std::num::NonZeroU32;

use super::pages;

/// The name of a record: its slot, and how often the slot has been used. Never zero, so that an
/// `enum` with an `Id` in it needs no room for its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    /// Position.
    pub slot: u32,
    generation: NonZeroU32,
}

/// Records of kind `T`, each with its generation: a name is recognised, and its record read, in one
/// look.
///
/// [`Self::get`] asks whether a name still lives. The index takes the caller's word for it, and
/// checks it in debug builds alone: most names come from a living record.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

/// How often the slot of a record has been used, odd while the record lives. Whoever writes a whole
/// record leaves it as it was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Generation(u32);

/// What a [`Slab`] can hold.
pub trait Record: Default {
    /// Its generation.
    fn generation(&self) -> Generation;

    /// The same, to change it.
    fn generation_mut(&mut self) -> &mut Generation;
}

/// Makes a kind a [`Record`] whose generation is in its field `generation`.
macro_rules! record {
    ($kind:ty) => {
        impl $crate::kernel::Record for $kind {
            #[inline(always)]
            fn generation(&self) -> $crate::kernel::Generation {
                self.generation
            }

            #[inline(always)]
            fn generation_mut(&mut self) -> &mut $crate::kernel::Generation {
                &mut self.generation
            }
        }
    };
}
pub(crate) use record;

/// New slots come by so many.
const BATCH: usize = 32;

/// Even, as of no living record.
const DEAD: NonZeroU32 = NonZeroU32::new(2).unwrap();

impl Default for Id {
    fn default() -> Self {
        Id::NONE
    }
}

impl Id {
    /// The name of nothing.
    pub const NONE: Id = Id { slot: u32::MAX, generation: DEAD };

    /// The name as one word, its slot below.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        u64::from(self.generation.get()) << 32 | u64::from(self.slot)
    }

    /// The name with these bits, of a record that has lived.
    #[inline(always)]
    pub fn from_bits(bits: u64) -> Self {
        Id::living(bits as u32, (bits >> 32) as u32)
    }

    /// The name of a living record: its generation is odd.
    #[inline]
    fn living(slot: u32, generation: u32) -> Self {
        Id { slot, generation: NonZeroU32::MIN | generation }
    }

    /// The name of what is in a slot, if it lives.
    #[inline]
    fn of(slot: u32, record: &impl Record) -> Option<Self> {
        let Generation(generation) = record.generation();
        (generation % 2 == 1).then(|| Id::living(slot, generation))
    }

    /// Whether this is the name of what is in its slot.
    #[inline(always)]
    fn names(self, record: &impl Record) -> bool {
        record.generation().0 == self.generation.get()
    }
}

/// Generations of living records are odd, so that [`Id::NONE`] and freed slots never match.
impl<T: Record> Slab<T> {
    /// Empty.
    pub fn new() -> Self {
        Slab { records: Vec::new(), free: Vec::new() }
    }

    /// Adds a record to be filled in: it is as the last one in its slot was left, or new. Spares
    /// the writing of what is not needed from the start. Panics past four thousand million living
    /// records.
    #[inline(always)]
    pub fn open(&mut self) -> (Id, &mut T) {
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop().unwrap_or_default();
        let record = &mut self.records[slot as usize];
        let Generation(generation) = record.generation_mut();
        *generation = generation.wrapping_add(1);
        (Id::living(slot, *generation), record)
    }

    /// Adds [`BATCH`] free slots, the lowest to be used first.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let (first, end) = (self.records.len(), self.records.len() + BATCH);
        let last = u32::try_from(end).expect("more records than a slot can name");
        pages::make_room(&mut self.records, BATCH);
        self.records.resize_with(end, T::default);
        pages::make_room(&mut self.free, BATCH);
        self.free.extend((first as u32..last).rev());
        // The places of the next batch are in no cache; by the time they are wanted they will be.
        let next = self.records.as_ptr().wrapping_add(end);
        (0..BATCH).for_each(|place| pages::prefetch(next.wrapping_add(place)));
    }

    /// Forgets all records and their names, and keeps the room. The next records get the same names
    /// as those of a new slab.
    pub fn clear(&mut self) {
        self.records.clear();
        self.free.clear();
    }

    /// Removes a living record; its name is dead from now on.
    #[inline(always)]
    pub fn remove(&mut self, id: Id) {
        debug_assert!(self.lives(id), "a dead record was removed again");
        let Generation(generation) = self.records[id.slot as usize].generation_mut();
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot);
    }

    /// Whether the record lives.
    #[inline]
    pub fn lives(&self, id: Id) -> bool {
        self.get(id).is_some()
    }

    /// The record, while it lives.
    #[inline]
    pub fn get(&self, id: Id) -> Option<&T> {
        let slot = id.slot as usize;
        if slot >= self.records.len() {
            return None;
        }
        let record = &self.records[slot];
        id.names(record).then_some(record)
    }

    /// The record, to change it, while it lives.
    #[inline]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let slot = id.slot as usize;
        if slot >= self.records.len() {
            return None;
        }
        let record = &mut self.records[slot];
        id.names(record).then_some(record)
    }

    /// What is in a slot, living or not.
    #[inline(always)]
    pub fn at(&self, slot: u32) -> Option<&T> {
        self.records.get(slot as usize)
    }

    /// Hints to the processor that a record is wanted soon. A slot that is none is a hint for
    /// nothing.
    #[inline(always)]
    pub fn prefetch(&self, slot: u32) {
        pages::prefetch_at(&self.records, slot);
    }

    /// All living records.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        let slots = self.records.iter().enumerate();
        slots.filter_map(|(slot, record)| Some((Id::of(slot as u32, record)?, record)))
    }

    /// The name of the record in a slot, if one lives there.
    #[inline]
    pub fn name(&self, slot: u32) -> Option<Id> {
        self.at(slot).and_then(|record| Id::of(slot, record))
    }

    /// Number of living records.
    pub fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Slots there are: about the most records that have lived at once.
    #[inline]
    pub fn room(&self) -> usize {
        self.records.len()
    }

    /// True when nothing lives.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Record> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Record> std::ops::Index<Id> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, id: Id) -> &T {
        debug_assert!(self.lives(id), "the record lives");
        &self.records[id.slot as usize]
    }
}

impl<T: Record> std::ops::IndexMut<Id> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, id: Id) -> &mut T {
        debug_assert!(self.lives(id), "the record lives");
        &mut self.records[id.slot as usize]
    }
}

/// Records with an owner, named by slot alone: whoever holds the name knows that the record lives.
/// Cost: O(1); slots are used again, newest first.
#[derive(Clone, Debug, Default)]
pub struct Arena<T> {
    records: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Arena<T> {
    /// Adds a record to be filled in: it is as the last one in its slot was left, or new.
    #[inline(always)]
    pub fn open(&mut self) -> (u32, &mut T) {
        let slot = self.free.pop().unwrap_or(self.records.len() as u32);
        if slot as usize == self.records.len() {
            pages::make_room(&mut self.records, 1);
            self.records.push(T::default());
        }
        (slot, &mut self.records[slot as usize])
    }

    /// Takes a record back.
    #[inline(always)]
    pub fn close(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Hints to the processor that a record is wanted soon.
    #[inline(always)]
    pub fn prefetch(&self, slot: u32) {
        if let Some(record) = self.records.get(slot as usize) {
            // A record may lie across two lines of the processor's cache.
            let last = std::ptr::from_ref(record).wrapping_byte_add(size_of::<T>() - 1);
            pages::prefetch(record);
            pages::prefetch(last);
        }
    }

    /// Forgets all records, and keeps the room.
    pub fn clear(&mut self) {
        self.records.clear();
        self.free.clear();
    }
}

impl<T> std::ops::Index<u32> for Arena<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.records[slot as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Arena<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.records[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Letter {
        letter: char,
        generation: Generation,
    }

    record!(Letter);

    #[test]
    fn a_name_dies_with_its_record_though_the_slot_lives_on() {
        let mut slab = Slab::new();
        let insert = |slab: &mut Slab<Letter>, letter| {
            let (id, record) = slab.open();
            record.letter = letter;
            id
        };
        let letter = |slab: &Slab<Letter>, id| slab.get(id).map(|record| record.letter);
        let first = insert(&mut slab, 'a');
        slab.remove(first);
        let second = insert(&mut slab, 'b');
        assert_eq!(first.slot, second.slot);
        assert_eq!((letter(&slab, first), letter(&slab, second)), (None, Some('b')));
        assert_eq!((letter(&slab, Id::NONE), slab.len()), (None, 1));
        assert_eq!(slab.iter().map(|(id, _)| id).collect::<Vec<Id>>(), [second]);
        assert_eq!(slab.name(second.slot), Some(second));
        slab.remove(second);
        assert_eq!((slab.name(second.slot), slab.name(u32::MAX)), (None, None));
    }

    #[test]
    fn a_cleared_slab_gives_the_names_of_a_new_one() {
        let names = |slab: &mut Slab<Letter>| {
            let first: Vec<Id> = (0..100).map(|_| slab.open().0).collect();
            first.iter().step_by(3).for_each(|&id| slab.remove(id));
            let again = (0..50).map(|_| slab.open().0);
            first.iter().copied().chain(again).collect::<Vec<Id>>()
        };
        let mut slab = Slab::new();
        let of_new = names(&mut slab);
        slab.clear();
        assert!(slab.is_empty() && slab.iter().count() == 0);
        assert!(of_new.iter().all(|&id| !slab.lives(id)));
        assert_eq!(names(&mut slab), of_new);
    }

    #[test]
    fn an_arena_uses_its_slots_again() {
        let mut arena = Arena::default();
        let (first, record) = arena.open();
        *record = 'a';
        let (second, _) = arena.open();
        arena.close(first);
        assert_eq!((arena.open(), second), ((first, &mut 'a'), 1));
    }
}
