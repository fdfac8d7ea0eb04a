//! Bytes of request header fields for recorded pages, with and without dynamic tables: `cargo run -p hvq-h3 --example field_bytes`.
//!
//! A page is loaded over one connection whose round trip takes 50 ms, at the times of its capture. Recordings have no
//! fields: each request gets those of a browser, with a path from its number and a cookie that fills it up to its recorded size.

use anyhow::{Context, Result};
use bytes::BytesMut;
use hvq_h3::qpack::{Blocking, Decoder, Encoder, Limits, Line, Policy};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// The round trip that an acknowledgement takes, in milliseconds.
const ROUND_TRIP: f64 = 50.0;
const LIMITS: Limits = Limits { max_table_capacity: 4096, max_blocked_streams: 16 };

type Fields = Vec<(&'static str, String)>;

fn main() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/pages");
    let mut sums = [0.0; 3];
    let mut count = 0.0;
    println!("| page | requests | without a table | never blocked | may block |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>();
    let mut files = entries?;
    files.sort();
    for file in files {
        let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with('p') {
            continue;
        }
        let page: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let requests = requests(&page).context("not a page")?;
        let each = requests.len() as f64;
        let never = Policy::default();
        let permitted = Policy { blocking: Blocking::Permitted, ..never };
        let none = Policy { max_capacity: 0, ..never };
        let bytes = [none, never, permitted].map(|policy| load(&requests, policy) as f64 / each);
        println!("| {name} | {each} | {:.0} | {:.0} | {:.0} |", bytes[0], bytes[1], bytes[2]);
        count += each;
        sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes * each);
    }
    let [none, never, permitted] = sums.map(|sum| sum / count);
    println!("| all | {count} | {none:.0} | {never:.0} | {permitted:.0} |");
    Ok(())
}

/// The requests of `page` in the order of their times.
fn requests(page: &Value) -> Option<Vec<(f64, Fields)>> {
    let mut cookies = BTreeMap::new();
    let mut requests = Vec::new();
    for object in page["objects"].as_array()? {
        let domain = object["domain"].as_u64()?;
        let mut fields = browser(object, domain)?;
        let length: usize = fields.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        let rest = (object["req_bytes"].as_u64().unwrap_or(0) as usize).saturating_sub(length + 10);
        let cookie =
            cookies.entry(domain).or_insert_with(|| format!("session={}", noise(domain, rest.min(1500))));
        if rest > 0 {
            fields.push(("cookie", cookie.clone()));
        }
        requests.push((object["start_ms"].as_f64()?, fields));
    }
    requests.sort_by(|one, other| one.0.total_cmp(&other.0));
    Some(requests)
}

/// The fields that a browser sends with every request.
fn browser(object: &Value, domain: u64) -> Option<Fields> {
    let hash = object["url_hash"].as_str()?;
    let kind = object["type"].as_str()?;
    let (accept, destination) = match kind {
        "document" => (
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
            "document",
        ),
        "image" => ("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", "image"),
        "stylesheet" => ("text/css,*/*;q=0.1", "style"),
        "script" => ("*/*", "script"),
        _ => ("*/*", "empty"),
    };
    let urgency = match object["priority"].as_str()? {
        "VeryHigh" => "u=0",
        "High" => "u=1",
        "Medium" => "u=2",
        "Low" => "u=3",
        _ => "u=4",
    };
    let agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
    Some(vec![
        (":method", object["method"].as_str()?.to_owned()),
        (":scheme", "https".to_owned()),
        (":authority", format!("host-{domain}.example.com")),
        (":path", format!("/assets/{kind}/{hash}/{}", &hash[..6])),
        ("user-agent", agent.to_owned()),
        ("accept", accept.to_owned()),
        ("sec-fetch-dest", destination.to_owned()),
        ("sec-fetch-mode", if kind == "document" { "navigate" } else { "no-cors" }.to_owned()),
        ("sec-fetch-site", "same-site".to_owned()),
        ("accept-encoding", "gzip, deflate, br, zstd".to_owned()),
        ("accept-language", "en-US,en;q=0.9".to_owned()),
        ("referer", "https://host-0.example.com/".to_owned()),
        ("priority", urgency.to_owned()),
    ])
}

/// `length` characters that no code makes much shorter.
fn noise(seed: u64, length: usize) -> String {
    let digit = |index: u64| (seed * 977 + index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..length as u64)
        .filter_map(|index| letters.get(digit(index) as usize))
        .map(|byte| char::from(*byte))
        .collect()
}

/// Bytes of the sections and of the encoder stream.
fn load(requests: &[(f64, Fields)], policy: Policy) -> usize {
    let (mut encoder, mut decoder) = (Encoder::new(policy), Decoder::new(LIMITS));
    encoder.set_peer_limits(LIMITS);
    let mut under_way: VecDeque<(f64, Vec<u8>)> = VecDeque::new();
    let mut bytes = 0;
    for (stream, (now, fields)) in (0..).step_by(4).zip(requests) {
        while let Some((_, said)) = under_way.front().filter(|(sent, _)| *sent + ROUND_TRIP <= *now) {
            encoder.receive(said).expect("what a decoder says");
            under_way.pop_front();
        }
        let mut section = BytesMut::new();
        encoder.section(
            stream,
            fields.iter().map(|(name, value)| Line::new(name, value.as_bytes())),
            &mut section,
        );
        bytes += section.len() + encoder.pending().len();
        decoder.receive(encoder.pending()).expect("instructions that can be followed");
        encoder.on_sent(encoder.pending().len());
        decoder.section(stream, section.freeze(), 1 << 20).expect("a section");
        under_way.push_back((*now, decoder.pending().to_vec()));
        decoder.on_sent(decoder.pending().len());
    }
    bytes
}
