//! The states of the receiving half of a stream (RFC 9000 §3.2, figure 3).

/// The state of the receiving half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveState {
    /// Data arrives, the end is not known.
    Recv,
    /// The final size is known, data is missing.
    SizeKnown,
    /// All data is here.
    DataRecvd,
    /// The peer reset the stream; the application does not know yet.
    ResetRecvd,
    /// The application has all data, or does not want it. Terminal.
    DataRead,
    /// The application knows of the reset. Terminal.
    ResetRead,
}

/// An event of a receiving half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveEvent {
    /// A STREAM frame with FIN arrives.
    Fin,
    /// The last missing byte arrives.
    AllReceived,
    /// RESET_STREAM arrives.
    Reset,
    /// The application learns of the end or of the reset.
    Told,
    /// The application does not want the rest (RFC 9000 §3.5). It needs no telling then.
    Stopped,
}

impl ReceiveState {
    /// The state after `event`, `None` if the event means nothing in this state.
    ///
    /// A reset after all data arrived is ignored, as §3.2 permits. A stopped stream stays until its final size is
    /// known, because flow control needs that.
    pub const fn after(self, event: ReceiveEvent) -> Option<Self> {
        match (self, event) {
            (Self::Recv, ReceiveEvent::Fin) => Some(Self::SizeKnown),
            (Self::SizeKnown, ReceiveEvent::AllReceived) => Some(Self::DataRecvd),
            (Self::Recv | Self::SizeKnown, ReceiveEvent::Reset) => Some(Self::ResetRecvd),
            (Self::DataRecvd, ReceiveEvent::Told) => Some(Self::DataRead),
            (Self::ResetRecvd, ReceiveEvent::Told) => Some(Self::ResetRead),
            (Self::SizeKnown | Self::DataRecvd, ReceiveEvent::Stopped) => Some(Self::DataRead),
            (Self::ResetRecvd, ReceiveEvent::Stopped) => Some(Self::ResetRead),
            _ => None,
        }
    }

    /// Returns true if nothing can happen any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::DataRead | Self::ResetRead)
    }
}

#[cfg(test)]
mod tests {
    use super::ReceiveEvent::*;
    use super::ReceiveState::{self, *};

    #[test]
    fn every_transition_of_figure_3_is_there_and_no_other() {
        // Columns: Fin, AllReceived, Reset, Told, Stopped (RFC 9000 §3.2).
        let table: [(ReceiveState, [Option<ReceiveState>; 5]); 6] = [
            (Recv, [Some(SizeKnown), None, Some(ResetRecvd), None, None]),
            (SizeKnown, [None, Some(DataRecvd), Some(ResetRecvd), None, Some(DataRead)]),
            (DataRecvd, [None, None, None, Some(DataRead), Some(DataRead)]),
            (ResetRecvd, [None, None, None, Some(ResetRead), Some(ResetRead)]),
            (DataRead, [None; 5]),
            (ResetRead, [None; 5]),
        ];
        for (state, row) in table {
            for (event, expected) in [Fin, AllReceived, Reset, Told, Stopped].into_iter().zip(row) {
                assert_eq!(state.after(event), expected, "{state:?} after {event:?}");
            }
        }
    }

    #[test]
    fn terminal_states_are_those_that_nothing_leaves() {
        for state in [Recv, SizeKnown, DataRecvd, ResetRecvd, DataRead, ResetRead] {
            let stuck = [Fin, AllReceived, Reset, Told, Stopped]
                .into_iter()
                .all(|event| state.after(event).is_none());
            assert_eq!(state.is_terminal(), stuck, "{state:?}");
        }
    }
}
