//! The transport's configuration, made from that of C.

use crate::address::hvq_address;
use crate::bridge::{Table, nanos};
use crate::config::{hvq_channel, hvq_transport_config};
use crate::error::{Failure, HVQ_ERR_ARGUMENT, HVQ_ERR_SYSTEM, HVQ_ERR_UNKNOWN_NAME};
use crate::guard::{self, Versioned};
use crate::log;
use crate::tuning;
use hvq_qlog::{Qlog, QlogOptions};
use hvq_scheduler::{PathId, Policy};
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{
    ChannelHint, DatagramSizing, Dscp, EcnMarking, Greasing, Migration, Multipath, PathMemory,
    SchedulerFactory, TransportConfig,
};
use hvq_transport::stream::StreamLimits;
use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;
use std::{mem, ptr};

// SAFETY: the struct begins with its size and holds numbers, pointers and a function, for which zeros are NULL.
unsafe impl Versioned for hvq_transport_config {
    const FIRST_SIZE: usize = mem::offset_of!(Self, versions);

    fn defaults() -> Self {
        let base = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
        let streams = base.streams();
        Self {
            size: mem::size_of::<Self>(),
            scheduler: ptr::null(),
            custom_scheduler: ptr::null(),
            congestion: ptr::null(),
            channels: ptr::null(),
            channel_count: 0,
            qlog_folder: ptr::null(),
            log: None,
            log_user: ptr::null_mut(),
            log_level: log::HVQ_LOG_INFO,
            paths: paths_of(base.multipath()),
            idle_timeout: nanos(base.idle_timeout()),
            handshake_timeout: nanos(base.handshake_timeout()),
            keep_alive: base.keep_alive().map_or(0, nanos),
            path_keep_alive: base.path_keep_alive().map_or(0, nanos),
            validation_timeout: nanos(base.validation_timeout()),
            max_data: streams.max_data,
            stream_data_bidi_local: streams.stream_data_bidi_local,
            stream_data_bidi_remote: streams.stream_data_bidi_remote,
            stream_data_uni: streams.stream_data_uni,
            max_window: streams.max_window,
            max_streams_bidi: streams.max_streams_bidi,
            max_streams_uni: streams.max_streams_uni,
            send_buffer: streams.send_buffer as u64,
            max_datagram_frame: base.max_datagram_frame(),
            datagram_queue: base.datagram_queue() as u64,
            fixed_datagram_size: 0,
            max_datagram_size: largest_datagram(DatagramSizing::default()),
            segments: 1,
            ecn: 0,
            grease: 1,
            migration: 1,
            versions: ptr::null(),
            version_count: 0,
            first_version: 0,
            choose_version: 0,
            preferred_ipv4: hvq_address::default(),
            preferred_ipv6: hvq_address::default(),
            follow_preferred: 1,
            spin_bit: 1,
            ack_requests: 1,
            opening_datagrams: base.opening_datagrams().into(),
            ack_threshold: base.acknowledge().threshold,
            ack_delay: nanos(base.acknowledge().max_delay),
            ack_reordering: base.acknowledge().reordering,
            rotation_packets: 0,
            rotation_time: 0,
            rotation_idle: 0,
            max_udp_payload: base.max_udp_payload(),
            aead_confidentiality: 0,
            aead_integrity: 0,
            path_hints: 1,
            path_memory: path_memory(base.path_memory()),
            path_keep_alive_limit: base.path_keep_alive_limit().map_or(0, nanos),
        }
    }
}

/// The size that `sizing` goes up to, in bytes.
fn largest_datagram(sizing: DatagramSizing) -> u32 {
    let (DatagramSizing::Fixed(most) | DatagramSizing::Discover { most }) = sizing;
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// Seconds of memory.
fn path_memory(memory: PathMemory) -> u32 {
    match memory {
        PathMemory::Off => 0,
        PathMemory::For(lifetime) => u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX),
    }
}

fn paths_of(multipath: Multipath) -> u32 {
    match multipath {
        Multipath::Off => 0,
        Multipath::UpTo(highest) => highest.0 + 1,
    }
}

pub(crate) fn wrong(what: &'static str) -> Failure {
    Failure::because(HVQ_ERR_ARGUMENT, what)
}

/// A configuration as the transport has it.
pub(crate) struct Read {
    pub(crate) config: Arc<TransportConfig>,
    /// The logs that connections write, if they do.
    pub(crate) qlog: Option<Qlog>,
}

/// The configuration of C at `pointer`; the defaults if it is NULL.
///
/// # Safety
///
/// `pointer` is NULL or as the header says.
pub(crate) unsafe fn read(pointer: *const hvq_transport_config) -> Result<Read, Failure> {
    let given = if pointer.is_null() {
        hvq_transport_config::defaults()
    } else {
        // SAFETY: the caller says so.
        unsafe { guard::versioned(pointer) }?
    };
    // SAFETY: the caller's struct points to what the header says.
    let (scheduler, congestion) = unsafe { (scheduler_of(&given)?, algorithm(given.congestion)?) };
    let mut config = TransportConfig::new(scheduler);
    if let Some(congestion) = congestion {
        config.set_congestion(congestion.into());
    }
    set_times(&mut config, &given);
    set_limits(&mut config, &given)?;
    set_choices(&mut config, &given)?;
    // SAFETY: as above.
    unsafe { tuning::apply(&mut config, &given) }?;
    // SAFETY: as above.
    for channel in unsafe { guard::elements(given.channels, given.channel_count) }? {
        // SAFETY: as above.
        unsafe { add_channel(&mut config, channel) }?;
    }
    config.check().map_err(|error| Failure::because(HVQ_ERR_ARGUMENT, error))?;
    // SAFETY: as above.
    let qlog = unsafe { qlog_of(&given) }?;
    let lines = log::factory(given.log, given.log_user, given.log_level)?;
    config.set_tracer(log::both(qlog.as_ref().map(Qlog::factory), lines));
    Ok(Read { config: Arc::new(config), qlog })
}

unsafe fn scheduler_of(given: &hvq_transport_config) -> Result<SchedulerFactory, Failure> {
    if !given.custom_scheduler.is_null() {
        // SAFETY: the caller passes a valid table.
        let table = Table::new(unsafe { guard::versioned(given.custom_scheduler) }?)?;
        return Ok(Arc::new(move || table.scheduler()));
    }
    // SAFETY: the caller passes text or NULL.
    let name = unsafe { guard::optional_text(given.scheduler) }?;
    let policy: Policy = match name {
        None => Policy::default(),
        Some(name) => name.parse().map_err(|error| Failure::because(HVQ_ERR_UNKNOWN_NAME, error))?,
    };
    Ok(Arc::new(move || policy.scheduler()))
}

/// The congestion controller of this name; none for NULL.
///
/// # Safety
///
/// `name` is NULL or text that ends with a zero byte.
pub(crate) unsafe fn algorithm(name: *const c_char) -> Result<Option<Algorithm>, Failure> {
    // SAFETY: the caller says so.
    let name = unsafe { guard::optional_text(name) }?;
    let parsed = name.map(|name| name.parse().map_err(|error| Failure::because(HVQ_ERR_UNKNOWN_NAME, error)));
    parsed.transpose()
}

pub(crate) fn duration(nanos: u64) -> Option<Duration> {
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

fn set_times(config: &mut TransportConfig, given: &hvq_transport_config) {
    config.set_idle_timeout(Duration::from_nanos(given.idle_timeout));
    config.set_handshake_timeout(Duration::from_nanos(given.handshake_timeout));
    config.set_keep_alive(duration(given.keep_alive));
    config.set_path_keep_alive(duration(given.path_keep_alive));
    config.set_path_keep_alive_limit(duration(given.path_keep_alive_limit));
    config.set_validation_timeout(Duration::from_nanos(given.validation_timeout));
}

fn set_limits(config: &mut TransportConfig, given: &hvq_transport_config) -> Result<(), Failure> {
    let size = |value: u64| usize::try_from(value).map_err(|_| wrong("a size beyond the address space"));
    config.set_streams(StreamLimits {
        max_data: given.max_data,
        stream_data_bidi_local: given.stream_data_bidi_local,
        stream_data_bidi_remote: given.stream_data_bidi_remote,
        stream_data_uni: given.stream_data_uni,
        max_window: given.max_window,
        max_streams_bidi: given.max_streams_bidi,
        max_streams_uni: given.max_streams_uni,
        send_buffer: size(given.send_buffer)?,
    });
    config.set_max_datagram_frame(given.max_datagram_frame);
    config.set_datagram_queue(size(given.datagram_queue)?);
    Ok(())
}

/// Reads a switch: 0 or 1.
pub(crate) fn is_on(value: u32) -> Result<bool, Failure> {
    if value > 1 { Err(wrong("a switch is 0 or 1")) } else { Ok(value == 1) }
}

fn set_choices(config: &mut TransportConfig, given: &hvq_transport_config) -> Result<(), Failure> {
    config.set_multipath(match given.paths {
        0 => Multipath::Off,
        1..=64 => Multipath::UpTo(PathId(given.paths - 1)),
        _ => return Err(wrong("more than 64 paths")),
    });
    config.set_datagram_size(match (given.fixed_datagram_size, given.max_datagram_size) {
        (0, most) => DatagramSizing::Discover { most: most as usize },
        (fixed, _) => DatagramSizing::Fixed(fixed as usize),
    });
    config.set_segments(given.segments as usize);
    config.set_ecn(if is_on(given.ecn)? { EcnMarking::Ect0 } else { EcnMarking::Off });
    config.set_greasing(if is_on(given.grease)? { Greasing::On } else { Greasing::Off });
    config.set_migration(if is_on(given.migration)? { Migration::Allowed } else { Migration::Refused });
    Ok(())
}

unsafe fn add_channel(config: &mut TransportConfig, channel: &hvq_channel) -> Result<(), Failure> {
    let local = channel.local.decode()?;
    // SAFETY: the caller passes text or NULL.
    let congestion = unsafe { algorithm(channel.congestion) }?.map(Into::into);
    config.add_channel(ChannelHint { local, hints: channel.hints.decode()?, congestion, link: None });
    config.add_codepoint(local, dscp(channel.dscp)?);
    Ok(())
}

/// A Differentiated Services codepoint.
pub(crate) fn dscp(number: u32) -> Result<Dscp, Failure> {
    let number = u8::try_from(number).ok();
    number.and_then(Dscp::new).ok_or_else(|| wrong("a codepoint is a number from 0 to 63"))
}

unsafe fn qlog_of(given: &hvq_transport_config) -> Result<Option<Qlog>, Failure> {
    // SAFETY: the caller passes text or NULL.
    let folder = unsafe { guard::optional_text(given.qlog_folder) }?;
    let qlog = folder.map(|folder| Qlog::open(QlogOptions::new(folder)));
    qlog.transpose().map_err(|error| Failure::because(HVQ_ERR_SYSTEM, error))
}
