//! `metastable`: a discrete-event modelling engine for metastable failures, outages that stay after
//! their trigger has gone because retries, full queues, cold caches or herds of clients keep the
//! load up.
//!
//! A user writes the call graph of a system as a TOML file. The engine simulates it event by event,
//! once with its triggers and once without (its *twin*), and says whether it is stable, metastable,
//! overloaded, or cannot be judged yet, with the figures and assumptions on which that rests.
//!
//! # Quick start
//!
//! ```
//! use metastable::model::Model;
//! use metastable::simulation::Simulation;
//! use metastable::verdict::{Class, judge};
//!
//! let text = r#"
//!     run = { duration = "5m" }
//!
//!     [tier.client]
//!     arrivals.poisson = "60/s"
//!
//!     [tier.client.call.api]
//!     timeout  = "1s"
//!     attempts = 3
//!
//!     [tier.api]
//!     concurrency      = 1
//!     work.exponential = "10ms"
//!     queue.fifo       = { capacity = 500 }
//!
//!     [[trigger]]
//!     at     = "1m"
//!     lasts  = "30s"
//!     demand = { client = 3 }
//! "#;
//! let model = Model::parse(text, &|_| Err("no other files".into())).expect("the model is sound");
//! let calm = model.untriggered();
//! let record = Simulation::new(&model, 1, 0.0).run(&mut ());
//! let twin = Simulation::new(&calm, 1, 0.0).run(&mut ());
//! let verdict = judge(&model, &record, Some(&twin));
//! assert_eq!(verdict.class, Class::Metastable);
//! println!("{}", verdict.sentence);
//! ```
//!
//! # The house
//!
//! One room a folder (or file), one thing a room does. A room sees those below it, and no other.
//!
//! ```text
//!             text.toml                                     verdict · plots · Parquet
//!                 │                                                   ▲
//! 10   ┌──────────┴──────────────────── cli ──────────────────────────┴──┐ only room that prints
//!  9   │                              output     text · json · plot · …  │ only one to write files
//!  8   │                          experiment      twins ensembles sweeps │ starts the threads
//!  7   │                       verdict            judge a Record         │ pure
//!  6   │              simulation   loop · event · calling · serving …    │ the only mutable world
//!  5   │         model             Document → Model: names to indices    │ pure
//!  4   │    measure                meter · histogram · record · figures  │ plain counters
//!  3   │  mechanism                arrival queue pool retry trigger …    │ pure deciders
//!  2   │ document                  TOML with places · units · faults     │ pure
//!  1   │kernel                     time · event list · random · laws     │ knows no request
//!      └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Why `document` is a room of its own, below the mechanisms: each mechanism reads its own table,
//! and all faults of a file must be found in one pass with their line and column, which needs a
//! reader that goes on after a fault. Why `measure` stands above `mechanism`: it counts refusals by
//! their reason.
//!
//! * **Mechanisms decide, the simulation acts.** A mechanism never schedules and never sees
//!   another. Triggers and the operator only move levers ([`mechanism::conditions`]).
//! * **Randomness is keyed** ([`kernel::random`]): a draw belongs to a request and a purpose, so
//!   twins share their fate and a change to one mechanism shifts no other draw.
//! * **Time is whole nanoseconds** ([`kernel::time`]); events at one instant happen in order of
//!   entry.
//! * **Everything is measured in windows** ([`measure::record`]); phases, verdicts, plots and files
//!   are sums over them.
//!
//! # Reading order
//!
//! This page; one file under `models/`; `simulation/event.rs` (what can happen);
//! `simulation/mod.rs` (the loop); `simulation/calling.rs`, `simulation/serving.rs`,
//! `simulation/working.rs` and `simulation/concluding.rs` (an attempt, from its caller to its
//! callee and back); one mechanism, for example `mechanism/queue.rs`; `verdict/mod.rs`.

#![warn(missing_docs)]

pub mod cli;
pub mod document;
pub mod experiment;
pub mod kernel;
pub mod measure;
pub mod mechanism;
pub mod model;
pub mod output;
pub mod simulation;
pub mod verdict;
