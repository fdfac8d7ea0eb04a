//! Controllers to be made: built-in ones by name, and those of a program.

use super::algorithm::{Algorithm, UnknownAlgorithm};
use super::controller::Controller;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Makes controllers. It is asked once for each route of each path (RFC 9000 §9.4).
///
/// [`Algorithm`] is one; so is every function of this signature.
pub trait ControllerFactory: Send + Sync {
    /// A controller in its initial state for UDP payloads of `datagram_size` bytes.
    fn build(&self, datagram_size: usize) -> Box<dyn Controller>;
}

impl ControllerFactory for Algorithm {
    fn build(&self, datagram_size: usize) -> Box<dyn Controller> {
        Self::build(*self, datagram_size)
    }
}

impl<F> ControllerFactory for F
where
    F: Fn(usize) -> Box<dyn Controller> + Send + Sync,
{
    fn build(&self, datagram_size: usize) -> Box<dyn Controller> {
        self(datagram_size)
    }
}

/// The congestion control of a connection or of a path. Default: CUBIC.
///
/// ```
/// use hvq_transport::congestion::{Algorithm, Congestion};
///
/// let by_name: Congestion = Algorithm::Bbr.into();
/// let of_ones_own = Congestion::custom(|size: usize| Algorithm::NewReno.build(size));
/// assert_eq!([by_name.build(1200).name(), of_ones_own.build(1200).name()], ["bbr", "newreno"]);
/// ```
#[derive(Clone)]
pub enum Congestion {
    /// A built-in algorithm.
    BuiltIn(Algorithm),
    /// The controllers that this factory makes.
    Custom(Arc<dyn ControllerFactory>),
}

impl Congestion {
    /// The controllers that `factory` makes.
    pub fn custom(factory: impl ControllerFactory + 'static) -> Self {
        Self::Custom(Arc::new(factory))
    }

    /// A controller in its initial state for UDP payloads of `datagram_size` bytes.
    pub fn build(&self, datagram_size: usize) -> Box<dyn Controller> {
        match self {
            Self::BuiltIn(algorithm) => algorithm.build(datagram_size),
            Self::Custom(factory) => factory.build(datagram_size),
        }
    }
}

impl Default for Congestion {
    fn default() -> Self {
        Algorithm::default().into()
    }
}

impl From<Algorithm> for Congestion {
    fn from(algorithm: Algorithm) -> Self {
        Self::BuiltIn(algorithm)
    }
}

impl FromStr for Congestion {
    type Err = UnknownAlgorithm;

    /// Takes the name of an [`Algorithm`].
    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        name.parse().map(Self::BuiltIn)
    }
}

/// The same algorithm, or the same factory.
impl PartialEq for Congestion {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn(one), Self::BuiltIn(other)) => one == other,
            (Self::Custom(one), Self::Custom(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Congestion {}

impl fmt::Debug for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(algorithm) => f.debug_tuple("BuiltIn").field(algorithm).finish(),
            Self::Custom(_) => f.debug_tuple("Custom").finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factory_is_equal_to_itself_and_to_no_other() {
        let factory = || Congestion::custom(|size: usize| Algorithm::Copa.build(size));
        let one = factory();
        assert_eq!(one, one.clone());
        assert_ne!(one, factory());
        assert_ne!(one, Algorithm::Copa.into());
        assert_eq!(Congestion::default(), Algorithm::Cubic.into());
        assert_eq!("copa".parse(), Ok(Congestion::from(Algorithm::Copa)));
    }
}
