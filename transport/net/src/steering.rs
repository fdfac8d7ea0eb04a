//! Has the kernel hand each datagram for a shared address to the worker that it is for: a program of classic BPF that computes
//! what [`Steering`] says.

use hvq_transport::endpoint::steering::Steering;
use std::io;

/// The offset of the length of the destination connection ID in a long header (RFC 8999 §5.1).
const LENGTH_AT: u32 = 5;
/// The result for datagrams that are for no worker in particular: the kernel goes by their addresses.
const NONE: u32 = u32::MAX;

/// The kernel's way of sharing out the datagrams of an address among sockets. Sockets count in the order in which they
/// were bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// The rule of those who attach the program.
    pub(crate) rule: Steering,
    /// Workers of the other generation that were there before, and keep what is for their connections. With none, all is for
    /// those who attach the program.
    pub(crate) before: u16,
}

/// Has the kernel share out what comes to the address that `socket` shares with others.
///
/// # Errors
/// The system has no such thing, or does not permit it.
#[cfg(target_os = "linux")]
pub(crate) fn attach(socket: &impl std::os::fd::AsFd, shares: &Shares) -> io::Result<()> {
    linux::attach(socket, &program(shares))
}

/// Fails as unsupported: only Linux steers datagrams by their contents.
#[cfg(not(target_os = "linux"))]
pub(crate) fn attach<S>(_socket: &S, shares: &Shares) -> io::Result<()> {
    let _program = program(shares);
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux steers datagrams by their contents"))
}

/// An instruction of classic BPF: code, jumps if true and if false, operand.
type Instruction = (u16, u8, u8, u32);

/// Codes of classic BPF, as the kernel's `linux/bpf_common.h` puts them together.
mod code {
    pub(super) const LOAD_BYTE: u16 = 0x30;
    pub(super) const LOAD_WORD: u16 = 0x20;
    pub(super) const LOAD_WORD_AT_X: u16 = 0x40;
    pub(super) const COPY_TO_X: u16 = 0x07;
    pub(super) const JUMP: u16 = 0x05;
    pub(super) const JUMP_IF_GREATER: u16 = 0x25;
    pub(super) const JUMP_IF_AT_LEAST: u16 = 0x35;
    pub(super) const JUMP_IF_SET: u16 = 0x45;
    pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
    pub(super) const COPY_TO_A: u16 = 0x87;
    pub(super) const SET: u16 = 0x00;
    pub(super) const STORE: u16 = 0x02;
    pub(super) const LOAD_STORED: u16 = 0x60;
    pub(super) const AND: u16 = 0x54;
    pub(super) const ADD: u16 = 0x04;
    pub(super) const MULTIPLY: u16 = 0x24;
    pub(super) const SHIFT_RIGHT: u16 = 0x74;
    pub(super) const MODULO: u16 = 0x94;
    pub(super) const RETURN: u16 = 0x06;
    pub(super) const RETURN_RESULT: u16 = 0x16;
}

/// The program. A load from beyond the end of a datagram ends it with 0.
fn program(shares: &Shares) -> Vec<Instruction> {
    if shares.before == 0 { alone(&shares.rule) } else { beside(shares) }
}

/// For workers that have the address to themselves.
fn alone(rule: &Steering) -> Vec<Instruction> {
    let id_length = u32::try_from(rule.id_length()).unwrap_or(NONE);
    vec![
        (code::LOAD_BYTE, 0, 0, 0),
        (code::JUMP_IF_SET, 2, 0, 0x80),
        // A short header: the last four bytes of a connection ID of known length behind the first byte.
        (code::LOAD_WORD, 0, 0, id_length.saturating_sub(3)),
        (code::JUMP, 0, 0, 5),
        // A long header: those of one whose length it says, if that is 4 to 20.
        (code::LOAD_BYTE, 0, 0, LENGTH_AT),
        (code::JUMP_IF_AT_LEAST, 0, 8, 4),
        (code::JUMP_IF_GREATER, 7, 0, 20),
        (code::COPY_TO_X, 0, 0, 0),
        (code::LOAD_WORD_AT_X, 0, 0, LENGTH_AT + 1 - 4),
        (code::MULTIPLY, 0, 0, rule.multiplier()),
        (code::SHIFT_RIGHT, 0, 0, 16),
        (code::SHIFT_RIGHT, 0, 0, 1),
        (code::MODULO, 0, 0, rule.workers().get().into()),
        (code::RETURN_RESULT, 0, 0, 0),
        (code::RETURN, 0, 0, NONE),
    ]
}

/// The second version of QUIC, whose packets have other types (RFC 9369 §3.2).
const VERSION_2: u32 = 0x6b33_43cf;

/// For workers that take over: handshakes begin with them, and Handshake and short packets go by the generation of their
/// connection ID. Further Initials of handshakes that are under way elsewhere are of no use here: those go on without them.
fn beside(shares: &Shares) -> Vec<Instruction> {
    let Shares { rule, before } = shares;
    let id_length = u32::try_from(rule.id_length()).unwrap_or(NONE);
    let tail: [Instruction; 6] = [
        (code::STORE, 0, 0, 0),
        (code::LOAD_BYTE, 0, 0, LENGTH_AT),
        (code::JUMP_IF_AT_LEAST, 0, 21, 4),
        (code::JUMP_IF_GREATER, 20, 0, 20),
        (code::COPY_TO_X, 0, 0, 0),
        (code::LOAD_WORD_AT_X, 0, 0, LENGTH_AT + 1 - 4),
    ];
    let mut program = vec![
        // What is stored: 1 for what begins something, and 0 for what belongs to somebody.
        (code::LOAD_BYTE, 0, 0, 0),
        (code::JUMP_IF_SET, 4, 0, 0x80),
        (code::SET, 0, 0, 0),
        (code::STORE, 0, 0, 0),
        (code::LOAD_WORD, 0, 0, id_length.saturating_sub(3)),
        (code::JUMP, 0, 0, 17),
        // The type of a long header in X, as its version writes Handshake.
        (code::AND, 0, 0, 0x30),
        (code::COPY_TO_X, 0, 0, 0),
        (code::LOAD_WORD, 0, 0, 1),
        (code::JUMP_IF_EQUAL, 2, 0, VERSION_2),
        (code::COPY_TO_A, 0, 0, 0),
        (code::JUMP_IF_EQUAL, 2, 4, 0x20),
        (code::COPY_TO_A, 0, 0, 0),
        (code::JUMP_IF_EQUAL, 0, 2, 0x30),
        (code::SET, 0, 0, 0),
        (code::JUMP, 0, 0, 1),
        (code::SET, 0, 0, 1),
    ];
    program.extend(tail);
    // The tail of the connection ID is in A.
    program.extend([
        (code::MULTIPLY, 0, 0, rule.multiplier()),
        (code::SHIFT_RIGHT, 0, 0, 16),
        (code::COPY_TO_X, 0, 0, 0),
        (code::LOAD_STORED, 0, 0, 0),
        (code::JUMP_IF_EQUAL, 6, 0, 1),
        (code::COPY_TO_A, 0, 0, 0),
        (code::AND, 0, 0, 1),
        (code::JUMP_IF_EQUAL, 3, 0, rule.generation().bit()),
        (code::COPY_TO_A, 0, 0, 0),
        (code::SHIFT_RIGHT, 0, 0, 1),
        (code::JUMP, 0, 0, 5),
        (code::COPY_TO_A, 0, 0, 0),
        (code::SHIFT_RIGHT, 0, 0, 1),
        (code::MODULO, 0, 0, rule.workers().get().into()),
        (code::ADD, 0, 0, u32::from(*before)),
        (code::RETURN_RESULT, 0, 0, 0),
        (code::MODULO, 0, 0, u32::from(*before)),
        (code::RETURN_RESULT, 0, 0, 0),
        (code::RETURN, 0, 0, NONE),
    ]);
    program
}

#[cfg(target_os = "linux")]
mod linux {
    //! The socket option, for which no library has a name.

    use super::Instruction;
    use nix::{setsockopt_impl, sockopt_impl};
    use std::io;
    use std::os::fd::AsFd;

    sockopt_impl!(
        /// The filter that chooses the socket for a datagram in a group that shares an address
        /// (`SO_ATTACH_REUSEPORT_CBPF`).
        AttachReuseportCbpf,
        SetOnly,
        libc::SOL_SOCKET,
        libc::SO_ATTACH_REUSEPORT_CBPF,
        libc::sock_fprog
    );

    pub(super) fn attach(socket: &impl AsFd, program: &[Instruction]) -> io::Result<()> {
        let mut filters: Vec<libc::sock_filter> =
            program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
        let len = u16::try_from(filters.len()).map_err(io::Error::other)?;
        // The kernel copies the program before the call returns: `filters` outlives it.
        let program = libc::sock_fprog { len, filter: filters.as_mut_ptr() };
        let set = nix::sys::socket::setsockopt(socket, AttachReuseportCbpf, &program);
        drop(filters);
        Ok(set?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_transport::endpoint::ids::{ConnectionIds, RandomIds};
    use hvq_transport::endpoint::steering::{Generation, SteeredIds};
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use std::num::NonZeroU16;
    use std::sync::Arc;

    /// Does what the kernel does with a program.
    fn run(program: &[Instruction], datagram: &[u8]) -> u32 {
        let load = |at: u32, count: usize| -> Option<u32> {
            let bytes = datagram.get(at as usize..)?.get(..count)?;
            Some(bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)))
        };
        let (mut a, mut x, mut at, mut stored) = (0_u32, 0_u32, 0_usize, None);
        loop {
            let (code, yes, no, k) = program[at];
            at += 1;
            let mut jump = |condition: bool| at += usize::from(if condition { yes } else { no });
            match code {
                code::LOAD_BYTE => match load(k, 1) {
                    Some(byte) => a = byte,
                    None => return 0,
                },
                code::LOAD_WORD | code::LOAD_WORD_AT_X => {
                    match load(if code == code::LOAD_WORD { k } else { x + k }, 4) {
                        Some(word) => a = word,
                        None => return 0,
                    }
                }
                code::COPY_TO_X => x = a,
                code::JUMP => at += k as usize,
                code::JUMP_IF_GREATER => jump(a > k),
                code::JUMP_IF_AT_LEAST => jump(a >= k),
                code::JUMP_IF_SET => jump(a & k != 0),
                code::JUMP_IF_EQUAL => jump(a == k),
                code::COPY_TO_A => a = x,
                code::SET => a = k,
                code::STORE => stored = Some(a),
                // The kernel refuses programs that load what was never stored.
                code::LOAD_STORED => a = stored.expect("something was stored"),
                code::AND => a &= k,
                code::ADD => a = a.wrapping_add(k),
                code::MULTIPLY => a = a.wrapping_mul(k),
                code::SHIFT_RIGHT => a >>= k,
                code::MODULO => a %= k,
                code::RETURN => return k,
                code::RETURN_RESULT => return a,
                other => panic!("{other:#x} is not in use"),
            }
        }
    }

    #[test]
    fn the_program_and_the_rule_agree_on_every_datagram() {
        for (workers, id_length) in [(2, 8), (3, 4), (8, 17), (64, 20)] {
            let steering = Steering::new(NonZeroU16::new(workers).expect("not zero"), id_length, 0x1234_5679);
            let program = program(&Shares { rule: steering, before: 0 });
            let mut state = 1_u32;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            };
            for round in 0..20_000_usize {
                let mut datagram: Vec<u8> = (0..round % 60).map(|_| next()).collect();
                if let Some(length) = datagram.get_mut(5).filter(|_| round % 3 != 0) {
                    *length %= 24;
                }
                match steering.worker_of(&datagram) {
                    Some(worker) => assert_eq!(run(&program, &datagram) as usize, worker, "{datagram:02x?}"),
                    // Whoever gets it keeps it.
                    None => assert!([0, NONE].contains(&run(&program, &datagram)), "{datagram:02x?}"),
                }
            }
        }
    }

    #[test]
    fn those_who_take_over_get_what_begins_and_what_is_theirs_and_no_more() {
        let rule = Steering::new(NonZeroU16::new(3).expect("not zero"), 8, 0x1234_5679);
        let (first, second) = (rule, rule.of_generation(Generation::Odd));
        let program = program(&Shares { rule: second, before: 2 });
        let old = Steering::new(NonZeroU16::new(2).expect("not zero"), 8, 0x1234_5679);
        let long = |first: u8, version: u32, id: &[u8]| {
            [&[first], &version.to_be_bytes()[..], &[id.len() as u8], id, &[0; 30]].concat()
        };
        let mut rng = StdRng::seed_from_u64(4);
        for worker in [0, 1].repeat(40) {
            let ids = |steering, worker| SteeredIds {
                ids: Arc::new(RandomIds(8)),
                steering,
                worker,
                beside: false,
            };
            let theirs = ids(old.of_generation(first.generation()), worker).generate(&mut rng);
            let ours = ids(second, worker + 1).generate(&mut rng);
            for (id, index) in [(theirs, worker), (ours, 2 + worker + 1)] {
                let short = [&[0x40], id.as_slice(), &[1; 30]].concat();
                let goes = |datagram: &[u8]| run(&program, datagram) as usize;
                assert_eq!(goes(&short), index);
                // Handshake packets of both versions.
                assert_eq!(goes(&long(0xe0, 1, id.as_slice())), index);
                assert_eq!(goes(&long(0xf0, VERSION_2, id.as_slice())), index);
                // Initials and 0-RTT are for those who take over, wherever they point.
                for (first, version) in
                    [(0xc0, 1), (0xd0, 1), (0xd0, VERSION_2), (0xe0, VERSION_2), (0xc0, 0x1a2a_3a4a)]
                {
                    assert!((2..5).contains(&goes(&long(first, version, id.as_slice()))), "{first:x}");
                }
            }
        }
        for none in [vec![0xc0, 0, 0, 0, 1, 3, 1, 2, 3, 4, 5], vec![0xc0, 0, 0, 0, 1, 21], vec![0x40, 1]] {
            assert!([0, NONE].contains(&run(&program, &none)), "{none:02x?}");
        }
    }
}
