//! The states of the sending half of a stream (RFC 9000 §3.1, figure 2).

/// The state of the sending half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendState {
    /// Nothing was sent yet.
    Ready,
    /// Data is being sent.
    Send,
    /// Everything, the end included, was sent once; or RESET_STREAM_AT was sent, or is about to be.
    DataSent,
    /// RESET_STREAM was sent, or is about to be.
    ResetSent,
    /// The peer has everything. Terminal.
    DataRecvd,
    /// The peer has the RESET_STREAM. Terminal.
    ResetRecvd,
}

/// An event of a sending half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendEvent {
    /// A STREAM or STREAM_DATA_BLOCKED frame is sent.
    Frame,
    /// A STREAM frame with FIN is sent.
    Fin,
    /// The application resets the stream, or the peer asked for it.
    Reset,
    /// The application resets the stream, but for a part that is delivered (draft-ietf-quic-reliable-stream-reset §5.3).
    ResetAt,
    /// All data and the FIN are acknowledged, or the RESET_STREAM_AT and all data that it promises.
    AllAcknowledged,
    /// The RESET_STREAM is acknowledged.
    ResetAcknowledged,
}

impl SendState {
    /// The state after `event`, `None` if the event means nothing in this state.
    pub const fn after(self, event: SendEvent) -> Option<Self> {
        match (self, event) {
            (Self::Ready | Self::Send, SendEvent::Frame) => Some(Self::Send),
            (Self::Ready | Self::Send | Self::DataSent, SendEvent::Fin) => Some(Self::DataSent),
            (Self::DataSent, SendEvent::Frame) => Some(Self::DataSent),
            (Self::Ready | Self::Send | Self::DataSent, SendEvent::Reset) => Some(Self::ResetSent),
            (Self::Ready | Self::Send | Self::DataSent, SendEvent::ResetAt) => Some(Self::DataSent),
            (Self::DataSent, SendEvent::AllAcknowledged) => Some(Self::DataRecvd),
            (Self::ResetSent, SendEvent::ResetAcknowledged) => Some(Self::ResetRecvd),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-3.3
            //# A sender MUST NOT send any of these frames from a terminal state ("Data Recvd" or "Reset
            //# Recvd")
            _ => None,
        }
    }

    /// Returns true if nothing can happen any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::DataRecvd | Self::ResetRecvd)
    }
}

#[cfg(test)]
mod tests {
    use super::SendEvent::*;
    use super::SendState::{self, *};

    #[test]
    fn every_transition_of_figure_2_is_there_and_no_other() {
        // Columns: Frame, Fin, Reset, ResetAt, AllAcknowledged, ResetAcknowledged (RFC 9000 §3.1).
        let sent = Some(DataSent);
        let table: [(SendState, [Option<SendState>; 6]); 6] = [
            (Ready, [Some(Send), sent, Some(ResetSent), sent, None, None]),
            (Send, [Some(Send), sent, Some(ResetSent), sent, None, None]),
            (DataSent, [sent, sent, Some(ResetSent), sent, Some(DataRecvd), None]),
            (ResetSent, [None, None, None, None, None, Some(ResetRecvd)]),
            (DataRecvd, [None; 6]),
            (ResetRecvd, [None; 6]),
        ];
        for (state, row) in table {
            for (event, expected) in
                [Frame, Fin, Reset, ResetAt, AllAcknowledged, ResetAcknowledged].into_iter().zip(row)
            {
                assert_eq!(state.after(event), expected, "{state:?} after {event:?}");
            }
        }
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-3.3
    //= type=test
    //# A sender MUST NOT send any of these frames from a terminal state ("Data Recvd" or "Reset Recvd")
    #[test]
    fn terminal_states_are_those_that_nothing_leaves() {
        for state in [Ready, Send, DataSent, ResetSent, DataRecvd, ResetRecvd] {
            let stuck = [Frame, Fin, Reset, ResetAt, AllAcknowledged, ResetAcknowledged]
                .into_iter()
                .all(|event| state.after(event).is_none());
            assert_eq!(state.is_terminal(), stuck, "{state:?}");
        }
    }
}
