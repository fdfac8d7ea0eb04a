//! The account of bytes that the users of a server have sent and received, and what they may.
//!
//! It belongs to users, not to connections: who opens several, or comes again, goes on with the same account, and a clock that
//! is set back opens no new one.

use hvq::path_manager::{Budget, Period};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A user of a server, and the bytes that he may send and receive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserQuota {
    /// The name, by which the account is known.
    pub name: String,
    /// The quota; `None` sets no limit, and counts all the same.
    pub quota: Option<Budget>,
}

/// The accounts of all users. Clones of its [`Arc`] share them.
#[derive(Debug)]
pub struct Ledger {
    accounts: Mutex<Vec<Account>>,
}

#[derive(Debug)]
struct Account {
    user: UserQuota,
    spent: Spent,
}

/// The bytes that were spent in a period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Spent {
    /// The number of the day or month, counted from a time long ago.
    period: u64,
    bytes: u64,
}

/// An account as it is kept, with the text of its quota: an account of days is none of months.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    by: String,
    #[serde(flatten)]
    spent: Spent,
}

fn kind(quota: Option<Budget>) -> &'static str {
    match quota.map(Budget::period) {
        None | Some(Period::Month) => "month",
        Some(Period::Day) => "day",
    }
}

impl Account {
    fn period(&self, now: Duration) -> u64 {
        self.user.quota.map_or(Period::Month, Budget::period).number(now)
    }

    /// Begins the period that `now` is in, unless a later one has begun: the clock was set back then.
    fn turn(&mut self, now: Duration) {
        let period = self.period(now);
        if period > self.spent.period {
            self.spent = Spent { period, bytes: 0 };
        }
    }

    fn left(&self) -> u64 {
        self.user.quota.map_or(u64::MAX, |quota| quota.bytes().saturating_sub(self.spent.bytes))
    }
}

impl Ledger {
    /// Accounts of `users`, of whom the one at a place has the token at that place.
    pub fn new(users: Vec<UserQuota>) -> Arc<Self> {
        let accounts = users.into_iter().map(|user| Account { user, spent: Spent::default() });
        Arc::new(Self { accounts: Mutex::new(accounts.collect()) })
    }

    /// Goes on with accounts as [`Self::text`] gave them; those of users who are gone are dropped.
    ///
    /// # Errors
    /// `text` is something else.
    pub fn restore(&self, text: &str) -> Result<(), serde_json::Error> {
        let mut kept: BTreeMap<String, Kept> = serde_json::from_str(text)?;
        for account in &mut *self.accounts() {
            let same = kept.remove(&account.user.name);
            if let Some(kept) = same.filter(|kept| kept.by == kind(account.user.quota)) {
                account.spent = kept.spent;
            }
        }
        Ok(())
    }

    /// The accounts as JSON: an object by the names of users.
    pub fn text(&self) -> String {
        let kept: BTreeMap<String, Kept> = self
            .accounts()
            .iter()
            .map(|account| {
                let by = kind(account.user.quota).to_owned();
                (account.user.name.clone(), Kept { by, spent: account.spent })
            })
            .collect();
        serde_json::to_string(&kept).expect("names and numbers are JSON")
    }

    /// Returns true if `user` may spend `bytes` at `now`, a time since 1970, and has spent them then. The first bytes that are too many
    /// exhaust the account, so that packets, flows and new tunnels are refused from then on alike.
    fn spend(&self, user: usize, bytes: u64, now: Duration) -> bool {
        let mut accounts = self.accounts();
        let Some(account) = accounts.get_mut(user) else { return false };
        account.turn(now);
        let may = bytes <= account.left();
        let exhausted = account.user.quota.map_or(u64::MAX, Budget::bytes);
        account.spent.bytes = if may { account.spent.bytes.saturating_add(bytes) } else { exhausted };
        may
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<Account>> {
        // They are whole after every statement.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A user's share of a ledger: what it lets pass is counted.
#[derive(Clone, Debug, Default)]
pub struct Meter(Option<(Arc<Ledger>, usize)>);

impl Meter {
    /// The meter of the user at the place `user`.
    pub fn of(ledger: &Arc<Ledger>, user: usize) -> Self {
        Self(Some((Arc::clone(ledger), user)))
    }

    /// Returns true if `bytes` may pass, which are counted then. Without a ledger all may.
    pub(crate) fn pass(&self, bytes: usize) -> bool {
        let Some((ledger, user)) = &self.0 else { return true };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ledger.spend(*user, bytes as u64, now)
    }

    /// Returns true if a byte may pass.
    pub(crate) fn is_open(&self) -> bool {
        let Some((ledger, user)) = &self.0 else { return true };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ledger.accounts().get_mut(*user).is_some_and(|account| {
            account.turn(now);
            account.left() > 0
        })
    }
}

/// A connection whose bytes are counted, and which fails once they may not pass.
#[derive(Debug)]
pub(crate) struct Metered<T> {
    pub(crate) inner: T,
    pub(crate) meter: Meter,
}

fn exhausted() -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, "the quota of this user is exhausted")
}

impl<T: AsyncRead + Unpin> AsyncRead for Metered<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let passed = self.meter.pass(buffer.filled().len() - before);
        Poll::Ready(if passed { Ok(()) } else { Err(exhausted()) })
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.meter.is_open() {
            return Poll::Ready(Err(exhausted()));
        }
        let written = ready!(Pin::new(&mut self.inner).poll_write(context, data))?;
        Poll::Ready(if self.meter.pass(written) { Ok(written) } else { Err(exhausted()) })
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const DAY: u64 = 86_400;

    fn at(day: u64) -> Duration {
        Duration::from_secs(20_000 * DAY + day * DAY)
    }

    fn ledger(quotas: &[&str]) -> Arc<Ledger> {
        let user = |(place, quota): (usize, &&str)| UserQuota {
            name: format!("user{place}"),
            quota: (!quota.is_empty()).then(|| quota.parse().unwrap()),
        };
        Ledger::new(quotas.iter().enumerate().map(user).collect())
    }

    #[test]
    fn a_user_has_one_account_however_many_connections_he_opens() {
        let ledger = ledger(&["1000B/day", "1000B/day", ""]);
        assert!(ledger.spend(0, 600, at(0)) && ledger.spend(0, 400, at(0)) && !ledger.spend(0, 1, at(0)));
        assert!(ledger.spend(1, 1000, at(0)), "the account of somebody else");
        assert!(ledger.spend(2, u64::MAX, at(0)), "there is no quota");
        assert!(!ledger.spend(3, 0, at(0)), "nobody");
        let meters = [0; 3].map(|user| Meter::of(&ledger, user));
        assert!(meters.iter().all(Meter::is_open), "today is another day");
        assert!(meters[0].pass(700) && !meters[1].pass(700) && !meters[2].pass(300));
        assert!(!meters[0].is_open(), "what does not fit exhausts the account");
    }

    #[test]
    fn a_clock_that_is_set_back_opens_no_new_account() {
        let ledger = ledger(&["1000B/day"]);
        assert!(ledger.spend(0, 1000, at(5)));
        assert!(!ledger.spend(0, 1, at(4)) && !ledger.spend(0, 1, at(5)));
        assert!(ledger.spend(0, 1000, at(6)) && !ledger.spend(0, 1, at(5)) && !ledger.spend(0, 1, at(6)));
    }

    #[test]
    fn a_restart_and_a_connection_anew_go_on_with_the_account() {
        let quotas = ["1000B/month", "1000B/day"];
        let before = ledger(&quotas);
        assert!(before.spend(0, 900, at(0)) && before.spend(1, 900, at(0)));
        let after = ledger(&quotas);
        after.restore(&before.text()).unwrap();
        assert!(!after.spend(0, 101, at(0)) && after.spend(1, 100, at(0)) && !after.spend(1, 1, at(0)));
        // A quota of days begins anew where it was one of months: the numbers of both are no common measure.
        let other = ledger(&["1000B/day", "1000B/day"]);
        other.restore(&after.text()).unwrap();
        assert!(other.spend(0, 1000, at(0)) && !other.spend(1, 1, at(0)));
        assert!(other.restore("[]").is_err());
    }

    #[tokio::test]
    async fn a_flow_ends_with_the_quota_in_both_directions() {
        let year = ledger(&["1000B/month"]);
        let (near, mut far) = tokio::io::duplex(4096);
        let mut flow = Metered { inner: near, meter: Meter::of(&year, 0) };
        flow.write_all(&[1; 600]).await.unwrap();
        far.write_all(&[2; 400]).await.unwrap();
        let mut buffer = [0; 400];
        flow.read_exact(&mut buffer).await.unwrap();
        assert_eq!(flow.write(&[1]).await.unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        far.write_all(&[2]).await.unwrap();
        assert_eq!(flow.read(&mut buffer).await.unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
    }
}
