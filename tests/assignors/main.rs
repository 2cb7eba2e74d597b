//! Assignors outside the coordinator: those that are shipped as examples, and a client of our own that takes part in the
//! protocol as KIP-848 has it.

mod examples;
mod groups;
mod participant;
mod participants;
