//! Settings of connections.

use crate::congestion::ControllerFactory;
use crate::{VarInt, VarIntBoundsExceeded};
use hvq::config::{DatagramSizing, SpinBit};
use hvq::{Multipath, Policy};
use std::sync::Arc;
use std::time::Duration;

/// The silence after which a connection ends, in whole milliseconds below 2^62.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleTimeout(VarInt);

impl From<VarInt> for IdleTimeout {
    /// A number of milliseconds.
    fn from(milliseconds: VarInt) -> Self {
        Self(milliseconds)
    }
}

impl TryFrom<Duration> for IdleTimeout {
    type Error = VarIntBoundsExceeded;

    fn try_from(timeout: Duration) -> Result<Self, VarIntBoundsExceeded> {
        timeout.as_millis().try_into().map(Self)
    }
}

/// The search for the size of datagrams (RFC 8899).
#[derive(Clone, Debug)]
pub struct MtuDiscoveryConfig {
    most: u16,
}

impl Default for MtuDiscoveryConfig {
    /// Up to 1,452 bytes.
    fn default() -> Self {
        Self { most: 1452 }
    }
}

impl MtuDiscoveryConfig {
    /// The largest UDP payload that is tried, in bytes, at least 1,200.
    pub fn upper_bound(&mut self, value: u16) -> &mut Self {
        self.most = value.max(1200);
        self
    }
}

/// Settings of connections, with quinn's names and hvq's defaults; what quinn has no name for is in [`Self::hvq`].
#[derive(Clone)]
pub struct TransportConfig {
    settings: hvq::TransportConfig,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self::from(hvq::TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler())))
    }
}

impl From<hvq::TransportConfig> for TransportConfig {
    fn from(settings: hvq::TransportConfig) -> Self {
        Self { settings }
    }
}

impl TransportConfig {
    /// The settings as hvq has them: the scheduler, paths, hints, and all that quinn has no name for.
    pub fn hvq(&mut self) -> &mut hvq::TransportConfig {
        &mut self.settings
    }

    /// The greatest number of paths, at least 1 (RFC 10069). Default: 4.
    pub fn max_concurrent_paths(&mut self, paths: u32) -> &mut Self {
        self.settings.set_multipath(Multipath::UpTo(hvq::PathId(paths.saturating_sub(1))));
        self
    }

    /// Bidirectional streams that the peer may have open at a time. Default: 128.
    pub fn max_concurrent_bidi_streams(&mut self, value: VarInt) -> &mut Self {
        self.settings.streams_mut().max_streams_bidi = value.into_inner();
        self
    }

    /// Unidirectional streams that the peer may have open at a time. Default: 128.
    pub fn max_concurrent_uni_streams(&mut self, value: VarInt) -> &mut Self {
        self.settings.streams_mut().max_streams_uni = value.into_inner();
        self
    }

    /// The silence after which a connection ends, its handshake included; `None` never. Default: 30 s, and 10 s for a handshake.
    pub fn max_idle_timeout(&mut self, value: Option<IdleTimeout>) -> &mut Self {
        let timeout = value.map(|timeout| Duration::from_millis(timeout.0.into_inner()));
        self.settings.set_idle_timeout(timeout.unwrap_or_default());
        if let Some(timeout) = timeout.filter(|timeout| !timeout.is_zero()) {
            self.settings.set_handshake_timeout(timeout);
        }
        self
    }

    /// Bytes that the peer may send ahead of reading on a stream: the window is fixed then. By default it is 1 MiB and grows.
    pub fn stream_receive_window(&mut self, value: VarInt) -> &mut Self {
        let streams = self.settings.streams_mut();
        streams.stream_data_bidi_local = value.into_inner();
        streams.stream_data_bidi_remote = value.into_inner();
        streams.stream_data_uni = value.into_inner();
        streams.max_window = value.into_inner();
        self
    }

    /// Bytes that the peer may send ahead of reading over all streams. Default: 2 MiB, which grow.
    pub fn receive_window(&mut self, value: VarInt) -> &mut Self {
        self.settings.streams_mut().max_data = value.into_inner();
        self
    }

    /// Bytes that a stream holds for sending at most before writing blocks; quinn counts those of all streams together.
    /// Default: 4 MiB.
    pub fn send_window(&mut self, value: u64) -> &mut Self {
        self.settings.streams_mut().send_buffer = usize::try_from(value).unwrap_or(usize::MAX);
        self
    }

    /// Changes nothing: the scheduler decides which stream is next (RFC 9218).
    pub fn send_fairness(&mut self, _value: bool) -> &mut Self {
        self
    }

    /// Changes nothing: the first timeouts are those of RFC 9002 §6.2.2, or what is remembered of the path.
    pub fn initial_rtt(&mut self, _value: Duration) -> &mut Self {
        self
    }

    /// The size of all UDP payloads without a search, in bytes, at least 1,200; with one, the search begins at 1,200.
    pub fn initial_mtu(&mut self, value: u16) -> &mut Self {
        self.settings.set_datagram_size(DatagramSizing::Discover { most: usize::from(value.max(1452)) });
        self
    }

    /// Searches for the size of datagrams up to a bound, or sends 1,200 bytes. Default: up to 1,452 bytes.
    pub fn mtu_discovery_config(&mut self, value: Option<MtuDiscoveryConfig>) -> &mut Self {
        self.settings.set_datagram_size(match value {
            Some(search) => DatagramSizing::Discover { most: search.most.into() },
            None => DatagramSizing::Fixed(1200),
        });
        self
    }

    /// The silence after which a PING is sent; `None` sends none, which is the default.
    pub fn keep_alive_interval(&mut self, value: Option<Duration>) -> &mut Self {
        self.settings.set_keep_alive(value);
        self
    }

    /// Has the spin bit spin (RFC 9000 §17.4), which is the default.
    pub fn allow_spin(&mut self, value: bool) -> &mut Self {
        self.settings.set_spin_bit(if value { SpinBit::Mostly } else { SpinBit::Never });
        self
    }

    /// Takes datagrams (RFC 9221), or none. Bytes that wait for the application are bounded by the larger of this and
    /// [`Self::datagram_send_buffer_size`]. Default: 1 MiB.
    pub fn datagram_receive_buffer_size(&mut self, value: Option<usize>) -> &mut Self {
        self.settings.set_max_datagram_frame(if value.is_some() { 65_535 } else { 0 });
        let queue = self.settings.datagram_queue().max(value.unwrap_or_default());
        self.settings.set_datagram_queue(queue);
        self
    }

    /// Bytes of datagrams that wait for sending, and as many for the application. Default: 1 MiB.
    pub fn datagram_send_buffer_size(&mut self, value: usize) -> &mut Self {
        self.settings.set_datagram_queue(value);
        self
    }

    /// The congestion control of all paths: see [`congestion`](crate::congestion). Default: CUBIC.
    pub fn congestion_controller_factory(
        &mut self,
        factory: Arc<dyn ControllerFactory + Send + Sync + 'static>,
    ) -> &mut Self {
        self.settings.set_congestion(factory.congestion());
        self
    }

    /// Sends batches in one call where the system can (GSO), which is the default.
    pub fn enable_segmentation_offload(&mut self, enabled: bool) -> &mut Self {
        self.settings.set_segments(if enabled { 64 } else { 1 });
        self
    }

    /// The settings for a connection that begins.
    pub(crate) fn to_hvq(&self) -> Arc<hvq::TransportConfig> {
        Arc::new(self.settings.clone())
    }
}
