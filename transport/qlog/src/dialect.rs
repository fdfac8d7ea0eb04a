//! The names of events, which changed between versions of the format.

/// A version of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// qlog 0.3 (the drafts of 2021 and 2022), which qvis loads.
    #[default]
    Qvis,
    /// draft-ietf-quic-qlog-quic-events-13.
    Draft,
}

/// The events that are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    ConnectionStarted,
    ConnectionClosed,
    ConnectionStateUpdated,
    ParametersSet,
    TupleAssigned,
    KeyUpdated,
    PacketSent,
    PacketReceived,
    PacketDropped,
    PacketLost,
    MetricsUpdated,
    CongestionStateUpdated,
    PathUpdated,
    CarefulResumePhaseUpdated,
    RttSampled,
    Warning,
}

impl Dialect {
    /// The URI of the schema that names events so (quic-events §2.1), `None` before there were URIs.
    pub(crate) fn schema(self) -> Option<&'static str> {
        match self {
            Self::Qvis => None,
            Self::Draft => Some("urn:ietf:params:qlog:events:quic-13"),
        }
    }

    /// Returns the name that the dialect gives `name`.
    pub(crate) fn name(self, name: Name) -> &'static str {
        match (self, name) {
            // Events of no schema of the IETF: what only a multipath connection knows.
            (_, Name::PathUpdated) => "hvq:path_updated",
            (_, Name::CarefulResumePhaseUpdated) => "hvq:careful_resume_phase_updated",
            (_, Name::RttSampled) => "hvq:rtt_sampled",
            (_, Name::Warning) => "loglevel:warning",
            (Self::Qvis, Name::ConnectionStarted) => "connectivity:connection_started",
            (Self::Qvis, Name::ConnectionClosed) => "connectivity:connection_closed",
            (Self::Qvis, Name::ConnectionStateUpdated) => "connectivity:connection_state_updated",
            (Self::Qvis, Name::ParametersSet) => "transport:parameters_set",
            (Self::Qvis, Name::TupleAssigned) => "connectivity:path_assigned",
            (Self::Qvis, Name::KeyUpdated) => "security:key_updated",
            (Self::Qvis, Name::PacketSent) => "transport:packet_sent",
            (Self::Qvis, Name::PacketReceived) => "transport:packet_received",
            (Self::Qvis, Name::PacketDropped) => "transport:packet_dropped",
            (Self::Qvis, Name::PacketLost) => "recovery:packet_lost",
            (Self::Qvis, Name::MetricsUpdated) => "recovery:metrics_updated",
            (Self::Qvis, Name::CongestionStateUpdated) => "recovery:congestion_state_updated",
            (Self::Draft, Name::ConnectionStarted) => "quic:connection_started",
            (Self::Draft, Name::ConnectionClosed) => "quic:connection_closed",
            (Self::Draft, Name::ConnectionStateUpdated) => "quic:connection_state_updated",
            (Self::Draft, Name::ParametersSet) => "quic:parameters_set",
            (Self::Draft, Name::TupleAssigned) => "quic:tuple_assigned",
            (Self::Draft, Name::KeyUpdated) => "quic:key_updated",
            (Self::Draft, Name::PacketSent) => "quic:packet_sent",
            (Self::Draft, Name::PacketReceived) => "quic:packet_received",
            (Self::Draft, Name::PacketDropped) => "quic:packet_dropped",
            (Self::Draft, Name::PacketLost) => "quic:packet_lost",
            (Self::Draft, Name::MetricsUpdated) => "quic:recovery_metrics_updated",
            (Self::Draft, Name::CongestionStateUpdated) => "quic:congestion_state_updated",
        }
    }
}
