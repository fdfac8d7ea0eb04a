//! Experiments: what is varied, what is run, what is measured.

pub mod campaign;
pub mod controllers;
pub mod definition;
pub mod links;
pub mod outages;
pub mod pages;
pub mod pool;
pub mod statistics;
pub mod video;
