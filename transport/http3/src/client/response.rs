//! The response to a request, as its client receives it (RFC 9114 §4.1).

use crate::protocol::response::response;
use crate::{Code, ReceiveError, Receiving};
use http::Response;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

/// Interim responses that are passed over.
const MOST_INTERIM: usize = 16;

impl Receiving {
    /// The final response; up to 16 interim ones are passed over. To be called by a client, once.
    ///
    /// # Errors
    /// See [`ReceiveError`]. More interim responses end the request with H3_EXCESSIVE_LOAD.
    pub async fn response(&mut self) -> Result<Response<()>, ReceiveError> {
        for _ in 0..=MOST_INTERIM {
            let head = self.any_response().await?;
            if !head.status().is_informational() {
                return Ok(head);
            }
        }
        self.stop(Code::H3_EXCESSIVE_LOAD);
        Err(ReceiveError::Malformed(Code::H3_EXCESSIVE_LOAD, "interim responses without end"))
    }

    /// The next response, interim (1xx) or final; behind an interim one another follows.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub async fn any_response(&mut self) -> Result<Response<()>, ReceiveError> {
        let head = poll_fn(|context| self.poll_response(context)).await;
        if let Err(ReceiveError::Malformed(code, _)) = head {
            self.stop(code);
        }
        head
    }

    fn poll_response(&mut self, context: &mut Context<'_>) -> Poll<Result<Response<()>, ReceiveError>> {
        let section = ready!(self.poll_section(context))?;
        let head = response(section)?;
        if head.status().is_informational() {
            self.expect_head();
            return Poll::Ready(Ok(head));
        }
        self.answered();
        self.expect_content(head.status(), head.headers())?;
        Poll::Ready(Ok(head))
    }
}
