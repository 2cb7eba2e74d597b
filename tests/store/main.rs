//! What every state store must do, and what the embedded one does when the process or the disk lets it down.

mod contract;
mod crash;
mod damage;
mod disk;
mod samples;
mod together;
