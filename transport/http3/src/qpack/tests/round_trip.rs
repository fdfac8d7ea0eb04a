//! Sections are read as they were written, in whatever order streams deliver.

use super::*;

//= https://www.rfc-editor.org/rfc/rfc9204#section-2.2.2.1
//= type=test
//# it MUST emit a Section Acknowledgment instruction (Section 4.4.1).
//= https://www.rfc-editor.org/rfc/rfc9204#section-2.2
//= type=test
//# The decoder MUST emit field lines in the order their representations appear in the encoded field
//# section.
#[test]
fn the_examples_of_the_rfc_are_followed() {
    // RFC 9204 §B.2 to §B.5.
    let mut decoder = Decoder::new(limits(220, 2));
    let host = field(":authority", "www.example.com");
    let path = field(":path", "/sample/path");
    let block = Bytes::from_static(&[0x03, 0x81, 0x10, 0x11]);
    assert_eq!(decoder.section(4, block.clone(), LIMIT), Ok(Section::Blocked));
    let insertions = b"\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path";
    assert_eq!(decoder.receive(insertions), Ok(vec![4]));
    assert_eq!(decoder.capacity(), 220);
    assert_eq!(decoder.section(4, block, LIMIT), Ok(Section::Fields(vec![host.clone(), path])));
    assert_eq!(decoder.pending(), [0x02, 0x84], "an increment, told at once, and an acknowledgement");
    decoder.on_sent(2);
    assert_eq!(decoder.receive(b"\x4acustom-key\x0ccustom-value"), Ok(vec![]));
    assert_eq!(decoder.pending(), [0x01]);
    assert_eq!(decoder.receive(&[0x02]), Ok(vec![]));
    let expected = vec![host, field(":path", "/"), field("custom-key", "custom-value")];
    let block = Bytes::from_static(&[0x05, 0x00, 0x80, 0xc1, 0x81]);
    assert_eq!(decoder.section(8, block, LIMIT), Ok(Section::Fields(expected)));
    decoder.cancel(8);
    assert!(decoder.pending().ends_with(&[0x48]));
    assert_eq!(decoder.receive(b"\x81\x0dcustom-value2"), Ok(vec![]));
    let block = Bytes::from_static(&[0x06, 0x00, 0x80]);
    let expected = vec![field("custom-key", "custom-value2")];
    assert_eq!(decoder.section(12, block, LIMIT), Ok(Section::Fields(expected)));
    // §B.5: the first entry had to give way.
    let block = Bytes::from_static(&[0x06, 0x00, 0x84]);
    assert_eq!(decoder.section(16, block, LIMIT), Err(SectionError::Malformed));
}

#[test]
fn what_is_said_again_takes_a_byte_once_it_was_acknowledged_and_a_blocking_encoder_waits_for_nothing() {
    let fields = [field(":authority", "www.example.com"), field("user-agent", "a browser of some length")];
    for (blocking, expected) in [(Blocking::Never, [36, 36, 4]), (Blocking::Permitted, [4, 4, 4])] {
        let mut encoder = Encoder::new(Policy { blocking, ..Policy::default() });
        let mut decoder = Decoder::new(limits(4096, 16));
        encoder.set_peer_limits(limits(4096, 16));
        let sizes = [0, 4].map(|stream| section(&mut encoder, stream, &fields).len());
        instruct(&mut encoder, &mut decoder);
        acknowledge(&mut decoder, &mut encoder);
        let last = section(&mut encoder, 8, &fields);
        assert_eq!([sizes[0], sizes[1], last.len()], expected, "{blocking:?}");
        assert_eq!(decoder.section(8, last, LIMIT), Ok(Section::Fields(fields.to_vec())));
    }
}

//= https://www.rfc-editor.org/rfc/rfc9204#section-4.5.4
//= type=test
//# When the 'N' bit is set, the encoded field line MUST always be encoded with a literal
//# representation.
#[test]
fn secrets_stay_out_of_the_table() {
    // RFC 9204 §7.1.3.
    let mut encoder = Encoder::new(Policy::default());
    encoder.set_peer_limits(limits(4096, 0));
    encoder.on_sent(encoder.pending().len());
    let secrets = [field("authorization", "Basic of something"), field("cookie", "id=1234")];
    let own = Line { name: "x-token", value: b"of something", is_sensitive: true };
    let mut block = BytesMut::new();
    encoder.section(0, lines(&secrets).chain([own]), &mut block);
    assert_eq!(encoder.pending(), [0u8; 0]);
    let mut decoder = Decoder::new(Limits::default());
    assert!(
        matches!(decoder.section(0, block.freeze(), LIMIT), Ok(Section::Fields(fields)) if fields.len() == 3)
    );
    let cookie = field("cookie", "id=1234567890123456789012345");
    section(&mut encoder, 4, &[cookie]);
    assert!(!encoder.pending().is_empty(), "one that nobody guesses");
}

//= https://www.rfc-editor.org/rfc/rfc9204#section-2.1.1
//= type=test
//# the encoder MUST NOT insert that entry into the dynamic table (including duplicates of existing
//# entries).
//= https://www.rfc-editor.org/rfc/rfc9204#section-3.2.2
//= type=test
//# The encoder MUST NOT cause a dynamic table entry to be evicted unless that entry is evictable;
#[test]
fn what_is_in_use_outlives_its_place_in_the_table() {
    // RFC 9204 §2.1.1.1: an entry that comes again and again is inserted again before it has to give way.
    let mut encoder = Encoder::new(Policy::default());
    let mut decoder = Decoder::new(limits(512, 0));
    encoder.set_peer_limits(limits(512, 0));
    let constant = field("user-agent", "a browser");
    let mut sizes = Vec::new();
    for number in 0..200u64 {
        let fields = [constant.clone(), field(&format!("x-{number}"), "a value that comes once")];
        let block = section(&mut encoder, number * 4, &fields);
        instruct(&mut encoder, &mut decoder);
        sizes.push(block.len());
        assert_eq!(decoder.section(number * 4, block, LIMIT), Ok(Section::Fields(fields.to_vec())));
        acknowledge(&mut decoder, &mut encoder);
    }
    // What is referred to stands in nobody's way, for its duplicate is further back.
    assert!(encoder.table.inserted() > 200, "{} insertions", encoder.table.inserted());
    // Prefix, a byte or two of the constant, and what comes once.
    assert!(sizes.iter().skip(1).all(|size| *size <= sizes[0] - 6), "{sizes:?}");
}

/// A step of a connection.
#[derive(Clone, Debug)]
enum Step {
    /// The encoder writes a section of these fields, by their numbers, on one of a few streams.
    Write(u64, Vec<(u8, u8)>),
    /// The next bytes of the encoder stream arrive.
    Instruct(usize),
    /// The next bytes of the decoder stream arrive.
    Acknowledge(usize),
    /// The next section of a stream arrives.
    Deliver(u64),
    /// The decoder gives a stream up.
    Cancel(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let stream = || (0u64..12).prop_map(|stream| stream * 4);
    prop_oneof![
        4 => (stream(), proptest::collection::vec((0u8..12, 0u8..5), 0..8))
            .prop_map(|(stream, fields)| Step::Write(stream, fields)),
        3 => (0usize..80).prop_map(Step::Instruct),
        3 => (0usize..6).prop_map(Step::Acknowledge),
        4 => stream().prop_map(Step::Deliver),
        1 => stream().prop_map(Step::Cancel),
    ]
}

/// A field with one of a few names, some of them in the static table, and one of a few values.
fn numbered(name: u8, value: u8) -> Field {
    let names =
        ["accept", "cookie", ":path", "user-agent", "x-own", "content-type", "x-long-name-of-its-own"];
    let name = names[usize::from(name) % names.len()];
    field(name, &"value ".repeat(usize::from(value) * 4 + 4))
}

/// Both ends, and what is between them.
struct World {
    encoder: Encoder,
    decoder: Decoder,
    to_decoder: VecDeque<u8>,
    to_encoder: VecDeque<u8>,
    /// Sections under way, in order for each stream.
    sections: BTreeMap<u64, VecDeque<(Bytes, Vec<Field>)>>,
    cancelled: Vec<u64>,
    blocked: usize,
}

impl World {
    fn new(capacity: u64, streams: u64, blocking: Blocking) -> Self {
        let mut encoder = Encoder::new(Policy { max_capacity: capacity, blocking });
        let limits = limits(capacity, streams);
        encoder.set_peer_limits(limits);
        Self {
            encoder,
            decoder: Decoder::new(limits),
            to_decoder: VecDeque::new(),
            to_encoder: VecDeque::new(),
            sections: BTreeMap::new(),
            cancelled: Vec::new(),
            blocked: 0,
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Write(stream, _) | Step::Deliver(stream) | Step::Cancel(stream)
                if self.cancelled.contains(stream) => {}
            Step::Write(stream, fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, value)| numbered(*name, *value)).collect();
                let block = section(&mut self.encoder, *stream, &fields);
                self.sections.entry(*stream).or_default().push_back((block, fields));
            }
            Step::Instruct(bytes) => {
                let said = self.encoder.pending().to_vec();
                self.encoder.on_sent(said.len());
                self.to_decoder.extend(said);
                let piece: Vec<_> = self.to_decoder.drain(..(*bytes).min(self.to_decoder.len())).collect();
                for stream in self.decoder.receive(&piece).unwrap() {
                    self.deliver(stream);
                }
            }
            Step::Acknowledge(bytes) => {
                let said = self.decoder.pending().to_vec();
                self.decoder.on_sent(said.len());
                self.to_encoder.extend(said);
                let piece: Vec<_> = self.to_encoder.drain(..(*bytes).min(self.to_encoder.len())).collect();
                self.encoder.receive(&piece).unwrap();
            }
            Step::Deliver(stream) => self.deliver(*stream),
            Step::Cancel(stream) => {
                self.decoder.cancel(*stream);
                self.sections.remove(stream);
                self.cancelled.push(*stream);
            }
        }
    }

    fn deliver(&mut self, stream: u64) {
        let Some((block, fields)) = self.sections.get(&stream).and_then(|sections| sections.front()) else {
            return;
        };
        match self.decoder.section(stream, block.clone(), LIMIT).unwrap() {
            Section::Blocked => self.blocked += 1,
            Section::Fields(read) => {
                assert_eq!(read, *fields);
                self.sections.get_mut(&stream).unwrap().pop_front();
            }
        }
    }

    /// All that is under way arrives.
    fn settle(&mut self) {
        self.run(&Step::Instruct(usize::MAX));
        for stream in self.sections.keys().copied().collect::<Vec<_>>() {
            while self.sections.get(&stream).is_some_and(|sections| !sections.is_empty()) {
                let before = self.sections[&stream].len();
                self.deliver(stream);
                assert!(self.sections[&stream].len() < before, "all insertions are there");
            }
        }
        self.run(&Step::Acknowledge(usize::MAX));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    //= https://www.rfc-editor.org/rfc/rfc9204#section-2.1.2
    //= type=test
    //# An encoder MUST limit the number of streams that could become blocked to the value of
    //# SETTINGS_QPACK_BLOCKED_STREAMS at all times.
    //= https://www.rfc-editor.org/rfc/rfc9204#section-2.1
    //= type=test
    //# An encoder MUST emit field representations in the order they appear in the input field section.
    #[test]
    fn sections_are_read_as_they_were_written_in_whatever_order_streams_deliver(
        steps in proptest::collection::vec(step(), 1..200),
        capacity in prop_oneof![Just(0u64), 64u64..700, Just(4096)],
        streams in 0u64..4,
        permitted: bool,
    ) {
        let blocking = if permitted { Blocking::Permitted } else { Blocking::Never };
        let mut world = World::new(capacity, streams, blocking);
        for step in &steps {
            world.run(step);
            prop_assert!(world.encoder.references.least().is_none_or(|least| least >= world.encoder.table.oldest()));
        }
        world.settle();
        prop_assert!(permitted && streams > 0 || world.blocked == 0, "an encoder that blocks nobody did");
        let encoder = &world.encoder;
        prop_assert_eq!((encoder.references.least(), encoder.known), (None, encoder.table.inserted()));
        prop_assert_eq!(world.decoder.table.inserted(), encoder.table.inserted());
        prop_assert_eq!(world.decoder.table.size(), encoder.table.size());
        prop_assert!(world.decoder.blocked.is_empty());
    }

    //= https://www.rfc-editor.org/rfc/rfc9204#section-3.2.3
    //= type=test
    //# the encoder MUST NOT insert entries into the dynamic table and MUST NOT send any encoder
    //# instructions on the encoder stream.
    #[test]
    fn sections_without_a_table_are_read_as_they_were_written(
        fields in proptest::collection::vec(
            (prop_oneof![Just("accept-ranges".to_owned()), "[a-z][a-z0-9-]{0,20}"], "[ -~]{0,300}", any::<bool>()),
            0..20,
        ),
    ) {
        let line = |(name, value, is_sensitive): &'_ (String, String, bool)| (name.clone(), value.clone(), *is_sensitive);
        let said: Vec<_> = fields.iter().map(line).collect();
        let mut block = BytesMut::new();
        let lines = said.iter().map(|(name, value, is_sensitive)| Line {
            name,
            value: value.as_bytes(),
            is_sensitive: *is_sensitive,
        });
        let mut encoder = Encoder::new(Policy::default());
        encoder.section(0, lines, &mut block);
        prop_assert!(encoder.pending().is_empty());
        // RFC 9204 §4.5.1: the required insert count.
        prop_assert_eq!(block[0], 0);
        let expected: Vec<_> = said.iter().map(|(name, value, _)| field(name, value)).collect();
        prop_assert_eq!(read(block.freeze(), LIMIT).unwrap(), expected);
    }
}
