//! The unidirectional streams of a peer (RFC 9114 §6.2, RFC 9204 §4.2), without I/O.

use super::compression::Tables;
use super::origin_set::{ORIGIN, OriginSet};
use super::sessions::{Heading, UNI_STREAM, missing};
use super::settings::{
    ENABLE_WEBTRANSPORT, WT_ENABLED, WT_INITIAL_MAX_DATA, WT_INITIAL_MAX_STREAMS_BIDI,
    WT_INITIAL_MAX_STREAMS_UNI, WT_MAX_SESSIONS,
};
use crate::qpack::Limits;
use crate::web_transport::SessionLimits;
use crate::{Code, priority};
use bytes::{Buf, BytesMut};
use hvq::transport::wire::varint;
use hvq::{Priority, Role};

/// Bytes that a control frame may have that is understood.
pub(super) const LARGEST_FRAME: u64 = 16 << 10;

/// PRIORITY_UPDATE frames about the response to a request, and about a push (RFC 9218 §7.1, §7.2).
pub(super) const UPDATE_OF_REQUEST: u64 = 0xf0700;
//= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
//= type=implication
//= reason=Nothing here sends this type.
//# The push-stream variant of PRIORITY_UPDATE (type=0xF0701) MUST reference a promised push stream.
const UPDATE_OF_PUSH: u64 = 0xf0701;

/// A violation of the protocol that ends the connection: its code and reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Violation(pub(super) Code, pub(super) &'static str);

/// The role of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Peer {
    #[default]
    Client,
    Server,
}

impl Peer {
    /// The peer of an endpoint with this `role`.
    pub(super) fn of(role: Role) -> Self {
        match role {
            Role::Server => Self::Client,
            Role::Client => Self::Server,
        }
    }
}

/// The extensions that a peer's SETTINGS say it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Offers {
    /// Extended CONNECT (RFC 9220 §3).
    pub(crate) extended_connect: Offered,
    /// HTTP datagrams (RFC 9297 §2.1.1).
    pub(crate) datagrams: Offered,
    /// WebTransport sessions (draft-ietf-webtrans-http3 §3.1).
    pub(crate) sessions: Sessions,
}

/// Tells which WebTransport a peer speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Sessions {
    #[default]
    None,
    /// Drafts before 15, with the upgrade token `webtransport`.
    Early,
    /// The current draft, with the upgrade token `webtransport-h3`.
    Current,
}

/// Tells whether an extension is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Offered {
    #[default]
    No,
    Yes,
}

/// The state that all unidirectional streams of a peer share.
#[derive(Debug, Default)]
pub(super) struct Seen {
    peer: Peer,
    /// True if streams of WebTransport sessions are taken.
    takes_sessions: Offered,
    /// The limits that the peer's sessions begin with, if any are taken (draft-ietf-webtrans-http3 §5.5).
    pub(super) limits: Option<Box<SessionLimits>>,
    /// True for each of the control, QPACK encoder and QPACK decoder streams that is there: there is one each.
    critical: [bool; 3],
    /// The largest field section that the peer takes.
    pub(super) field_section: Option<u64>,
    /// The extensions that the peer takes, once its SETTINGS came.
    pub(super) offers: Option<Offers>,
    /// The dynamic table that the peer offers (RFC 9204 §5).
    pub(super) qpack: Limits,
    /// The ID of the last GOAWAY: a server processes no request from there on.
    pub(super) goaway: Option<u64>,
    max_push: Option<u64>,
    /// PRIORITY_UPDATE frames about requests that nobody has taken up yet (RFC 9218 §7.1).
    pub(super) updates: Vec<(u64, Priority)>,
    /// Origins of ORIGIN frames that nobody has taken up yet (RFC 9412).
    pub(super) origins: OriginSet,
}

/// The kind of a unidirectional stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Control (RFC 9114 §6.2.1); whether SETTINGS came.
    Control(SettingsProgress),
    /// QPACK encoder stream: it fills the dynamic table of this end's decoder.
    Encoder,
    /// QPACK decoder stream: it speaks of the table that this end's encoder fills.
    Decoder,
    /// A stream of a WebTransport session, whose ID follows behind so many bytes (draft-ietf-webtrans-http3 §4.3).
    Session(u8),
    /// Something that is not known, which is not read.
    Unknown,
}

/// Tells whether SETTINGS came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SettingsProgress {
    /// They did not come yet: they have to be first.
    Awaited,
    /// They came.
    Seen,
}

/// One such stream.
#[derive(Debug, Default)]
pub(super) struct Uni {
    kind: Option<Kind>,
    buffer: BytesMut,
    /// Bytes of a frame that is passed over.
    skipped: u64,
}

impl Uni {
    /// Returns true if the peer must never end the stream (RFC 9114 §6.2.1, RFC 9204 §4.2).
    pub(super) fn is_critical(&self) -> bool {
        self.kind.is_some_and(|kind| !matches!(kind, Kind::Unknown | Kind::Session(_)))
    }

    /// Returns the session of the stream, if it has one and its ID came whole, with the bytes behind.
    pub(super) fn session(&mut self) -> Option<Heading> {
        let Some(Kind::Session(behind)) = self.kind else { return None };
        let (session, length) = varint::get(&self.buffer)?;
        self.buffer.advance(length);
        let header = u64::from(behind) + length as u64;
        Some(Heading { session, header, begun: self.buffer.split().freeze() })
    }

    /// Bytes that may be read at once. Of the header of a stream of a session, no more than are missing of it at least: how such a
    /// stream ends is for the session to see.
    pub(super) fn most(&self) -> usize {
        match self.kind {
            None | Some(Kind::Session(_)) => missing(&self.buffer),
            Some(Kind::Control(_) | Kind::Encoder | Kind::Decoder | Kind::Unknown) => usize::MAX,
        }
    }

    /// Returns the kind of the stream, once that is known.
    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// Takes what came.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        seen: &mut Seen,
        tables: &mut Tables,
    ) -> Result<(), Violation> {
        self.buffer.extend_from_slice(bytes);
        if self.kind.is_none() {
            let Some((number, length)) = varint::get(&self.buffer) else { return Ok(()) };
            self.buffer.advance(length);
            self.kind = Some(kind(number, seen)?);
            if let Some(Kind::Session(header)) = &mut self.kind {
                // A variable-length integer has eight bytes at most (RFC 9000 §16).
                *header = u8::try_from(length).unwrap_or(u8::MAX);
            }
        }
        loop {
            let took = match self.kind {
                Some(Kind::Control(settings)) => self.frame(settings, seen)?,
                Some(Kind::Encoder) => {
                    tables.on_encoder_stream(&self.buffer.split())?;
                    None
                }
                Some(Kind::Decoder) => {
                    tables.on_decoder_stream(&self.buffer.split())?;
                    None
                }
                Some(Kind::Session(_)) => None,
                Some(Kind::Unknown) | None => {
                    self.buffer.clear();
                    None
                }
            };
            if took.is_none() {
                return Ok(());
            }
        }
    }

    /// Takes a frame; `None` if more has to come first.
    fn frame(&mut self, settings: SettingsProgress, seen: &mut Seen) -> Result<Option<()>, Violation> {
        if self.skipped > 0 {
            let skipped = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(self.buffer.len());
            self.buffer.advance(skipped);
            self.skipped -= skipped as u64;
            return Ok((skipped > 0).then_some(()));
        }
        let Some((kind, first)) = varint::get(&self.buffer) else { return Ok(None) };
        let Some((length, second)) = varint::get(self.buffer.get(first..).unwrap_or_default()) else {
            return Ok(None);
        };
        //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
        //# If the first frame of the control stream is any other frame type, this MUST be treated as a
        //# connection error of type H3_MISSING_SETTINGS.
        if settings == SettingsProgress::Awaited && kind != 0x04 {
            return Err(Violation(Code::H3_MISSING_SETTINGS, "the first frame is not SETTINGS"));
        }
        match kind {
            // DATA, HEADERS and PUSH_PROMISE, and what HTTP/2 had (RFC 9114 §7.2, §11.2.1).
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.1
            //# If a DATA frame is received on a control stream, the recipient MUST respond with a connection error
            //# of type H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.2
            //# If a HEADERS frame is received on a control stream, the recipient MUST respond with a connection
            //# error of type H3_FRAME_UNEXPECTED.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
            //# If a PUSH_PROMISE frame is received on the control stream, the client MUST respond with a connection
            //# error of type H3_FRAME_UNEXPECTED.
            0x00 | 0x01 | 0x05 | 0x02 | 0x06 | 0x08 | 0x09 => {
                return Err(Violation(Code::H3_FRAME_UNEXPECTED, "not a frame of a control stream"));
            }
            0x03 | 0x04 | 0x07 | 0x0d | UPDATE_OF_REQUEST | UPDATE_OF_PUSH => {}
            // RFC 8336 §2.2: whoever does not take the frame may ignore it, as servers do, and clients one that is too large.
            ORIGIN if seen.peer == Peer::Server && length <= LARGEST_FRAME => {}
            _ => {
                self.buffer.advance(first + second);
                self.skipped = length;
                return Ok(Some(()));
            }
        }
        if length > LARGEST_FRAME {
            return Err(Violation(Code::H3_EXCESSIVE_LOAD, "a control frame that is too large"));
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if self.buffer.len() - first - second < length {
            return Ok(None);
        }
        self.buffer.advance(first + second);
        let payload = self.buffer.split_to(length);
        match kind {
            0x04 => {}
            UPDATE_OF_REQUEST | UPDATE_OF_PUSH => return seen.update(kind, &payload).map(Some),
            ORIGIN => return seen.origins.add(&payload).map(Some),
            _ => return seen.frame(kind, &payload).map(Some),
        }
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
        //# If an endpoint receives a second SETTINGS frame on the control stream, the endpoint MUST respond
        //# with a connection error of type H3_FRAME_UNEXPECTED.
        if settings == SettingsProgress::Seen {
            return Err(Violation(Code::H3_FRAME_UNEXPECTED, "SETTINGS twice"));
        }
        self.kind = Some(Kind::Control(SettingsProgress::Seen));
        seen.settings(&payload).map(Some)
    }
}

/// Returns the kind of streams of type `number`, with the state behind it.
fn kind(number: u64, seen: &mut Seen) -> Result<Kind, Violation> {
    let (kind, index) = match number {
        0x00 => (Kind::Control(SettingsProgress::Awaited), 0),
        //= https://www.rfc-editor.org/rfc/rfc9204#section-4.2
        //# An endpoint MUST allow its peer to create an encoder stream and a decoder stream even if the
        //# connection's settings prevent their use.
        0x02 => (Kind::Encoder, 1),
        0x03 => (Kind::Decoder, 2),
        // RFC 9114 §6.2.2: only servers push, and only what may be pushed, which is nothing here (§4.6).
        0x01 => {
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.6
            //# A client MUST treat receipt of a push stream as a connection error of type H3_ID_ERROR when no
            //# MAX_PUSH_ID frame has been sent or when the stream references a push ID that is greater than the
            //# maximum push ID.
            return Err(match seen.peer {
                //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.2
                //# Only servers can push; if a server receives a client-initiated push stream, this MUST be treated as
                //# a connection error of type H3_STREAM_CREATION_ERROR.
                Peer::Client => Violation(Code::H3_STREAM_CREATION_ERROR, "a push stream of a client"),
                Peer::Server => Violation(Code::H3_ID_ERROR, "a push that nobody permitted"),
            });
        }
        UNI_STREAM if seen.takes_sessions == Offered::Yes => return Ok(Kind::Session(0)),
        _ => return Ok(Kind::Unknown),
    };
    //= https://www.rfc-editor.org/rfc/rfc9204#section-4.2
    //# Receipt of a second instance of either stream type MUST be treated as a connection error of type
    //# H3_STREAM_CREATION_ERROR.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
    //# Only one control stream per peer is permitted; receipt of a second stream claiming to be a control
    //# stream MUST be treated as a connection error of type H3_STREAM_CREATION_ERROR.
    match seen.critical.get_mut(index).map(|seen| std::mem::replace(seen, true)) {
        Some(false) => Ok(kind),
        _ => Err(Violation(Code::H3_STREAM_CREATION_ERROR, "a second stream of a kind that there is one of")),
    }
}

impl Seen {
    /// Makes the state of a `peer` of which nothing came yet.
    pub(super) fn of(peer: Peer) -> Self {
        Self { peer, ..Self::default() }
    }

    /// The same, with streams of WebTransport sessions taken.
    pub(super) fn with_sessions(self) -> Self {
        Self { takes_sessions: Offered::Yes, limits: Some(Box::new(SessionLimits::NONE)), ..self }
    }

    /// RFC 9114 §7.2.4.
    fn settings(&mut self, mut payload: &[u8]) -> Result<(), Violation> {
        let mut known = Vec::new();
        let mut offers = Offers::default();
        while !payload.is_empty() {
            let (Some(identifier), Some(value)) = (next(&mut payload), next(&mut payload)) else {
                return Err(Violation(Code::H3_FRAME_ERROR, "SETTINGS that end within a setting"));
            };
            // What HTTP/2 had, and nothing twice.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.1
            //# These reserved settings MUST NOT be sent, and their receipt MUST be treated as a connection error of
            //# type H3_SETTINGS_ERROR.
            if matches!(identifier, 0x00 | 0x02..=0x05) || known.contains(&identifier) {
                return Err(Violation(Code::H3_SETTINGS_ERROR, "a setting that may not be there"));
            }
            match identifier {
                0x01 => self.qpack.max_table_capacity = value,
                0x06 => self.field_section = Some(value),
                0x07 => self.qpack.max_blocked_streams = value,
                // RFC 9220 §3, RFC 9297 §2.1.1: these are either said or not.
                // Draft-ietf-webtrans-http3 §3.1 likewise.
                0x08 | 0x33 | WT_ENABLED if value > 1 => {
                    return Err(Violation(Code::H3_SETTINGS_ERROR, "a setting of more than 1"));
                }
                0x08 if value == 1 => offers.extended_connect = Offered::Yes,
                0x33 if value == 1 => offers.datagrams = Offered::Yes,
                WT_ENABLED if value == 1 => offers.sessions = Sessions::Current,
                WT_INITIAL_MAX_DATA | WT_INITIAL_MAX_STREAMS_UNI | WT_INITIAL_MAX_STREAMS_BIDI => {
                    self.limit_sessions(identifier, value);
                }
                WT_MAX_SESSIONS | ENABLE_WEBTRANSPORT if value > 0 && offers.sessions == Sessions::None => {
                    offers.sessions = Sessions::Early;
                }
                //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.1
                //# Endpoints MUST NOT consider such settings to have any meaning upon receipt.
                //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
                //# An implementation MUST ignore any parameter with an identifier it does not understand.
                // Only those are remembered that a peer has a reason to say: the rest may be without number.
                _ if known.len() >= 64 => continue,
                _ => {}
            }
            known.push(identifier);
        }
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
        //# Once a server has provided new settings, clients MUST comply with those values.
        self.offers = Some(offers);
        Ok(())
    }

    /// A limit that sessions begin with (draft-ietf-webtrans-http3 §5.5).
    fn limit_sessions(&mut self, identifier: u64, value: u64) {
        let Some(limits) = &mut self.limits else { return };
        match identifier {
            WT_INITIAL_MAX_DATA => limits.data = value,
            WT_INITIAL_MAX_STREAMS_UNI => limits.uni = value,
            _ => limits.bidi = value,
        }
    }

    /// PRIORITY_UPDATE (RFC 9218 §7): an ID, and the value of a `priority` header.
    fn update(&mut self, kind: u64, mut payload: &[u8]) -> Result<(), Violation> {
        //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# If a client receives a PRIORITY_UPDATE frame, this MUST be treated as a connection error of type
        //# H3_FRAME_UNEXPECTED.
        if self.peer == Peer::Server {
            return Err(Violation(Code::H3_FRAME_UNEXPECTED, "PRIORITY_UPDATE of a server"));
        }
        let Some(id) = next(&mut payload) else {
            return Err(Violation(Code::H3_FRAME_ERROR, "PRIORITY_UPDATE without an ID"));
        };
        // Nothing was promised, and requests are streams that clients open both ways.
        //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# If a server receives a PRIORITY_UPDATE (type=0xF0700) for a stream ID that is not a request stream,
        //# this MUST be treated as a connection error of type H3_ID_ERROR.
        //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# If a server receives a PRIORITY_UPDATE (type=0xF0701) with a push ID that is greater than the
        //# maximum push ID or that has not yet been promised, this MUST be treated as a connection error of
        //# type H3_ID_ERROR.
        if kind == UPDATE_OF_PUSH || id % 4 != 0 {
            return Err(Violation(Code::H3_ID_ERROR, "a priority of nothing that a client asked for"));
        }
        self.updates.push((id, priority::of_update(payload)));
        Ok(())
    }

    /// CANCEL_PUSH, GOAWAY or MAX_PUSH_ID: an integer each.
    fn frame(&mut self, kind: u64, mut payload: &[u8]) -> Result<(), Violation> {
        //= https://www.rfc-editor.org/rfc/rfc9114#section-10.8
        //# An implementation MUST ensure that the length of a frame exactly matches the length of the fields it
        //# contains.
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.1
        //# Each frame's payload MUST contain exactly the fields identified in its description.
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.1
        //# A frame payload that contains additional bytes after the identified fields or a frame payload that
        //# terminates before the end of the identified fields MUST be treated as a connection error of type
        //# H3_FRAME_ERROR.
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.1
        //# In particular, redundant length encodings MUST be verified to be self-consistent; see Section 10.8.
        let Some(id) = next(&mut payload).filter(|_| payload.is_empty()) else {
            return Err(Violation(Code::H3_FRAME_ERROR, "a control frame that is not one integer"));
        };
        let wrong = match kind {
            // RFC 9114 §7.2.3: nothing was promised.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.3
            //# If a CANCEL_PUSH frame is received that references a push ID greater than currently allowed on the
            //# connection, this MUST be treated as a connection error of type H3_ID_ERROR.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.3
            //# If a server receives a CANCEL_PUSH frame for a push ID that has not yet been mentioned by a
            //# PUSH_PROMISE frame, this MUST be treated as a connection error of type H3_ID_ERROR.
            0x03 => true,
            // §7.2.6: of a server the ID of a request, of a client that of a push; neither ever rises.
            0x07 => {
                //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.6
                //# A client MUST treat receipt of a GOAWAY frame containing a stream ID of any other type as a
                //# connection error of type H3_ID_ERROR.
                let impossible = self.peer == Peer::Server && id % 4 != 0;
                //= https://www.rfc-editor.org/rfc/rfc9114#section-5.2
                //# Receiving a GOAWAY containing a larger identifier than previously received MUST be treated as a
                //# connection error of type H3_ID_ERROR.
                self.goaway.replace(id).is_some_and(|before| id > before) || impossible
            }
            _ if self.peer == Peer::Server => {
                //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.7
                //# A client MUST treat the receipt of a MAX_PUSH_ID frame as a connection error of type
                //# H3_FRAME_UNEXPECTED.
                return Err(Violation(Code::H3_FRAME_UNEXPECTED, "MAX_PUSH_ID of a server"));
            }
            // §7.2.7: it never falls.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.7
            //# A MAX_PUSH_ID frame cannot reduce the maximum push ID; receipt of a MAX_PUSH_ID frame that contains
            //# a smaller value than previously received MUST be treated as a connection error of type H3_ID_ERROR.
            _ => self.max_push.replace(id).is_some_and(|before| id < before),
        };
        if wrong { Err(Violation(Code::H3_ID_ERROR, "an ID that cannot be")) } else { Ok(()) }
    }
}

/// The variable-length integer that `bytes` begins with, which is taken.
fn next(bytes: &mut &[u8]) -> Option<u64> {
    let (value, length) = varint::get(bytes)?;
    *bytes = bytes.get(length..)?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qpack::Policy;

    /// Reads these bytes on a stream each, in pieces of any size.
    fn on(streams: &[&[u8]]) -> Result<Seen, Code> {
        of(Peer::Client, streams)
    }

    fn of(peer: Peer, streams: &[&[u8]]) -> Result<Seen, Code> {
        let (mut seen, mut tables) = (Seen::of(peer), tables());
        for bytes in streams {
            let mut uni = Uni::default();
            for byte in *bytes {
                uni.take(&[*byte], &mut seen, &mut tables).map_err(|violation| violation.0)?;
            }
        }
        let (mut whole, mut tables) = (Seen::of(peer), self::tables());
        for bytes in streams {
            Uni::default().take(bytes, &mut whole, &mut tables).unwrap();
        }
        let said = |seen: &Seen| (seen.field_section, seen.offers, seen.qpack);
        assert_eq!(said(&whole), said(&seen));
        Ok(seen)
    }

    /// Both ends without a dynamic table.
    fn tables() -> Tables {
        Tables::new(Limits::default(), Policy::default())
    }

    #[test]
    fn an_ordinary_client_is_understood() {
        let control =
            [0, 0x04, 5, 0x01, 0, 0x06, 0x44, 0x00, 0x0d, 1, 8, 0x07, 1, 4, 0x07, 1, 4, 0x21, 2, 1, 1];
        let seen = on(&[&control, &[2, 0b0010_0000], &[3, 0b0100_0100, 0b0111_1111, 0x80, 1], &[0x21, 1, 2]]);
        assert_eq!(seen.unwrap().field_section, Some(0x400));
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
    //= type=test
    //# Once a server has provided new settings, clients MUST comply with those values.
    #[test]
    fn a_server_says_what_it_offers_and_pushes_nothing() {
        let control = [0, 0x04, 4, 0x08, 1, 0x33, 1, 0x07, 1, 8, 0x07, 1, 8, 0x07, 1, 4];
        let offers = of(Peer::Server, &[&control]).unwrap().offers.unwrap();
        assert_eq!((offers.extended_connect, offers.datagrams), (Offered::Yes, Offered::Yes));
        assert_eq!(of(Peer::Server, &[&[0, 0x04, 2, 0x08, 0]]).unwrap().offers, Some(Offers::default()));
        assert_eq!(of(Peer::Server, &[&[0]]).unwrap().offers, None);
        let behind = |frame: &[u8]| of(Peer::Server, &[&[&[0, 0x04, 0], frame].concat()]).unwrap_err();
        assert_eq!(behind(&[0x0d, 1, 4]), Code::H3_FRAME_UNEXPECTED);
        assert_eq!(behind(&[0x07, 1, 5]), Code::H3_ID_ERROR);
        assert_eq!(behind(&[0x07, 1, 4, 0x07, 1, 8]), Code::H3_ID_ERROR);
        assert_eq!(of(Peer::Server, &[&[1, 0]]).unwrap_err(), Code::H3_ID_ERROR);
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-10.8
    //= type=test
    //# An implementation MUST ensure that the length of a frame exactly matches the length of the fields it
    //# contains.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-7.1
    //= type=test
    //# Each frame's payload MUST contain exactly the fields identified in its description.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.3
    //= type=test
    //# If a server receives a CANCEL_PUSH frame for a push ID that has not yet been mentioned by a
    //# PUSH_PROMISE frame, this MUST be treated as a connection error of type H3_ID_ERROR.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.7
    //= type=test
    //# A MAX_PUSH_ID frame cannot reduce the maximum push ID; receipt of a MAX_PUSH_ID frame that contains
    //# a smaller value than previously received MUST be treated as a connection error of type H3_ID_ERROR.
    #[test]
    fn what_a_control_stream_may_not_carry_ends_the_connection() {
        // attacks.md H3, H4, H6, H15, H16.
        let settings = [0, 0x04, 0];
        let behind = |frame: &[u8]| on(&[&[&settings, frame].concat()]).unwrap_err();
        assert_eq!(on(&[&[0, 0x07, 1, 0]]).unwrap_err(), Code::H3_MISSING_SETTINGS);
        assert_eq!(behind(&[0x04, 0]), Code::H3_FRAME_UNEXPECTED);
        for kind in [0x00, 0x01, 0x02, 0x05, 0x06, 0x08, 0x09] {
            assert_eq!(behind(&[kind, 0]), Code::H3_FRAME_UNEXPECTED, "{kind}");
        }
        assert_eq!(behind(&[0x03, 1, 0]), Code::H3_ID_ERROR);
        assert_eq!(behind(&[0x07, 1, 4, 0x07, 1, 5]), Code::H3_ID_ERROR);
        assert_eq!(behind(&[0x0d, 1, 4, 0x0d, 1, 3]), Code::H3_ID_ERROR);
        assert_eq!(behind(&[0x07, 2, 4, 4]), Code::H3_FRAME_ERROR);
        assert_eq!(on(&[&[0, 0x04, 0x80, 0x10, 0, 0]]).unwrap_err(), Code::H3_EXCESSIVE_LOAD);
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.1
    //= type=test
    //# These reserved settings MUST NOT be sent, and their receipt MUST be treated as a connection error of
    //# type H3_SETTINGS_ERROR.
    #[test]
    fn settings_that_may_not_be_there_end_the_connection() {
        // attacks.md H3.
        for setting in [&[0x00, 1][..], &[0x02, 1], &[0x05, 1], &[0x06, 1, 0x06, 1], &[0x33, 2], &[0x08, 2]] {
            let stream = [&[0, 0x04, setting.len() as u8], setting].concat();
            assert_eq!(on(&[&stream]).unwrap_err(), Code::H3_SETTINGS_ERROR, "{setting:?}");
        }
        assert_eq!(on(&[&[0, 0x04, 1, 0x06]]).unwrap_err(), Code::H3_FRAME_ERROR);
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.2
    //= type=test
    //# Only servers can push; if a server receives a client-initiated push stream, this MUST be treated as
    //# a connection error of type H3_STREAM_CREATION_ERROR.
    //= https://www.rfc-editor.org/rfc/rfc9204#section-4.2
    //= type=test
    //# Receipt of a second instance of either stream type MUST be treated as a connection error of type
    //# H3_STREAM_CREATION_ERROR.
    #[test]
    fn there_is_one_stream_of_each_kind_and_none_to_push() {
        // attacks.md H5.
        for kind in [0, 2, 3] {
            assert_eq!(on(&[&[kind], &[kind]]).unwrap_err(), Code::H3_STREAM_CREATION_ERROR);
        }
        assert_eq!(on(&[&[1]]).unwrap_err(), Code::H3_STREAM_CREATION_ERROR);
    }

    #[test]
    fn the_dynamic_table_that_a_peer_offers_is_noted() {
        let seen = on(&[&[0, 0x04, 5, 0x01, 0x50, 0x00, 0x07, 16]]).unwrap();
        assert_eq!(seen.qpack, Limits { max_table_capacity: 4096, max_blocked_streams: 16 });
        assert_eq!(on(&[&[0, 0x04, 4, 0x07, 1, 0x07, 1]]).unwrap_err(), Code::H3_SETTINGS_ERROR);
    }

    //= https://www.rfc-editor.org/rfc/rfc9204#section-4.2
    //= type=test
    //# An endpoint MUST allow its peer to create an encoder stream and a decoder stream even if the
    //# connection's settings prevent their use.
    #[test]
    fn instructions_about_a_table_that_is_not_there_end_the_connection() {
        // attacks.md H8: a capacity above the limit, insertions, increments, acknowledgements.
        for instruction in [&[0b0010_0001][..], &[0b1100_0000, 0], &[0b0100_0000, 0], &[0b0000_0000]] {
            let stream = [&[2], instruction].concat();
            assert_eq!(on(&[&stream]).unwrap_err(), Code::QPACK_ENCODER_STREAM_ERROR, "{instruction:?}");
        }
        for instruction in [0b0000_0000, 0b0000_0001, 0b1000_0000] {
            assert_eq!(on(&[&[3, instruction]]).unwrap_err(), Code::QPACK_DECODER_STREAM_ERROR);
        }
        let endless = [&[3, 0b0111_1111][..], &[0x80; 20]].concat();
        assert_eq!(on(&[&endless]).unwrap_err(), Code::QPACK_DECODER_STREAM_ERROR);
    }

    //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
    //= type=test
    //# If a server receives a PRIORITY_UPDATE (type=0xF0700) for a stream ID that is not a request stream,
    //# this MUST be treated as a connection error of type H3_ID_ERROR.
    //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
    //= type=test
    //# If a server receives a PRIORITY_UPDATE (type=0xF0701) with a push ID that is greater than the
    //# maximum push ID or that has not yet been promised, this MUST be treated as a connection error of
    //# type H3_ID_ERROR.
    #[test]
    fn priorities_that_change_are_noted_and_those_of_nothing_end_the_connection() {
        // RFC 9218 §7: the type in four bytes, the length, the ID and a dictionary.
        let update = |kind: u8, rest: &[u8]| {
            [&[0, 0x04, 0, 0x80, 0x0f, 0x07, kind, rest.len() as u8][..], rest].concat()
        };
        let urgent = Priority { urgency: 1, incremental: true };
        for (payload, said) in [
            (&b"\x04u=1, i"[..], (4, urgent)),
            (b"\x08", (8, Priority::DEFAULT)),
            (b"\x0cu=1, i=", (12, Priority::DEFAULT)),
            (b"\x00\xff\x00", (0, Priority::DEFAULT)),
        ] {
            assert_eq!(on(&[&update(0x00, payload)]).unwrap().updates, [said], "{payload:x?}");
        }
        for (kind, payload, code) in [
            (0x00, &b"\x01u=1"[..], Code::H3_ID_ERROR),
            (0x00, b"\x02u=1", Code::H3_ID_ERROR),
            (0x01, b"\x00u=1", Code::H3_ID_ERROR),
            (0x00, b"", Code::H3_FRAME_ERROR),
            (0x00, b"\x40", Code::H3_FRAME_ERROR),
        ] {
            assert_eq!(on(&[&update(kind, payload)]).unwrap_err(), code, "{kind} {payload:x?}");
        }
        assert_eq!(of(Peer::Server, &[&update(0, b"\x04u=1")]).unwrap_err(), Code::H3_FRAME_UNEXPECTED);
    }

    #[test]
    fn origins_of_a_server_are_noted_and_those_of_a_client_are_passed_over() {
        // attacks.md H35; RFC 9412 §2.1.
        let entry = [&[0, 14], &b"https://a.test"[..]].concat();
        let frame = |payload: &[u8]| [&[0, 0x04, 0, 0x0c, payload.len() as u8], payload].concat();
        let origin = crate::Origin::new("a.test", 443).unwrap();
        assert!(of(Peer::Server, &[&frame(&entry)]).unwrap().origins.contains(&origin));
        assert!(on(&[&frame(&entry)]).unwrap().origins.is_empty());
        assert!(of(Peer::Server, &[&frame(&[])]).unwrap().origins.is_empty());
        assert_eq!(of(Peer::Server, &[&frame(&entry[..9])]).unwrap_err(), Code::H3_FRAME_ERROR);
        assert_eq!(of(Peer::Server, &[&[0, 0x0c, 0]]).unwrap_err(), Code::H3_MISSING_SETTINGS);
        // One that is larger than what is kept: what follows counts.
        let large = [&[0, 0x04, 0, 0x0c, 0x80, 0, 0x40, 0x10], &entry.repeat(1025)[..16_400]].concat();
        let both = [&large, &frame(&entry)[3..]].concat();
        assert!(of(Peer::Server, &[&large]).unwrap().origins.is_empty());
        assert!(of(Peer::Server, &[&both]).unwrap().origins.contains(&origin));
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.3
    //= type=test
    //# Endpoints MUST NOT consider these streams to have any meaning upon receipt.
    #[test]
    fn what_is_not_known_is_passed_over_without_being_kept() {
        // attacks.md H17.
        let mut uni = Uni::default();
        let (mut seen, mut tables) = (Seen::default(), tables());
        uni.take(&[0, 0x04, 0, 0x21, 0xc0, 0, 0, 1, 0, 0, 0, 0], &mut seen, &mut tables).unwrap();
        for _ in 0..1000 {
            uni.take(&[7; 1000], &mut seen, &mut tables).unwrap();
        }
        assert!(uni.buffer.capacity() < 100_000);
    }
}
