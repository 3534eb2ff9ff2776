//! The kernel: clock, event list, random numbers, distributions. It knows no request and no tier.

pub mod distribution;
pub mod event_list;
pub mod pages;
pub mod random;
pub mod ring;
pub mod slab;
pub mod time;

pub use distribution::Distribution;
pub use event_list::{Due, EventList, Lane, Packed};
pub use random::{Key, Purpose, Stream};
pub use ring::Ring;
pub(crate) use slab::record;
pub use slab::{Arena, Generation, Id, Record, Slab};
pub use time::{Span, Time};
