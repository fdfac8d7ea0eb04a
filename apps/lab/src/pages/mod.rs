//! Page descriptions and a page loader, sans-IO.
//!
//! A [`Page`] says which objects a real page consists of, how large each is and what it waits for; it holds no
//! content. A [`Loader`] walks through it as a browser would: it says what to request when, is told when bytes
//! arrive, and knows the page load time. It reads no clock: time is a [`Duration`](std::time::Duration) since an epoch
//! of the caller's. The origin of the descriptions is told in `data/pages/README.md`.

pub mod builtin;
mod error;
mod fields;
mod loader;
mod page;
mod parse;
mod place;
mod spread;

pub use error::{LoadError, PageError};
pub use loader::{Loader, Request, THINK_SCALE, Timing};
pub use page::{Event, Object, ObjectId, ObjectKind, Page, Priority, Recorded, SERVER_WAIT_LIMIT, Trigger};
