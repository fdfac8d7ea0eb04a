//! Congestion control under quinn's names. What they stand for is hvq's, and so are controllers of the program: `hvq::congestion` has their contract.

pub use hvq::congestion::{Algorithm, Congestion};

/// The congestion control of a connection's paths.
pub trait ControllerFactory {
    /// The congestion control as hvq has it.
    fn congestion(&self) -> Congestion;
}

impl ControllerFactory for Congestion {
    fn congestion(&self) -> Congestion {
        self.clone()
    }
}

impl ControllerFactory for Algorithm {
    fn congestion(&self) -> Congestion {
        (*self).into()
    }
}

/// CUBIC (RFC 9438).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CubicConfig(());

impl ControllerFactory for CubicConfig {
    fn congestion(&self) -> Congestion {
        Algorithm::Cubic.into()
    }
}

/// NewReno (RFC 9002 §7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NewRenoConfig(());

impl ControllerFactory for NewRenoConfig {
    fn congestion(&self) -> Congestion {
        Algorithm::NewReno.into()
    }
}

/// BBR (draft-ietf-ccwg-bbr): version 3, where quinn has version 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BbrConfig(());

impl ControllerFactory for BbrConfig {
    fn congestion(&self) -> Congestion {
        Algorithm::Bbr.into()
    }
}
