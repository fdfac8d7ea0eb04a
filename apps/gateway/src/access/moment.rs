//! Points in time as people and programs read them, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY: u64 = 86_400;

/// A point in time in the Gregorian calendar, in UTC.
struct Civil {
    year: u64,
    /// 1 to 12.
    month: usize,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    millisecond: u32,
}

impl Civil {
    fn of(time: SystemTime) -> Self {
        // A clock from before 1970 shows 1970.
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (mut days, second) = (since.as_secs() / DAY, since.as_secs() % DAY);
        let leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let mut year = 1970;
        while days >= 365 + u64::from(leap(year)) {
            days -= 365 + u64::from(leap(year));
            year += 1;
        }
        let february = 28 + u64::from(leap(year));
        let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while days >= lengths[month] {
            days -= lengths[month];
            month += 1;
        }
        Self {
            year,
            month: month + 1,
            day: days + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            millisecond: since.subsec_millis(),
        }
    }
}

/// Returns `time` in the Common Log Format: `10/Oct/2000:13:55:36 +0000`.
pub(super) fn common(time: SystemTime) -> String {
    let Civil { year, month, day, hour, minute, second, .. } = Civil::of(time);
    format!("{day:02}/{}/{year}:{hour:02}:{minute:02}:{second:02} +0000", MONTHS[month - 1])
}

/// Returns `time` in the form of RFC 3339: `2000-10-10T13:55:36.123Z`.
pub(super) fn rfc3339(time: SystemTime) -> String {
    let Civil { year, month, day, hour, minute, second, millisecond } = Civil::of(time);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn days_fall_on_their_dates() {
        // As `date -u -d @SECONDS` says.
        for (seconds, said) in [
            (0, "1970-01-01T00:00:00.500Z"),
            (951_782_400, "2000-02-29T00:00:00.500Z"),
            (951_868_800, "2000-03-01T00:00:00.500Z"),
            (1_709_164_799, "2024-02-28T23:59:59.500Z"),
            (4_107_542_400, "2100-03-01T00:00:00.500Z"),
            (1_795_219_199, "2026-11-20T23:59:59.500Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 500)), said);
        }
        assert_eq!(common(UNIX_EPOCH + Duration::from_secs(971_186_136)), "10/Oct/2000:13:55:36 +0000");
    }
}
