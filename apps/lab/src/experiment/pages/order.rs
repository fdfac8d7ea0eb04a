//! The order in which a device names its two channels.

use std::str::FromStr;

/// The order in which connections are told of the channels, of which the first is tried first where nothing else is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// URLLC first; of ordinary links, the second stands in the place of URLLC.
    #[default]
    Given,
    /// The other way round: eMBB first; of ordinary links, the first stands in the place of URLLC.
    Exchanged,
}

impl Order {
    /// Returns `pair` in this order.
    pub fn of<T>(self, [first, second]: [T; 2]) -> [T; 2] {
        match self {
            Self::Given => [first, second],
            Self::Exchanged => [second, first],
        }
    }
}

/// Reads `given` or `exchanged`.
impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "given" => Ok(Self::Given),
            "exchanged" => Ok(Self::Exchanged),
            _ => Err(format!("{text:?} is no order of channels: choose given or exchanged")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_puts_the_second_first() {
        let of = |text: &str| text.parse::<Order>().expect("an order").of([1, 2]);
        assert_eq!((of("given"), of("exchanged")), ([1, 2], [2, 1]));
        assert!("reversed".parse::<Order>().is_err());
    }
}
