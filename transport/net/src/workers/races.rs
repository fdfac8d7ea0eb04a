//! Workers that leave each other datagrams at once, in every order that threads can take (loom). A wake-up that is lost
//! leaves the reader waiting for ever, which loom reports as a deadlock.

use bytes::BytesMut;
use hvq_transport::connection::{Datagram, Ecn};
use loom::future::block_on;
use loom::sync::Arc;
use loom::thread;
use std::future::poll_fn;
use std::task::Poll;

/// The lock of the mailbox.
mod sync {
    pub(super) use loom::sync::{Mutex, MutexGuard};
    pub(super) use std::sync::PoisonError;
}

#[expect(clippy::duplicate_mod, reason = "here its atomics and locks are those of the model")]
#[path = "mailbox.rs"]
mod mailbox;

use mailbox::{Mailbox, SHOWN, Sort};

fn datagram() -> Datagram {
    let address = ([127, 0, 0, 1], 443).into();
    Datagram { local: address, remote: address, ecn: Ecn::NotEct, bytes: BytesMut::from(&[0x40; 60][..]) }
}

/// Reads as the driver does, whenever it is woken, until `wanted` datagrams and strays are there.
fn read(mailbox: &Mailbox, wanted: usize) -> (usize, usize) {
    let (mut datagrams, mut strays) = (Vec::new(), Vec::new());
    block_on(poll_fn(|context| {
        mailbox.take(context.waker(), &mut datagrams, &mut strays);
        if datagrams.len() + strays.len() < wanted { Poll::Pending } else { Poll::Ready(()) }
    }));
    (datagrams.len(), strays.len())
}

#[test]
fn a_reader_is_woken_for_whatever_two_workers_leave() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::default());
        let writers = [Sort::Its, Sort::Stray].map(|sort| {
            let mailbox = mailbox.clone();
            thread::spawn(move || mailbox.put(datagram(), sort))
        });
        assert_eq!(read(&mailbox, 2), (1, 1));
        for writer in writers {
            writer.join().expect("it does not panic");
        }
    });
}

#[test]
fn a_mailbox_that_closes_meanwhile_keeps_nothing() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::default());
        let writer = mailbox.clone();
        let writer = thread::spawn(move || writer.put(datagram(), Sort::Its));
        mailbox.close();
        writer.join().expect("it does not panic");
        let (mut datagrams, mut strays) = (Vec::new(), Vec::new());
        mailbox.take(std::task::Waker::noop(), &mut datagrams, &mut strays);
        assert!(datagrams.is_empty() && strays.is_empty() && SHOWN > 0);
    });
}
