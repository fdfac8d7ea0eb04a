//! The finer settings of a configuration of C: versions, acknowledgements, connection IDs, preferred addresses, keys.

use crate::address::hvq_address;
use crate::config::hvq_transport_config;
use crate::error::Failure;
use crate::guard;
use crate::transport::{duration, is_on, wrong};
use hvq_transport::connection::AckPolicy;
use hvq_transport::connection::{
    AckRequests, HintExchange, PathMemory, Preference, PreferredAddresses, Rotation, SpinBit, TransportConfig,
};
use hvq_transport::connection::{VersionChoice, Versions};
use hvq_transport::crypto::one_rtt::AeadLimits;
use hvq_transport::wire::version::Version;
use std::net::SocketAddr;
use std::time::Duration;

/// Puts the settings of `given` into `config`.
///
/// # Safety
///
/// `given` points to what the header says.
pub(crate) unsafe fn apply(
    config: &mut TransportConfig,
    given: &hvq_transport_config,
) -> Result<(), Failure> {
    // SAFETY: the caller says so.
    config.set_versions(unsafe { versions(given) }?);
    config.set_preferred_addresses(preferred(given)?);
    config.set_preference(if is_on(given.follow_preferred)? {
        Preference::Followed
    } else {
        Preference::Ignored
    });
    config.set_spin_bit(if is_on(given.spin_bit)? { SpinBit::Mostly } else { SpinBit::Never });
    config.set_ack_requests(if is_on(given.ack_requests)? {
        AckRequests::Exchanged
    } else {
        AckRequests::Off
    });
    config.set_path_hints(if is_on(given.path_hints)? { HintExchange::On } else { HintExchange::Off });
    config.set_path_memory(match given.path_memory {
        0 => PathMemory::Off,
        seconds => PathMemory::For(Duration::from_secs(seconds.into())),
    });
    config.set_acknowledge(acknowledgements(given));
    config.set_opening_datagrams(
        u8::try_from(given.opening_datagrams).map_err(|_| wrong("more than 255 datagrams to open a path"))?,
    );
    config.set_rotation(Rotation {
        packets: (given.rotation_packets > 0).then_some(given.rotation_packets),
        time: duration(given.rotation_time),
        idle: duration(given.rotation_idle),
    });
    config.set_max_udp_payload(given.max_udp_payload);
    config.set_aead_limits(aead_limits(given));
    Ok(())
}

unsafe fn versions(given: &hvq_transport_config) -> Result<Versions, Failure> {
    // SAFETY: the caller passes so many numbers.
    let list = unsafe { guard::elements(given.versions, given.version_count) }?;
    let list: Vec<Version> = list.iter().copied().map(Version).collect();
    let choice =
        if is_on(given.choose_version)? { VersionChoice::OwnPreference } else { VersionChoice::AsOffered };
    let spoken = Versions::default();
    let list = if list.is_empty() { spoken.list() } else { &list };
    let versions =
        Versions::new(list, choice).ok_or_else(|| wrong("versions are HVQ_QUIC_..., each once"))?;
    if given.first_version == 0 {
        return Ok(versions);
    }
    let first = Version(given.first_version);
    versions.beginning_with(first).ok_or_else(|| wrong("the first version is none of the versions"))
}

fn preferred(given: &hvq_transport_config) -> Result<PreferredAddresses, Failure> {
    let address = |address: &hvq_address| (address.family != 0).then(|| address.decode()).transpose();
    let ipv4 = match address(&given.preferred_ipv4)? {
        Some(SocketAddr::V4(ipv4)) => Some(ipv4),
        Some(SocketAddr::V6(_)) => return Err(wrong("preferred_ipv4 is an IPv6 address")),
        None => None,
    };
    let ipv6 = match address(&given.preferred_ipv6)? {
        Some(SocketAddr::V6(ipv6)) => Some(ipv6),
        Some(SocketAddr::V4(_)) => return Err(wrong("preferred_ipv6 is an IPv4 address")),
        None => None,
    };
    Ok(PreferredAddresses { ipv4, ipv6 })
}

fn acknowledgements(given: &hvq_transport_config) -> AckPolicy {
    let max_delay = Duration::from_nanos(given.ack_delay);
    AckPolicy { threshold: given.ack_threshold, max_delay, reordering: given.ack_reordering }
}

fn aead_limits(given: &hvq_transport_config) -> Option<AeadLimits> {
    let limit = |value: u64| if value == 0 { u64::MAX } else { value };
    let (confidentiality, integrity) = (limit(given.aead_confidentiality), limit(given.aead_integrity));
    // The core keeps to the limits of the cipher suite all the same.
    (given.aead_confidentiality != 0 || given.aead_integrity != 0)
        .then_some(AeadLimits { confidentiality, integrity })
}
