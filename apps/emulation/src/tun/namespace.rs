//! Network namespaces without a name.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace. It exists as long as this value, a process or a device in it does.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// A new namespace with nothing in it but a loopback device that is down. Needs the capability to administer the
    /// system ([`crate::tun::privilege`]).
    ///
    /// # Errors
    /// The system does not permit it, or has no more.
    pub fn new() -> io::Result<Self> {
        // A namespace belongs to a thread; this one keeps its own.
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok(Self { file: File::open("/proc/thread-self/ns/net")? })
        })?
    }

    /// The namespace of this thread.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn current() -> io::Result<Self> {
        Ok(Self { file: File::open("/proc/thread-self/ns/net")? })
    }

    /// Another handle on `namespace`.
    ///
    /// # Errors
    /// There are no more file descriptors.
    pub fn clone_of(namespace: &Self) -> io::Result<Self> {
        Ok(Self { file: namespace.file.try_clone()? })
    }

    /// Does `work` in the namespace, on a thread of its own: sockets and devices that it opens, and processes that it
    /// starts, stay there.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_a_thread(|| self.enter().map(|()| work()))?
    }

    /// Moves this thread into the namespace, for good.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn enter(&self) -> io::Result<()> {
        setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("hvq-namespace".to_owned()).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| io::Error::other("the work in a namespace panicked"))
    })
}
