//! Two endpoints in virtual time over links with a delay: the smallest network that shows a connection at work.

mod admission;
mod basics;
mod fairness;
mod forged;
mod gate;
mod grease;
mod hellos;
mod hostile_ends;
mod hostile_paths;
mod hostile_random;
mod hostile_streams;
mod insiders;
mod ledger;
mod levels;
mod memory;
mod network;
mod openings;
mod paths;
mod repetition;
mod resets;
mod rules;
mod strangers;
mod tokens;
mod versions;
