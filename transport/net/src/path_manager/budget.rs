//! Budgets of bytes, and the account of what was spent.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;

/// Units of bytes, the longest names first.
const UNITS: [(&str, u64); 9] = [
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("B", 1),
];
/// Accounts that are kept at most; the oldest goes first.
const MOST_ACCOUNTS: usize = 256;

/// The time for which a budget is meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Period {
    /// A calendar day in UTC.
    Day,
    /// A calendar month in UTC.
    Month,
}

impl Period {
    /// Returns the number of the period that `now`, a time since 1970 in UTC, is in: later periods have greater ones.
    pub fn number(self, now: Duration) -> u64 {
        const DAY: u64 = 86_400;
        let days = now.as_secs() / DAY;
        match self {
            Self::Day => days,
            Self::Month => {
                let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
                let date = OffsetDateTime::from_unix_timestamp(seconds);
                // A clock beyond the year 9999 is wrong in any case.
                date.map_or(0, |date| {
                    date.year().unsigned_abs() as u64 * 12 + u64::from(u8::from(date.month()))
                })
            }
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

/// Bytes of UDP payload, sent and received, that may cross a link in a day or month. Text form: `500MB/day`, `1.5GB/month`,
/// with the units B, kB, MB, GB, TB of 1000 and KiB, MiB, GiB, TiB of 1024.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    bytes: u64,
    period: Period,
}

/// Text that is no budget.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "budget={0:?} is not valid: expected a positive number of bytes a day or month, such as 500MB/day or 1.5GB/month"
)]
pub struct BudgetError(pub String);

impl Budget {
    /// A budget of `bytes` each `period`; `None` for none, which is what a rule `never` is for.
    pub const fn new(bytes: u64, period: Period) -> Option<Self> {
        if bytes == 0 { None } else { Some(Self { bytes, period }) }
    }

    /// The bytes of each period.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// The period.
    pub const fn period(self) -> Period {
        self.period
    }
}

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let invalid = || BudgetError(text.to_owned());
        let (amount, period) = text.split_once('/').ok_or_else(invalid)?;
        let period = match period {
            "day" => Period::Day,
            "month" => Period::Month,
            _ => return Err(invalid()),
        };
        Self::new(amount_of(amount).ok_or_else(invalid)?, period).ok_or_else(invalid)
    }
}

/// Reads a number of bytes with a unit; `None` if it is none, or has parts of bytes, or is too large.
fn amount_of(text: &str) -> Option<u64> {
    let (number, unit) = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || number.ends_with('.') || !is_plain(whole) || !is_plain(fraction) {
        return None;
    }
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let bytes = digits.checked_mul(u128::from(unit))?;
    (bytes % scale == 0).then(|| u64::try_from(bytes / scale).ok())?
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The largest unit of which it is a whole number.
        let fits = |(_, unit): &&(&str, u64)| self.bytes.is_multiple_of(*unit);
        let (name, unit) = UNITS.iter().filter(fits).max_by_key(|(_, unit)| *unit).unwrap_or(&("B", 1));
        write!(f, "{}{name}/{}", self.bytes / unit, self.period.name())
    }
}

/// The account of what each rule has spent in the current day or month. Clones share the account: connections of one program that are
/// given the same one share their budgets.
///
/// It lives as long as the program. [`spent`](Self::spent) and [`spend`](Self::spend) let a program that runs again carry
/// the account on.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    accounts: Arc<Mutex<Vec<Account>>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Account {
    rule: String,
    number: u64,
    bytes: u64,
}

impl Spending {
    /// Returns the bytes that `rule` has spent in the period of `budget` that `now`, a time since 1970 in UTC, is in.
    pub fn spent(&self, rule: &str, budget: Budget, now: Duration) -> u64 {
        let number = budget.period.number(now);
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let account = accounts.iter().find(|account| account.rule == rule && account.number == number);
        account.map_or(0, |account| account.bytes)
    }

    /// Adds `bytes` to what `rule` has spent in the period of `budget` that `now` is in. Earlier periods are forgotten.
    pub fn spend(&self, rule: &str, budget: Budget, now: Duration, bytes: u64) {
        let number = budget.period.number(now);
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        match accounts.iter_mut().find(|account| account.rule == rule) {
            Some(account) if account.number == number => account.bytes = account.bytes.saturating_add(bytes),
            Some(account) => (account.number, account.bytes) = (number, bytes),
            None => {
                if accounts.len() >= MOST_ACCOUNTS {
                    accounts.remove(0);
                }
                accounts.push(Account { rule: rule.to_owned(), number, bytes });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 31 January 2024, 23:59:59 UTC.
    const LAST_OF_JANUARY: Duration = Duration::from_secs(1_706_745_599);

    #[test]
    fn budgets_are_read_in_their_units_and_printed_back() {
        for (text, bytes) in [
            ("500MB/day", 500_000_000),
            ("1500MB/month", 1_500_000_000),
            ("2GiB/month", 2 << 30),
            ("1B/day", 1),
        ] {
            let budget: Budget = text.parse().unwrap();
            assert_eq!((budget.bytes(), budget.to_string().as_str()), (bytes, text));
        }
        assert_eq!("1.5GB/day".parse::<Budget>().unwrap().bytes(), 1_500_000_000);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "500MB",
            "500/day",
            "0MB/day",
            "-1MB/day",
            "1e9B/day",
            "500MB/week",
            "0.5B/day",
            "1.MB/day",
            ".5MB/day",
            "99999999999TB/month",
            "infMB/day",
            "500mb/day",
        ] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_account_begins_anew_with_each_period() {
        let spending = Spending::default();
        let (day, month) = ("1MB/day".parse().unwrap(), "1MB/month".parse().unwrap());
        for (rule, budget) in [("a", day), ("b", month)] {
            spending.spend(rule, budget, LAST_OF_JANUARY - Duration::from_secs(86_400), 1);
            spending.spend(rule, budget, LAST_OF_JANUARY, 10);
        }
        assert_eq!(spending.spent("a", day, LAST_OF_JANUARY), 10);
        assert_eq!(spending.spent("b", month, LAST_OF_JANUARY), 11);
        let february = LAST_OF_JANUARY + Duration::from_secs(1);
        assert_eq!(spending.clone().spent("b", month, february), 0);
        spending.spend("b", month, february, 3);
        assert_eq!(spending.spent("b", month, february), 3);
    }
}
