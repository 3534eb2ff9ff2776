//! Mechanisms: what a tier, an edge or an operator does by rule. One file each.
//!
//! A mechanism decides and never acts: it schedules nothing, counts nothing, and sees no other
//! mechanism. Each file has the *rule* (as in the model file, immutable), its *state* (what changes
//! in a run), the decisions, the source, the tests. What they share is in `outcome` (how an attempt
//! ends) and `conditions` (what triggers and operators move).

pub mod admission;
pub mod arrival;
pub mod balance;
pub mod breaker;
pub mod budget;
pub mod cache;
pub mod concurrency;
pub mod conditions;
pub mod idempotency;
pub mod leave;
pub mod network;
pub mod optimistic;
pub mod outcome;
pub mod pace;
pub mod playbook;
pub mod pool;
pub mod queue;
pub mod refusal;
pub mod retry;
pub mod throttle;
pub mod timeout;
pub mod timer;
pub mod trigger;
pub mod work;
