//! Readers of texts that people write: options, descriptions of channels, traces, pages and experiments.

use http::{HeaderMap, HeaderValue};
use hvq::{ChannelOptions, LocalAddress, PathOptions};
use hvq_emulation::{Bandwidth, ChannelSpec, DelayTrace, Probability, RateTrace};
use hvq_h3::priority;
use hvq_lab::experiment::definition::Definition;
use hvq_lab::pages::Page;
use hvq_scheduler::Policy;

/// A function that reads a text and returns true if it understood it.
type Reader = fn(&str) -> bool;

const READERS: [Reader; 11] = [
    |text| text.parse::<ChannelSpec>().is_ok(),
    |text| text.parse::<PathOptions>().is_ok(),
    |text| text.parse::<ChannelOptions>().is_ok(),
    |text| text.parse::<LocalAddress>().is_ok(),
    |text| text.parse::<Policy>().is_ok(),
    |text| text.parse::<Bandwidth>().is_ok(),
    |text| text.parse::<Probability>().is_ok(),
    |text| DelayTrace::parse("text", text).is_ok(),
    |text| RateTrace::parse("text", text).is_ok(),
    |text| Page::parse("text", text).is_ok(),
    |text| Definition::parse("text", text).is_ok(),
];

/// The first byte says what the rest is.
pub(crate) fn run(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    match READERS.get(usize::from(first) % (READERS.len() + 1)) {
        Some(read) => {
            read(&String::from_utf8_lossy(rest));
        }
        None => header(rest),
    }
}

/// A `priority` header: what was understood is written and read as the same.
fn header(bytes: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(bytes) else { return };
    let headers = HeaderMap::from_iter([(priority::PRIORITY, value)]);
    let read = priority::parse(&headers);
    let again = HeaderMap::from_iter(priority::header(read).map(|value| (priority::PRIORITY, value)));
    assert_eq!(priority::parse(&again), read);
}
