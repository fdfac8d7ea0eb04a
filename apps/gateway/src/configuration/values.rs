//! Values that a configuration writes as text.

pub(super) use hvq_program::configuration::Text;
use std::str::FromStr;
use std::time::Duration;

/// A time or a size above zero: with none of it nothing would be served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Positive<T>(pub(super) T);

impl<T: FromStr<Err = String> + Default + PartialEq> FromStr for Positive<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value: T = text.parse()?;
        if value == T::default() { Err(format!("{text:?} is not above zero")) } else { Ok(Self(value)) }
    }
}

/// A duration such as `500ms`, `1.5s`, `2m` or `1h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let wanted =
            || format!("{text:?} is no duration: expected a number with ms, s, m or h, such as \"30s\"");
        let (number, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))
            .ok_or_else(wanted)?;
        let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number = number.parse::<f64>().ok().filter(|_| plain).ok_or_else(wanted)?;
        Duration::try_from_secs_f64(number * factor).map(Self).map_err(|_| wanted())
    }
}

/// A number of bytes such as `32KiB`, `10MiB`, `1GiB`, `1500`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, u64); 6] =
            [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("B", 1), ("", 1)];
        let wanted = || {
            format!("{text:?} is no size: expected a number with B, KiB, MiB, GiB or TiB, such as \"32KiB\"")
        };
        let (number, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))
            .ok_or_else(wanted)?;
        let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse::<u64>().ok().filter(|_| plain).ok_or_else(wanted)?;
        number.checked_mul(*factor).map(Self).ok_or_else(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read_with_their_units() {
        assert_eq!("1.5s".parse(), Ok(Time(Duration::from_millis(1500))));
        assert_eq!("2m".parse(), Ok(Time(Duration::from_secs(120))));
        assert_eq!("20ms".parse(), Ok(Time(Duration::from_millis(20))));
        assert_eq!("32KiB".parse(), Ok(Size(32 << 10)));
        assert_eq!("1500".parse(), Ok(Size(1500)));
        assert_eq!("7B".parse(), Ok(Size(7)));
    }

    #[test]
    fn what_has_no_unit_or_no_number_is_refused_with_an_example() {
        for text in ["", "30", "s", "-1s", "1e9s", "nans", "1d"] {
            assert!(text.parse::<Time>().unwrap_err().contains("\"30s\""), "{text}");
        }
        for text in ["", "KiB", "-1", "1.5MiB", "1KB", "99999999999TiB"] {
            assert!(text.parse::<Size>().unwrap_err().contains("\"32KiB\""), "{text}");
        }
    }
}
