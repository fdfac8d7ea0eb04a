//! A client and a server in one thread with nothing between them, driven through Rust and through C in the same way.

pub mod c;
mod rust;

pub use c::C;
pub use rust::{Paths, Rust};

/// Bytes that the sender has ready at a time.
pub const BLOCK: usize = 64 << 10;
/// Nanoseconds that an exchange takes.
pub const STEP: u64 = 50_000;
/// The size of all datagrams.
pub const DATAGRAM: u16 = 1400;

/// The end that sends; the other one receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sender {
    Client,
    Server,
}

/// A connected pair.
pub trait Pair {
    /// Opens a stream of the sender.
    fn open(&mut self, sender: Sender) -> u64;
    /// The sender writes as much of `left` bytes as the stream takes; what is left then.
    fn write(&mut self, sender: Sender, stream: u64, left: u64) -> u64;
    /// Both ends say what they have to say; how many datagrams that took.
    fn exchange(&mut self) -> u64;
    /// Its peer reads what arrived.
    fn read(&mut self, sender: Sender, stream: u64) -> u64;
}

/// Sends `bytes`, and returns how many datagrams were exchanged.
pub fn transfer(pair: &mut dyn Pair, sender: Sender, bytes: u64) -> u64 {
    let stream = pair.open(sender);
    let (mut left, mut received, mut datagrams, mut idle) = (bytes, 0, 0, 0);
    while received < bytes {
        if left > 0 {
            left = pair.write(sender, stream, left);
        }
        datagrams += pair.exchange();
        let some = pair.read(sender, stream);
        received += some;
        idle = if some == 0 { idle + 1 } else { 0 };
        assert!(idle < 10_000, "stuck after {received} of {bytes} bytes");
    }
    for _ in 0..4 {
        datagrams += pair.exchange();
        pair.read(sender, stream);
    }
    datagrams
}

/// A certificate for localhost and its key, in PEM.
pub fn identity() -> (String, String) {
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate can be made");
    (made.cert.pem(), made.signing_key.serialize_pem())
}
