/// Makes a table of frames into code: the types on the wire, `Frame`, its reader and writer, its properties, and one enum
/// of frames for each owner.
///
/// A row names everything that a frame needs, in this order. A row that lacks one of them does not compile; nor does an
/// owner that leaves a frame of its own unhandled, for it gets an enum of just those.
///
/// - `types`: each type of the registry, its name in logs (qlog, `hvq decode`, statistics), and the packets that may
///   hold it (RFC 9000 §12.4);
/// - `code`: the type that is written, if there are several;
/// - `class`: what a packet with the frame asks of its receiver;
/// - `read`: the frame, made from its type and what follows the type;
/// - `write`: the fields behind the type;
/// - `recovery`: what its owner does when the packet with it is lost.
///
/// This compiles:
///
/// ```
/// # mod table {
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wire/frame/rows/example.rs"));
/// frames! {
///     /// Streams.
///     owner Streams(StreamFrame) {
///         /// MAX_DATA.
///         MaxData(limit: u64) {
///             types: [MAX_DATA = 0x10 as "max_data" in OneRtt],
///             class: Eliciting,
///             read: |_, reader| Frame::MaxData(reader.varint()?),
///             write: |sink| sink.varint(*limit),
///             recovery: Repeated,
///         }
///     }
/// }
/// fn receive(frame: Frame) -> u64 {
///     match frame.into_owned() {
///         Owned::Streams(StreamFrame::MaxData(limit)) => limit,
///     }
/// }
/// # }
/// # fn main() {}
/// ```
///
/// No frame without a reader:
///
/// ```compile_fail
/// # mod table {
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wire/frame/rows/example.rs"));
/// # frames! {
/// #     /// Streams.
/// #     owner Streams(StreamFrame) {
/// #         /// MAX_DATA.
///         MaxData(limit: u64) {
///             types: [MAX_DATA = 0x10 as "max_data" in OneRtt],
///             class: Eliciting,
///             write: |sink| sink.varint(*limit),
///             recovery: Repeated,
///         }
/// #     }
/// # }
/// # fn receive(frame: Frame) -> u64 {
/// #     match frame.into_owned() {
/// #         Owned::Streams(StreamFrame::MaxData(limit)) => limit,
/// #     }
/// # }
/// # }
/// # fn main() {}
/// ```
///
/// Without a writer:
///
/// ```compile_fail
/// # mod table {
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wire/frame/rows/example.rs"));
/// # frames! {
/// #     /// Streams.
/// #     owner Streams(StreamFrame) {
/// #         /// MAX_DATA.
///         MaxData(limit: u64) {
///             types: [MAX_DATA = 0x10 as "max_data" in OneRtt],
///             class: Eliciting,
///             read: |_, reader| Frame::MaxData(reader.varint()?),
///             recovery: Repeated,
///         }
/// #     }
/// # }
/// # fn receive(frame: Frame) -> u64 {
/// #     match frame.into_owned() {
/// #         Owned::Streams(StreamFrame::MaxData(limit)) => limit,
/// #     }
/// # }
/// # }
/// # fn main() {}
/// ```
///
/// Without packets that may hold it, and a name in logs:
///
/// ```compile_fail
/// # mod table {
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wire/frame/rows/example.rs"));
/// # frames! {
/// #     /// Streams.
/// #     owner Streams(StreamFrame) {
/// #         /// MAX_DATA.
///         MaxData(limit: u64) {
///             types: [MAX_DATA = 0x10],
///             class: Eliciting,
///             read: |_, reader| Frame::MaxData(reader.varint()?),
///             write: |sink| sink.varint(*limit),
///             recovery: Repeated,
///         }
/// #     }
/// # }
/// # fn receive(frame: Frame) -> u64 {
/// #     match frame.into_owned() {
/// #         Owned::Streams(StreamFrame::MaxData(limit)) => limit,
/// #     }
/// # }
/// # }
/// # fn main() {}
/// ```
///
/// Without a class:
///
/// ```compile_fail
/// # mod table {
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wire/frame/rows/example.rs"));
/// # frames! {
/// #     /// Streams.
/// #     owner Streams(StreamFrame) {
/// #         /// MAX_DATA.
///         MaxData(limit: u64) {
///             types: [MAX_DATA = 0x10 as "max_data" in OneRtt],
///             read: |_, reader| Frame::MaxData(reader.varint()?),
///             write: |sink| sink.varint(*limit),
///             recovery: Repeated,
///         }
/// #     }
/// # }
/// # fn receive(frame: Frame) -> u64 {
/// #     match frame.into_owned() {
/// #         Owned::Streams(StreamFrame::MaxData(limit)) => limit,
/// #     }
/// # }
/// # }
/// # fn main() {}
/// ```
///
/// Without recovery:
///
/// ```compile_fail
/// # mod table {
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wire/frame/rows/example.rs"));
/// # frames! {
/// #     /// Streams.
/// #     owner Streams(StreamFrame) {
/// #         /// MAX_DATA.
///         MaxData(limit: u64) {
///             types: [MAX_DATA = 0x10 as "max_data" in OneRtt],
///             class: Eliciting,
///             read: |_, reader| Frame::MaxData(reader.varint()?),
///             write: |sink| sink.varint(*limit),
///         }
/// #     }
/// # }
/// # fn receive(frame: Frame) -> u64 {
/// #     match frame.into_owned() {
/// #         Owned::Streams(StreamFrame::MaxData(limit)) => limit,
/// #     }
/// # }
/// # }
/// # fn main() {}
/// ```
///
/// Nor does a frame that its owner does not handle:
///
/// ```compile_fail,E0004
/// # mod table {
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wire/frame/rows/example.rs"));
/// # frames! {
/// #     /// Streams.
/// #     owner Streams(StreamFrame) {
/// #         /// MAX_DATA.
/// #         MaxData(limit: u64) {
/// #             types: [MAX_DATA = 0x10 as "max_data" in OneRtt],
/// #             class: Eliciting,
/// #             read: |_, reader| Frame::MaxData(reader.varint()?),
/// #             write: |sink| sink.varint(*limit),
/// #             recovery: Repeated,
/// #         }
///         /// DATA_BLOCKED.
///         DataBlocked(limit: u64) {
///             types: [DATA_BLOCKED = 0x14 as "data_blocked" in OneRtt],
///             class: Eliciting,
///             read: |_, reader| Frame::DataBlocked(reader.varint()?),
///             write: |sink| sink.varint(*limit),
///             recovery: Repeated,
///         }
/// #     }
/// # }
/// fn receive(frame: Frame) -> u64 {
///     match frame.into_owned() {
///         Owned::Streams(StreamFrame::MaxData(limit)) => limit,
///     }
/// }
/// # }
/// # fn main() {}
/// ```
///
/// Nor one that stands outside of every owner:
///
/// ```compile_fail
/// # mod table {
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wire/frame/rows/example.rs"));
/// frames! {
///     /// Streams.
///         /// MAX_DATA.
///         MaxData(limit: u64) {
///             types: [MAX_DATA = 0x10 as "max_data" in OneRtt],
///             class: Eliciting,
///             read: |_, reader| Frame::MaxData(reader.varint()?),
///             write: |sink| sink.varint(*limit),
///             recovery: Repeated,
///         }
/// }
/// # fn receive(frame: Frame) -> u64 {
/// #     match frame.into_owned() {
/// #         _ => 0,
/// #     }
/// # }
/// # }
/// # fn main() {}
/// ```
macro_rules! frames {
    ($(
        $(#[$owner_doc:meta])*
        owner $owner:ident($owned:ident) {
            $(
                $(#[$doc:meta])*
                $variant:ident $(($binder:ident: $inner:ty))? $(struct {
                    $($(#[$field_doc:meta])* $field:ident: $field_type:ty),+ $(,)?
                })? {
                    types: [$(
                        $type:ident = $first:literal $(..= $type_last:ident = $last:literal)?
                            as $name:literal in $packets:ident
                    ),+ $(,)?],
                    $(code: $code:expr,)?
                    class: $class:ident,
                    read: |$read_type:pat_param, $reader:ident| $read:expr,
                    write: |$sink:ident| $write:expr,
                    recovery: $recovery:ident,
                }
            )+
        }
    )+) => {
        /// A frame. Decoding has checked everything that the frame alone can tell; limits and states are the owners' to
        /// check.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Frame {
            $($(
                $(#[$doc])*
                $variant $(($inner))? $({ $($(#[$field_doc])* $field: $field_type),+ })?,
            )+)+
        }

        /// A frame, sorted by the part of a connection that owns its meaning.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub(crate) enum Owned {
            $($(#[$owner_doc])* $owner($owned),)+
        }

        $(
            $(#[$owner_doc])*
            #[derive(Clone, PartialEq, Eq, Debug)]
            pub(crate) enum $owned {
                $(
                    $(#[$doc])*
                    $variant $(($inner))? $({ $($(#[$field_doc])* $field: $field_type),+ })?,
                )+
            }
        )+

        impl Frame {
            /// Sorts the frame by its owner.
            #[inline]
            pub(crate) fn into_owned(self) -> Owned {
                match self {
                    $($(
                        Self::$variant $(($binder))? $({ $($field),+ })? => {
                            Owned::$owner($owned::$variant $(($binder))? $({ $($field),+ })?)
                        }
                    )+)+
                }
            }

            /// The type on the wire (RFC 9000 §19). For STREAM and DATAGRAM, whose type holds flags, it is the one that
            /// [`Frame::put`] writes.
            #[expect(unused_variables, reason = "most frames have one type whatever their fields")]
            pub fn frame_type(&self) -> u64 {
                match self {
                    $($(
                        Self::$variant $(($binder))? $({ $($field),+ })? => {
                            frames!(@code [$($type)+] $($code)?)
                        }
                    )+)+
                }
            }

            /// The demands of the frame on who receives it.
            pub(crate) fn class(&self) -> Class {
                match self {
                    $($(Self::$variant { .. } => Class::$class,)+)+
                }
            }

            /// The use of the frame when the packet with it is lost.
            pub(crate) fn recovery(&self) -> Recovery {
                match self {
                    $($(Self::$variant { .. } => Recovery::$recovery,)+)+
                }
            }

            /// Reads what follows a `frame_type`.
            #[expect(unused_variables, reason = "some frames are their type alone")]
            pub(super) fn read(frame_type: u64, reader: &mut Reader) -> Result<Self, DecodeError> {
                Ok(match frame_type {
                    $($(
                        $(types::$type $(..= types::$type_last)?)|+ => {
                            let ($read_type, $reader) = (frame_type, reader);
                            $read
                        }
                    )+)+
                    //= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
                    //# An endpoint MUST treat the receipt of a frame of unknown type as a connection error of type
                    //# FRAME_ENCODING_ERROR.
                    _ => return Err(DecodeError::encoding("unknown frame type")),
                })
            }

            /// Writes what follows the type.
            #[expect(unused_variables, reason = "some frames are their type alone")]
            pub(super) fn write_fields(&self, sink: &mut impl Sink) {
                match self {
                    $($(
                        Self::$variant $(($binder))? $({ $($field),+ })? => {
                            let $sink = sink;
                            $write
                        }
                    )+)+
                }
            }
        }

        /// Frame types: the registry (RFC 9000 §19, RFC 9221 §4, RFC 10069 §4), and what follows from a type alone.
        pub mod types {
            use super::Packets;
            use std::collections::BTreeSet;

            $($($(
                #[doc = concat!("Type of the frame `", $name, "`.")]
                pub const $type: u64 = $first;
                $(
                    #[doc = concat!("Last type of the frame `", $name, "`.")]
                    pub const $type_last: u64 = $last;
                )?
            )+)+)+

            /// Returns the name of a frame type for logs: the RFC's, in lower case; `unknown` if it has none here.
            ///
            /// Never inlined, so that a name has one address: who counts by names need not compare their letters.
            #[inline(never)]
            pub fn name(frame_type: u64) -> &'static str {
                match frame_type {
                    $($($($type $(..= $type_last)? => $name,)+)+)+
                    _ => "unknown",
                }
            }

            /// Returns every name that [`name`] gives to a known type, in alphabetical order.
            pub fn names() -> BTreeSet<&'static str> {
                BTreeSet::from([$($($($name),+),+),+])
            }

            /// Returns the packets that may hold a frame of a type, `None` if the type is unknown.
            #[inline]
            pub(crate) fn packets(frame_type: u64) -> Option<Packets> {
                match frame_type {
                    $($($($type $(..= $type_last)? => Some(Packets::$packets),)+)+)+
                    _ => None,
                }
            }
        }
    };
    (@code [$only:ident]) => { types::$only };
    (@code [$($several:ident)+] $code:expr) => { $code };
}
