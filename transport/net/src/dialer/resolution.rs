//! The addresses of a name: IPv6 and IPv4 asked for at the same time, and in turn in the result (RFC 8305 §3, §4).

use crate::runtime;
use crate::runtime::Runtime;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// The time for which the answer for one IP version waits for the other (RFC 8305 §3, §8).
pub(crate) const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// Addresses of one host that are tried at most.
pub(crate) const MOST_ADDRESSES: usize = 16;

/// An IP version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    Four,
    Six,
}

/// The addresses of `host`, in the order in which to try them: an IPv6 address, if it has one, then one of each version in
/// turn. At most sixteen.
///
/// A name takes the `runtime` of the caller.
///
/// # Errors
/// There is none.
pub(crate) async fn resolve(
    runtime: impl FnOnce() -> io::Result<Arc<dyn Runtime>>,
    host: &str,
    port: u16,
) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let runtime = runtime()?;
    let delay = runtime::sleep(&*runtime, RESOLUTION_DELAY);
    gather(lookup(host, port, Family::Six), lookup(host, port, Family::Four), delay).await
}

/// Asks the system's resolver, which a thread waits for.
async fn lookup(host: &str, port: u16, family: Family) -> io::Result<Vec<SocketAddr>> {
    let host = host.to_owned();
    let ask = move || {
        let address = match family {
            Family::Four => dns_lookup::AddrFamily::Inet,
            Family::Six => dns_lookup::AddrFamily::Inet6,
        };
        let hints = dns_lookup::AddrInfoHints {
            socktype: dns_lookup::SockType::DGram.into(),
            address: address.into(),
            ..dns_lookup::AddrInfoHints::default()
        };
        let found = dns_lookup::getaddrinfo(Some(&host), None, Some(hints))?;
        let addresses = found.map(|info| info.map(|info| SocketAddr::new(info.sockaddr.ip(), port)));
        addresses.collect::<io::Result<Vec<_>>>()
    };
    runtime::unblock(ask).await?
}

/// Waits for both answers, for the second one until `delay` is over at most if the first is of use.
async fn gather(
    six: impl Future<Output = io::Result<Vec<SocketAddr>>>,
    four: impl Future<Output = io::Result<Vec<SocketAddr>>>,
    delay: impl Future<Output = ()>,
) -> io::Result<Vec<SocketAddr>> {
    let (mut six, mut four) = (pin!(six), pin!(four));
    let (six, four) = tokio::select! {
        six = &mut six => {
            let four = second(&six, four, delay).await;
            (six, four)
        }
        four = &mut four => {
            let six = second(&four, six, delay).await;
            (six, four)
        }
    };
    let found = interleaved(six.as_deref().unwrap_or_default(), four.as_deref().unwrap_or_default());
    match (found.is_empty(), six, four) {
        (false, ..) => Ok(found),
        // The error about IPv4 says more: hardly a name has IPv6 addresses alone.
        (true, _, Err(error)) | (true, Err(error), Ok(_)) => Err(error),
        (true, Ok(_), Ok(_)) => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The other answer, behind `first`.
async fn second(
    first: &io::Result<Vec<SocketAddr>>,
    other: impl Future<Output = io::Result<Vec<SocketAddr>>>,
    delay: impl Future<Output = ()>,
) -> io::Result<Vec<SocketAddr>> {
    match first {
        Ok(addresses) if !addresses.is_empty() => {
            tokio::select! {
                biased;
                answer = other => answer,
                () = delay => Err(io::ErrorKind::TimedOut.into()),
            }
        }
        _ => other.await,
    }
}

/// One of each in turn, each once (RFC 8305 §4).
pub(crate) fn interleaved(six: &[SocketAddr], four: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for turn in 0..six.len().max(four.len()) {
        for address in [six.get(turn), four.get(turn)].into_iter().flatten() {
            if !all.contains(address) && all.len() < MOST_ADDRESSES {
                all.push(*address);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, sleep};

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// An answer after `millis`.
    async fn after(millis: u64, answer: io::Result<Vec<SocketAddr>>) -> io::Result<Vec<SocketAddr>> {
        sleep(Duration::from_millis(millis)).await;
        answer
    }

    /// Both answers, with the delay of tokio's clock, which runs in virtual time.
    async fn answers(
        six: impl Future<Output = io::Result<Vec<SocketAddr>>>,
        four: impl Future<Output = io::Result<Vec<SocketAddr>>>,
    ) -> io::Result<Vec<SocketAddr>> {
        gather(six, four, async { sleep(RESOLUTION_DELAY).await }).await
    }

    fn none() -> io::Result<Vec<SocketAddr>> {
        Err(io::ErrorKind::NotFound.into())
    }

    #[tokio::test(start_paused = true)]
    async fn the_second_answer_is_waited_for_for_50_ms_and_a_useless_first_one_is_none() {
        let six = || Ok(addresses(&["[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1"]));
        let four = || Ok(addresses(&["192.0.2.1:1"]));
        let both = addresses(&["[2001:db8::1]:1", "192.0.2.1:1", "[2001:db8::2]:1", "[2001:db8::3]:1"]);
        let alone = addresses(&["192.0.2.1:1"]);
        for (six_after, six, four_after, expected, took) in [
            (0, six(), 0, both.clone(), 0),
            (60, six(), 20, both.clone(), 60),
            (71, six(), 20, alone.clone(), 70),
            (5, none(), 900, alone.clone(), 900),
            (5, Ok(Vec::new()), 900, alone, 900),
        ] {
            let begun = Instant::now();
            let found = answers(after(six_after, six), after(four_after, four())).await.unwrap();
            assert_eq!((found, begun.elapsed()), (expected, Duration::from_millis(took)));
        }
        let begun = Instant::now();
        let found = answers(after(10, six()), after(100, four())).await.unwrap();
        assert_eq!((found.len(), begun.elapsed()), (3, Duration::from_millis(60)));
        assert!(answers(after(1, none()), after(2, none())).await.is_err());
        assert!(answers(after(1, Ok(Vec::new())), after(2, Ok(Vec::new()))).await.is_err());
    }

    #[tokio::test]
    async fn an_address_is_itself_and_the_own_name_has_one() {
        assert_eq!(
            resolve(runtime::current, "2001:db8::1", 7).await.unwrap(),
            addresses(&["[2001:db8::1]:7"])
        );
        let own = resolve(runtime::current, "localhost", 7).await.unwrap();
        assert!(own.iter().all(|address| address.ip().is_loopback() && address.port() == 7), "{own:?}");
        assert!(resolve(runtime::current, "name.invalid", 7).await.is_err());
    }

    #[test]
    fn of_many_addresses_the_first_of_either_version_are_tried() {
        let six: Vec<SocketAddr> = (0..99).map(|host| ([0x2001, 0, 0, 0, 0, 0, 0, host], 1).into()).collect();
        let all = interleaved(&six, &addresses(&["192.0.2.1:1", "192.0.2.1:1"]));
        assert_eq!((all.len(), all[1]), (MOST_ADDRESSES, addresses(&["192.0.2.1:1"])[0]));
        assert!(all[2..].iter().all(SocketAddr::is_ipv6));
    }
}
