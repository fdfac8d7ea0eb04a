//! Reports: pages of HTML that need nothing else, drawings in them, and tables for a terminal.

pub mod controllers;
pub mod experiments;
pub mod outages;
pub mod page;
pub mod pages;
pub mod svg;
pub mod video;
