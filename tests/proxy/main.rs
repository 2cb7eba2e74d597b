//! The proxy between raw clients and an upstream that the tests play themselves, byte by byte, faults included.

mod closing;
mod drain;
mod fixture;
mod frames;
mod limits;
mod mock;
mod nodes;
mod order;
mod raw;
mod sasl;
mod splicing;
mod streaming;
mod vanishing;
