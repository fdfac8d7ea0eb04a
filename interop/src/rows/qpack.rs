//! QPACK without a network: field sections exchanged with ls-qpack, both ways, in different orders (RFC 9204).

use crate::report::{Exchange, locked_version};
use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use hvq_h3::qpack::{Blocking, Decoder, Encoder, Field, Limits, Line, Policy, Section};
use ls_qpack::StreamId;
use ls_qpack::decoder::DecoderOutput;
use std::collections::VecDeque;

/// A small table, so that entries give way.
const LIMITS: Limits = Limits { max_table_capacity: 512, max_blocked_streams: 100 };
const CAPACITY: u32 = 512;
const BLOCKED: u32 = 100;
/// The largest field section, in bytes.
const LARGEST: u64 = 1 << 20;
/// Connections in each direction.
const CONNECTIONS: u64 = 300;
/// Field sections on each.
const SECTIONS: u64 = 40;
/// The least share of sections that have to use the dynamic table: one in so many.
const USES: u64 = 4;
/// Names of fields that come again.
const NAMES: [&str; 6] =
    ["user-agent", "accept", "content-type", "cache-control", "x-own", "x-another-of-its-own"];

type Fields = Vec<(&'static str, String)>;

/// Numbers that look like chance, the same in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % bound
    }

    /// A message with fields that come again, and with such that do not.
    fn fields(&mut self) -> Fields {
        let mut fields = vec![(":path", "/a".to_owned())];
        for _ in 0..self.below(8) {
            let name = NAMES.into_iter().cycle().nth(self.below(6) as usize).unwrap_or("x");
            let value = format!("{};", self.below(12)).repeat(1 + self.below(12) as usize);
            fields.push((name, value));
        }
        fields
    }
}

/// Exchanges all sections; fails unless each is read as it was written.
pub fn run() -> Result<Exchange> {
    let mut uses = [0; 2];
    for seed in 0..CONNECTIONS {
        uses[0] +=
            from_ls_qpack(&mut Numbers(seed)).with_context(|| format!("from ls-qpack, seed {seed}"))?;
        let blocking = if seed % 2 == 0 { Blocking::Never } else { Blocking::Permitted };
        uses[1] +=
            to_ls_qpack(&mut Numbers(seed), blocking).with_context(|| format!("to ls-qpack, seed {seed}"))?;
    }
    let sections = CONNECTIONS * SECTIONS;
    let note = format!("{} and {} of {sections} sections use the table", uses[0], uses[1]);
    ensure!(uses.iter().all(|uses| *uses >= sections / USES), "{note}");
    Ok(Exchange { peer: format!("ls-qpack {}", locked_version("ls-qpack")), note, ..Exchange::default() })
}

/// ls-qpack writes, and its insertions come late half of the time. Returns the number of sections that refer to the table.
fn from_ls_qpack(numbers: &mut Numbers) -> Result<u64> {
    let mut encoder = ls_qpack::encoder::Encoder::new();
    let instruction =
        encoder.configure(CAPACITY, CAPACITY, BLOCKED).ok().context("ls-qpack takes no capacity")?;
    let mut decoder = Decoder::new(LIMITS);
    decoder.receive(instruction.data())?;
    let (mut instructions, mut blocked, mut uses) = (Vec::new(), Vec::new(), 0);
    for stream in (0..SECTIONS).map(|number| 4 * number) {
        let fields = numbers.fields();
        let lines = fields.iter().map(|(name, value)| (*name, value.as_str()));
        let (block, more) =
            encoder.encode_all(StreamId::new(stream), lines).ok().context("ls-qpack writes nothing")?.take();
        instructions.extend_from_slice(&more);
        uses += u64::from(block.first().is_some_and(|required| *required != 0));
        let block = Bytes::from(block);
        match decoder.section(stream, block.clone(), LARGEST)? {
            Section::Fields(read) => {
                ensure!(is_same(&read, &fields), "stream {stream}: {read:?} of {fields:?}")
            }
            Section::Blocked => blocked.push((stream, block, fields)),
        }
        if numbers.below(2) == 0 {
            continue;
        }
        let unblocked = decoder.receive(&std::mem::take(&mut instructions))?;
        ensure!(unblocked.len() == blocked.len(), "{} of {} are unblocked", unblocked.len(), blocked.len());
        for (stream, block, fields) in blocked.drain(..) {
            match decoder.section(stream, block, LARGEST)? {
                Section::Fields(read) if is_same(&read, &fields) => {}
                other => bail!("stream {stream}: {other:?} of {fields:?}"),
            }
        }
    }
    Ok(uses)
}

/// ls-qpack reads. It has no decoder stream: a decoder of hvq beside it says what there is to be said.
fn to_ls_qpack(numbers: &mut Numbers, blocking: Blocking) -> Result<u64> {
    let mut encoder = Encoder::new(Policy { blocking, ..Policy::default() });
    encoder.set_peer_limits(LIMITS);
    let mut theirs = ls_qpack::decoder::Decoder::new(CAPACITY, BLOCKED);
    let mut speaker = Decoder::new(LIMITS);
    let (mut blocked, mut uses) = (VecDeque::new(), 0);
    for stream in (0..SECTIONS).map(|number| 4 * number) {
        let fields = numbers.fields();
        let mut block = BytesMut::new();
        let lines = fields.iter().map(|(name, value)| Line::new(name, value.as_bytes()));
        encoder.section(stream, lines, &mut block);
        uses += u64::from(block.first().is_some_and(|required| *required != 0));
        match theirs.decode(StreamId::new(stream), &block[..]).ok().context("ls-qpack reads nothing")? {
            DecoderOutput::BlockedStream => {
                ensure!(blocking == Blocking::Permitted, "stream {stream} is blocked");
                blocked.push_back((stream, fields, block.clone().freeze()));
            }
            DecoderOutput::Done(read) => ensure!(is_read(&read, &fields), "stream {stream}: {read:?}"),
        }
        let _fields_or_blocked = speaker.section(stream, block.freeze(), LARGEST)?;
        if numbers.below(2) == 0 {
            continue;
        }
        let said = encoder.pending().to_vec();
        encoder.on_sent(said.len());
        theirs.feed(&said).ok().context("ls-qpack follows no instruction")?;
        speaker.receive(&said)?;
        for (stream, fields, block) in blocked.drain(..) {
            let read = theirs.unblocked(StreamId::new(stream));
            let read = read.and_then(Result::ok).and_then(DecoderOutput::take).context("it stays blocked")?;
            ensure!(is_read(&read, &fields), "stream {stream}: {read:?}");
            ensure!(
                matches!(speaker.section(stream, block, LARGEST)?, Section::Fields(_)),
                "it stays blocked"
            );
        }
        encoder.receive(speaker.pending())?;
        speaker.on_sent(speaker.pending().len());
    }
    Ok(uses)
}

fn is_same(read: &[Field], fields: &Fields) -> bool {
    let read = read.iter().map(|field| (&field.name[..], &field.value[..]));
    read.eq(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
}

fn is_read(read: &[ls_qpack::Header], fields: &Fields) -> bool {
    let read = read.iter().map(|header| (header.name(), header.value()));
    read.eq(fields.iter().map(|(name, value)| (*name, value.as_str())))
}

#[cfg(test)]
mod tests {
    #[test]
    fn sections_are_read_as_they_were_written() {
        let exchange = super::run().unwrap();
        assert!(exchange.peer.starts_with("ls-qpack"), "{exchange:?}");
    }
}
