//! The runner's 22 test cases: what each side is told, what the network does, which files there are, what is looked for.

use crate::check::{self, Evidence};
use crate::network::condition::{AddressChange, Chance, Condition, Trouble};
use anyhow::Result;
use std::time::Duration;

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// A test case.
#[derive(Debug)]
pub(crate) struct Case {
    /// The runner's name for it.
    pub(crate) name: &'static str,
    /// The runner's abbreviation.
    pub(crate) letter: &'static str,
    /// `TESTCASE` of the client and of the server.
    pub(crate) testcase: [&'static str; 2],
    /// The network.
    pub(crate) condition: Condition,
    /// Sizes of the files, in bytes.
    pub(crate) files: &'static [usize],
    /// The special arrangement of its two ends.
    pub(crate) arrangement: Arrangement,
    /// The time that it may take.
    pub(crate) limit: Duration,
    /// The check of its evidence.
    pub(crate) check: fn(&Evidence) -> Result<()>,
}

/// The special arrangement of the two ends of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrangement {
    /// Nothing.
    Usual,
    /// The files have names of 250 letters.
    LongNames,
    /// The server's certificate comes with eight others and holds many names.
    LongChain,
    /// Both ends have IPv6 addresses.
    Ipv6,
    /// The server has a second address, which it prefers.
    TwoAddresses,
}

/// The values that most cases have.
const USUAL: Case = Case {
    name: "",
    letter: "",
    testcase: ["transfer"; 2],
    condition: Condition::usual(Trouble::None),
    files: &[],
    arrangement: Arrangement::Usual,
    limit: Duration::from_secs(60),
    check: check::transfer,
};

/// Returns the values that most cases with `name` have.
const fn case(name: &'static str, letter: &'static str) -> Case {
    Case { name, letter, testcase: [name; 2], ..USUAL }
}

const EXTREME: Chance = Chance { percent: 30, burst: 3 };
const MODERATE: Chance = Chance { percent: 2, burst: 3 };
const MULTICONNECT: [&str; 2] = ["multiconnect"; 2];
const TRANSFER: [&str; 2] = ["transfer"; 2];

const fn rebinding(change: AddressChange) -> Condition {
    let (first, every) = (Duration::from_secs(1), Duration::from_secs(5));
    Condition::usual(Trouble::Rebinding { first, every, change })
}

const fn multiconnect(name: &'static str, letter: &'static str, trouble: Trouble) -> Case {
    Case {
        testcase: MULTICONNECT,
        files: &[KB; 50],
        limit: Duration::from_secs(300),
        condition: Condition::usual(trouble),
        check: check::handshakes,
        ..case(name, letter)
    }
}

/// All cases, in the runner's order.
pub(crate) static CASES: [Case; 22] = [
    Case { files: &[KB], check: check::handshake, ..case("handshake", "H") },
    Case { files: &[2 * MB, 3 * MB, 5 * MB], ..case("transfer", "DC") },
    Case {
        testcase: ["handshake"; 2],
        files: &[KB],
        condition: Condition { delay: Duration::from_millis(750), ..Condition::usual(Trouble::None) },
        check: check::long_round_trip,
        ..case("longrtt", "LR")
    },
    Case { files: &[3 * MB], check: check::chacha20, ..case("chacha20", "C20") },
    Case { testcase: TRANSFER, files: &[32; 1999], check: check::multiplexing, ..case("multiplexing", "M") },
    Case { files: &[10 * KB], check: check::retry, ..case("retry", "S") },
    Case { files: &[5 * KB, 10 * KB], check: check::resumption, ..case("resumption", "R") },
    Case {
        files: &[32; 40],
        arrangement: Arrangement::LongNames,
        check: check::zero_rtt,
        ..case("zerortt", "Z")
    },
    Case { files: &[5 * KB, 10 * KB, 500 * KB], ..case("http3", "3") },
    Case {
        testcase: TRANSFER,
        files: &[10 * MB],
        condition: Condition::usual(Trouble::Blackout {
            begins: Duration::from_secs(5),
            lasts: Duration::from_secs(2),
        }),
        ..case("blackhole", "B")
    },
    Case {
        testcase: ["keyupdate", "transfer"],
        files: &[3 * MB],
        check: check::key_update,
        ..case("keyupdate", "U")
    },
    Case { files: &[100 * KB], check: check::ecn, ..case("ecn", "E") },
    Case {
        testcase: TRANSFER,
        files: &[5 * KB],
        condition: Condition::usual(Trouble::Drops(&[2, 3, 4, 5, 6, 7])),
        arrangement: Arrangement::LongChain,
        check: check::amplification,
        ..case("amplificationlimit", "A")
    },
    multiconnect("handshakeloss", "L1", Trouble::Loss(EXTREME)),
    Case {
        testcase: TRANSFER,
        files: &[2 * MB],
        condition: Condition::usual(Trouble::Loss(MODERATE)),
        ..case("transferloss", "L2")
    },
    multiconnect("handshakecorruption", "C1", Trouble::Corruption(EXTREME)),
    Case {
        testcase: TRANSFER,
        files: &[2 * MB],
        condition: Condition::usual(Trouble::Corruption(MODERATE)),
        ..case("transfercorruption", "C2")
    },
    Case {
        testcase: TRANSFER,
        files: &[5 * KB, 10 * KB],
        arrangement: Arrangement::Ipv6,
        check: check::ipv6,
        ..case("ipv6", "6")
    },
    Case { files: &[KB], check: check::version_2, ..case("v2", "V2") },
    Case {
        testcase: TRANSFER,
        files: &[10 * MB],
        condition: rebinding(AddressChange::Port),
        check: check::port_rebinding,
        ..case("rebind-port", "BP")
    },
    Case {
        testcase: TRANSFER,
        files: &[10 * MB],
        condition: rebinding(AddressChange::Address),
        check: check::address_rebinding,
        ..case("rebind-addr", "BA")
    },
    Case {
        testcase: ["transfer", "connectionmigration"],
        files: &[2 * MB],
        arrangement: Arrangement::TwoAddresses,
        check: check::migration,
        ..case("connectionmigration", "CM")
    },
];
