//! Durations as people write them.

use std::time::Duration;

/// Reads `500us`, `20ms`, `1.5s`, `2m`, or a plain number of seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 5] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("", 1.0)];
    let wanted = || format!("{text:?} is no duration: expected a number with us, ms, s or m, such as 1.5s");
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))
        .ok_or_else(wanted)?;
    let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds =
        if plain { number.parse::<f64>().map_err(|_| wanted())? * factor } else { return Err(wanted()) };
    Duration::try_from_secs_f64(seconds).map_err(|_| wanted())
}

/// Reads a duration above zero.
pub fn positive(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("a time above zero is needed".to_owned()),
        time => Ok(time),
    }
}

/// Milliseconds with one decimal, for people.
pub fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        for (text, milliseconds) in
            [("500us", 0.5), ("20ms", 20.0), ("1.5s", 1500.0), ("2m", 120_000.0), ("3", 3000.0)]
        {
            assert_eq!(parse(text).unwrap().as_secs_f64() * 1e3, milliseconds, "{text}");
        }
    }

    #[test]
    fn some_times_are_above_zero() {
        assert_eq!(positive("20ms"), parse("20ms"));
        assert!(positive("0s").is_err() && positive("soon").is_err());
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in ["", "ms", "-1s", "1e9s", "nan", "1h", "1.2.3s", "inf"] {
            assert!(parse(text).unwrap_err().contains("such as"), "{text}");
        }
    }
}
