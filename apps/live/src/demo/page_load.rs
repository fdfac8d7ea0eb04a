//! A page load over HTTP/3: requests when the page's dependencies allow, until its load event.

use super::stage::{Client, HOST};
use crate::objects::object_path;
use http::header::COOKIE;
use http::{HeaderValue, Request};
use hvq::Priority;
use hvq_h3::client::Client as Http;
use hvq_lab::pages::{Loader, ObjectId, Page, Request as PageRequest};
use hvq_program::failure::{Exit, Failure};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Bytes of headers that a request has anyway, about.
const BARE_REQUEST: u64 = 100;
/// Bytes that a cookie adds to a request at most.
const MOST_COOKIE: u64 = 2_048;

/// An event of an object.
enum Report {
    FirstByte(ObjectId),
    End(ObjectId),
    Failed(Failure),
}

/// Loads `page` until its load event, telling `loader` everything. Time counts from `start`, the handshake included.
pub(super) async fn run(
    client: &Client,
    loader: &mut Loader,
    page: &Page,
    start: Instant,
) -> Result<(), Failure> {
    // What is requested first waits for the handshake, as in a browser; the load has begun.
    let mut waiting = loader.ready(start.elapsed());
    let connection = client.connect(start).await?;
    let connection = Arc::new(Http::new(connection, hvq_h3::Settings::default()).await?);
    tokio::spawn(connection.watch());
    let (reports, mut reported) = mpsc::unbounded_channel();
    while !loader.is_loaded() {
        waiting.extend(loader.ready(start.elapsed()));
        for request in waiting.drain(..) {
            tokio::spawn(fetch(
                connection.clone(),
                object_request(page, &request)?,
                request,
                reports.clone(),
            ));
        }
        let next = loader.next_deadline().map(|deadline| deadline.saturating_sub(start.elapsed()));
        tokio::select! {
            report = reported.recv() => match report {
                Some(Report::FirstByte(object)) => loader.on_first_byte(object, start.elapsed())?,
                Some(Report::End(object)) => loader.on_end(object, start.elapsed())?,
                Some(Report::Failed(failure)) => return Err(failure),
                None => return Err(Failure::new(Exit::Runtime, "nobody reports any more")),
            },
            () = tokio::time::sleep(next.unwrap_or(Duration::MAX)), if next.is_some() => {}
        }
    }
    Ok(())
}

/// The request for an object: as urgent and about as long as it was recorded.
fn object_request(page: &Page, request: &PageRequest) -> Result<Request<()>, Failure> {
    let uri = format!("https://{HOST}{}", object_path(&page.id, request.object));
    let mut http = Request::get(uri).body(())?;
    let priority = Priority { urgency: request.urgency, incremental: request.incremental };
    if let Some(value) = hvq_h3::priority::header(priority) {
        http.headers_mut().insert(hvq_h3::priority::PRIORITY, value);
    }
    let cookie = request.request_size.saturating_sub(BARE_REQUEST).min(MOST_COOKIE);
    if cookie > 0 {
        // Of digits and letters that header compression shortens little, as it does with real cookies.
        let text: String = ('A'..='Z').cycle().take(cookie as usize).collect();
        http.headers_mut().insert(COOKIE, HeaderValue::from_str(&text)?);
    }
    Ok(http)
}

/// Fetches one object and reports what happens. Reports that nobody wants any more are no loss.
async fn fetch(
    connection: Arc<Http>,
    http: Request<()>,
    request: PageRequest,
    reports: mpsc::UnboundedSender<Report>,
) {
    let last = match exchange(&connection, http, request, &reports).await {
        Ok(()) => Report::End(request.object),
        Err(failure) => Report::Failed(failure.within(format!("object {}", request.object))),
    };
    let _unwanted = reports.send(last);
}

async fn exchange(
    connection: &Http,
    http: Request<()>,
    request: PageRequest,
    reports: &mpsc::UnboundedSender<Report>,
) -> Result<(), Failure> {
    let (_sent, mut receiving) = connection.whole(&http, Default::default()).await?;
    let response = receiving.response().await?;
    if !response.status().is_success() {
        return Err(Failure::new(Exit::Runtime, format!("the server answered {}", response.status())));
    }
    let _unwanted = reports.send(Report::FirstByte(request.object));
    let mut bytes = 0;
    while let Some(part) = receiving.data().await? {
        bytes += part.len() as u64;
    }
    if bytes != request.size {
        let text = format!("{bytes} bytes arrived of {}", request.size);
        return Err(Failure::new(Exit::Runtime, text));
    }
    Ok(())
}
