//! Hints about a channel, as `key=value` pairs.

use super::OptionsError;
use crate::path::Sharing;
use crate::{Bandwidth, Hints};
use hvq_transport::congestion::Congestion;
use hvq_transport::connection::Dscp;
use hvq_transport::scheduler::{Metering, PerMille};
use std::time::Duration;

/// Reads hints separated by commas; none gives [`Hints::NONE`].
///
/// | key | value | example |
/// |---|---|---|
/// | `rate` | a number with `bit`, `kbit`, `mbit` or `gbit` (a second) | `rate=2mbit` |
/// | `down` | the rate in the other direction, as `rate`, which else holds for both | `down=60mbit` |
/// | `delay` | one way, a number with `us`, `ms` or `s` | `delay=2.5ms` |
/// | `loss` | a percentage, in steps of a tenth | `loss=0.5%` |
/// | `price` | per byte, a whole number in any one unit | `price=3` |
/// | `shared` | `yes`, `no`, or `endpoint` for other connections of this endpoint only: who else uses the channel | `shared=no` |
/// | `metered` | `yes` or `no`: whether bytes are paid for or counted | `metered=yes` |
///
/// # Errors
/// A key is unknown, stands there twice, or has a value that it cannot have.
pub fn parse_hints(text: &str) -> Result<Hints, OptionsError> {
    let mut hints = Hints::NONE;
    let mut seen: Vec<&str> = Vec::new();
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(|| OptionsError::NotAPair(pair.to_owned()))?;
        if seen.contains(&key) {
            return Err(OptionsError::Repeated(key.to_owned()));
        }
        seen.push(key);
        set(&mut hints, key, value)?;
    }
    Ok(hints)
}

/// Reads what [`parse_hints`] does, and `congestion`, the name of an [`Algorithm`](crate::congestion::Algorithm).
pub(super) fn parse_values(text: &str) -> Result<(Hints, Option<Congestion>), OptionsError> {
    const KEY: &str = "congestion";
    let (mut congestion, mut others) = (None, Vec::new());
    for pair in text.split(',') {
        match pair.split_once('=') {
            Some((KEY, _)) if congestion.is_some() => return Err(OptionsError::Repeated(KEY.to_owned())),
            Some((KEY, name)) => congestion = Some(name.parse()?),
            _ => others.push(pair),
        }
    }
    Ok((parse_hints(&others.join(","))?, congestion))
}

/// Takes `dscp=NUMBER` out of pairs separated by commas; returns it, and the rest.
pub(crate) fn split_dscp(text: &str) -> Result<(Dscp, String), OptionsError> {
    let (marks, rest): (Vec<&str>, Vec<&str>) = text.split(',').partition(|pair| pair.starts_with("dscp="));
    let mut values = marks.iter().filter_map(|pair| pair.strip_prefix("dscp="));
    let value = values.next().unwrap_or("0");
    if values.next().is_some() {
        return Err(OptionsError::Repeated("dscp".to_owned()));
    }
    let invalid = || OptionsError::Value {
        key: "dscp",
        value: value.to_owned(),
        expected: "a number from 0 to 63, such as 46",
    };
    Ok((value.parse().map_err(|_| invalid())?, rest.join(",")))
}

fn set(hints: &mut Hints, key: &str, value: &str) -> Result<(), OptionsError> {
    let invalid = |key, expected| move || OptionsError::Value { key, value: value.to_owned(), expected };
    const RATE: &str = "a number with bit, kbit, mbit or gbit, such as 2mbit";
    match key {
        "rate" => hints.rate = Some(rate(value).ok_or_else(invalid("rate", RATE))?),
        "down" => hints.rate_back = Some(rate(value).ok_or_else(invalid("down", RATE))?),
        "delay" => {
            let expected = "a number with us, ms or s, such as 2.5ms";
            hints.delay = Some(delay(value).ok_or_else(invalid("delay", expected))?);
        }
        "loss" => {
            let expected = "a percentage from 0% to 100%, such as 0.5%";
            hints.loss = Some(loss(value).ok_or_else(invalid("loss", expected))?);
        }
        "price" => {
            let price = value.parse().map_err(|_| invalid("price", "a whole number")())?;
            hints.price_per_byte = Some(price);
        }
        "shared" => {
            hints.shared = match value {
                "yes" => Sharing::Shared,
                "endpoint" => Sharing::Endpoint,
                "no" => Sharing::Dedicated,
                _ => return Err(invalid("shared", "yes, no or endpoint")()),
            };
        }
        "metered" => {
            hints.metering = match value {
                "yes" => Metering::Metered,
                "no" => Metering::Unmetered,
                _ => return Err(invalid("metered", "yes or no")()),
            };
        }
        _ => return Err(OptionsError::Key(key.to_owned())),
    }
    Ok(())
}

fn rate(text: &str) -> Option<Bandwidth> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    let number = text.strip_suffix("bit")?;
    let bits = scaled(number, &[("k", 1e3), ("m", 1e6), ("g", 1e9), ("", 1.0)])?;
    (bits >= 1.0).then(|| Bandwidth::from_bits_per_second(bits as u64))
}

fn delay(text: &str) -> Option<Duration> {
    let seconds = scaled(text, &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)])?;
    // Whole nanoseconds: binary fractions of a decimal are a little off.
    (seconds <= 3600.0).then(|| Duration::from_nanos((seconds * 1e9).round() as u64))
}

fn loss(text: &str) -> Option<PerMille> {
    let percent = scaled(text, &[("%", 1.0)])?;
    (percent <= 100.0).then(|| PerMille::new((percent * 10.0).round() as u16))
}

/// A number that ends in one of `units`, times that unit. Only digits and one point, so that `nan` and `1e9` are errors.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = if plain { number.parse::<f64>().ok()? } else { return None };
    Some(value * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_in_its_unit() {
        let hints =
            parse_hints("rate=1.5mbit,down=6mbit,delay=300us,loss=0.5%,price=7,shared=no,metered=yes")
                .unwrap();
        let wanted = Hints {
            rate: Some(Bandwidth::from_bits_per_second(1_500_000)),
            rate_back: Some(Bandwidth::from_mbit(6)),
            delay: Some(Duration::from_micros(300)),
            loss: Some(PerMille::new(5)),
            price_per_byte: Some(7),
            shared: Sharing::Dedicated,
            metering: Metering::Metered,
        };
        assert_eq!(hints, wanted);
        assert_eq!(parse_hints("rate=800bit/s,delay=1s").unwrap().delay, Some(Duration::from_secs(1)));
        assert_eq!(parse_hints("shared=endpoint").unwrap().shared, Sharing::Endpoint);
        assert_eq!(parse_hints("metered=no").unwrap().metering, Metering::Unmetered);
        assert_eq!(parse_hints("").unwrap(), Hints::NONE);
    }

    #[test]
    fn values_that_make_no_sense_are_refused_with_an_example() {
        for text in ["rate=2", "rate=-2mbit", "rate=0bit", "rate=nanbit", "delay=2", "delay=1e9s", "delay=ms"]
        {
            let error = parse_hints(text).unwrap_err();
            assert!(error.to_string().contains("such as"), "{text}: {error}");
        }
        assert!(parse_hints("loss=101%").is_err());
        assert!(parse_hints("metered=maybe").is_err());
        assert!(parse_hints("price=1.5").is_err());
        assert!(parse_hints("shared=maybe").is_err());
        assert_eq!(parse_hints("rate=1mbit,rate=1mbit"), Err(OptionsError::Repeated("rate".to_owned())));
        assert_eq!(parse_hints("rate"), Err(OptionsError::NotAPair("rate".to_owned())));
    }
}
