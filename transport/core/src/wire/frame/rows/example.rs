// The surroundings of a table of frames, as small as they can be: included by the examples of `frames!`, which compile
// and fail to compile as crates of their own.

include!("../rows.rs");

pub struct DecodeError;
pub struct Reader;
pub trait Sink {
    fn varint(&mut self, value: u64);
}
#[derive(Clone, Copy)]
pub enum Packets {
    OneRtt,
}
#[derive(Clone, Copy)]
pub enum Class {
    Eliciting,
}
#[derive(Clone, Copy)]
pub enum Recovery {
    Repeated,
}

impl DecodeError {
    pub fn encoding(_: &'static str) -> Self {
        Self
    }
}

impl Reader {
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        Ok(7)
    }
}
