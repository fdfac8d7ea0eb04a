//! An HTTP/3 server: what it answers ([`Site`]) and how connections are served ([`serving`]).

mod pages;
pub(crate) mod serving;

pub(crate) use hvq_gateway::content::{Answer, Body, Files};
pub(crate) use pages::{Pages, chosen, object_path};

use http::Request;
use hvq_gateway::content;

/// The content that a server has to offer.
#[derive(Debug)]
pub(crate) enum Site {
    /// The files of a folder.
    Files(Files),
    /// The objects of page descriptions, made up to size.
    Pages(Pages),
}

impl Site {
    /// The answer to `request`; only reads files.
    pub(crate) fn answer(&self, request: &Request<()>) -> Answer {
        content::answer(request, |path| match self {
            Self::Files(files) => files.answer(path, request),
            Self::Pages(pages) => pages.answer(path, request),
        })
    }
}

#[cfg(test)]
mod tests;
