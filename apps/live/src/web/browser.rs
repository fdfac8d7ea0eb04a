//! Chromium behind a pipe: the DevTools protocol as `--remote-debugging-pipe` speaks it, messages of JSON that end with a
//! zero byte. Named pipes reach into the namespace where the browser runs.

use crate::error::{LiveError, cannot};
use crate::shell::Running;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The interval at which it is checked that the browser still runs.
const STEP: Duration = Duration::from_millis(100);

/// Options that keep a browser from calling home, upgrading `http`, asking, or sleeping in the background.
const QUIET: &str = "--headless --no-sandbox --disable-gpu --no-first-run --disable-extensions --disable-sync \
    --disable-background-networking --disable-component-update --disable-default-apps --disable-dev-shm-usage \
    --disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,OptimizationHints,MediaRouter,Translate \
    --no-default-browser-check --mute-audio --metrics-recording-only --no-pings --password-store=basic \
    --disable-background-timer-throttling --disable-renderer-backgrounding";

/// The options by which a browser gets to pages.
#[derive(Clone, Debug)]
pub struct BrowserOptions {
    /// The address of all names below `.test`; no other name is known.
    pub address: String,
    /// The hash of the key that servers are believed by.
    pub key: String,
    /// Other options.
    pub more: Vec<String>,
}

/// The pipes to a browser that is to be started.
#[derive(Debug)]
pub struct Pipes {
    folder: PathBuf,
}

/// A browser.
#[derive(Debug)]
pub struct Browser {
    orders: File,
    messages: Receiver<Value>,
    answers: PathBuf,
    next: u64,
}

/// The times of a page load, by the browser's own clock, in milliseconds since its navigation began.
#[derive(Clone, Debug, Deserialize)]
pub struct Timing {
    /// The end of the load event.
    pub loaded: f64,
    /// The document was parsed.
    pub parsed: f64,
    /// Objects that were loaded, with the document.
    pub objects: usize,
    /// The protocols that they came by.
    pub protocols: Vec<String>,
}

/// The script that asks a page for its times when its load event has ended.
const QUESTION: &str = "new Promise((tell) => setTimeout(() => {
  const [page] = performance.getEntriesByType('navigation');
  const entries = [page, ...performance.getEntriesByType('resource')];
  tell(JSON.stringify({loaded: page.loadEventEnd, parsed: page.domContentLoadedEventEnd, objects: entries.length,
    protocols: [...new Set(entries.map((entry) => entry.nextHopProtocol))].sort()}));
}, 0))";

impl Pipes {
    /// Pipes in `folder`.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn new(folder: &Path) -> Result<Self, LiveError> {
        for name in ["orders", "answers"] {
            let made = mkfifo(&folder.join(name), Mode::S_IRUSR | Mode::S_IWUSR);
            made.map_err(|error| cannot("make a named pipe")(error.into()))?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// The command line that becomes the browser.
    pub fn command(&self, chromium: &Path, options: &BrowserOptions) -> String {
        let BrowserOptions { address, key, more } = options;
        let folder = self.folder.display();
        format!(
            "exec '{}' {QUIET} --remote-debugging-pipe --user-data-dir='{folder}/profile' \
             --ignore-certificate-errors-spki-list={key} --host-resolver-rules='MAP *.test {address}, \
             MAP * ~NOTFOUND, EXCLUDE 127.0.0.1' {} about:blank 3< '{folder}/orders' 4> '{folder}/answers'",
            chromium.display(),
            more.join(" ")
        )
    }

    /// Begins to speak to the browser, which may start later.
    ///
    /// # Errors
    /// The system fails.
    pub fn open(&self) -> Result<Browser, LiveError> {
        let answers = self.folder.join("answers");
        // For both directions, so that it does not wait for a browser that may never come.
        let orders = OpenOptions::new().read(true).write(true).open(self.folder.join("orders"));
        let orders = orders.map_err(cannot("open a pipe"))?;
        let (tell, messages) = channel();
        let path = answers.clone();
        let reading = thread::Builder::new().name("hvq-live-browser".to_owned()).spawn(move || {
            let Ok(file) = File::open(path) else { return };
            for message in BufReader::new(file).split(0).map_while(Result::ok) {
                let Ok(value) = serde_json::from_slice(&message) else { continue };
                if tell.send(value).is_err() {
                    return;
                }
            }
        });
        reading.map_err(cannot("start a thread"))?;
        Ok(Browser { orders, messages, answers, next: 0 })
    }
}

impl Browser {
    /// Loads `url` in a window of its own, with empty caches; it must be there within `limit`.
    ///
    /// # Errors
    /// The browser ends or does not do it in time.
    pub fn load(&mut self, url: &str, shell: &mut Running, limit: Duration) -> Result<Timing, LiveError> {
        let until = Instant::now() + limit;
        let mut ask = |method: &str, session: Option<&str>, parameters: Value| {
            self.ask((method, session, parameters), shell, until)
        };
        let context = ask("Target.createBrowserContext", None, json!({}))?;
        let context = &context["browserContextId"];
        let target =
            ask("Target.createTarget", None, json!({ "url": "about:blank", "browserContextId": context }))?;
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = ask("Target.attachToTarget", None, target)?;
        let session = session["sessionId"].as_str().unwrap_or_default();
        ask("Page.enable", Some(session), json!({}))?;
        let begun = ask("Page.navigate", Some(session), json!({ "url": url }))?;
        if let Some(error) = begun["errorText"].as_str() {
            return Err(LiveError::Program { program: "chromium", says: format!("{url}: {error}") });
        }
        self.wait_for("Page.loadEventFired", shell, until)?;
        let question = json!({ "expression": QUESTION, "awaitPromise": true });
        let told = self.ask(("Runtime.evaluate", Some(session), question), shell, until)?;
        let told = told["result"]["value"].as_str().unwrap_or_default().to_owned();
        serde_json::from_str(&told).map_err(|_| LiveError::Program {
            program: "chromium",
            says: format!("{url}: it tells {told:?}"),
        })
    }

    /// Asks it to end.
    pub fn close(&mut self) {
        // A browser that is gone need not be told.
        let _sent = self.send("Browser.close", None, &json!({}));
    }

    fn send(&mut self, method: &str, session: Option<&str>, parameters: &Value) -> io::Result<u64> {
        self.next += 1;
        let mut order = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = session {
            order["sessionId"] = session.into();
        }
        let mut line = order.to_string().into_bytes();
        line.push(0);
        self.orders.write_all(&line)?;
        Ok(self.next)
    }

    fn ask(
        &mut self,
        (method, session, parameters): (&str, Option<&str>, Value),
        shell: &mut Running,
        until: Instant,
    ) -> Result<Value, LiveError> {
        let id = self.send(method, session, &parameters).map_err(cannot("write to the browser"))?;
        let mut answer = self.next_message(shell, until, |message| message["id"] == id)?;
        match answer["error"]["message"].as_str() {
            Some(error) => {
                Err(LiveError::Program { program: "chromium", says: format!("{method}: {error}") })
            }
            None => Ok(answer["result"].take()),
        }
    }

    fn wait_for(&mut self, event: &str, shell: &mut Running, until: Instant) -> Result<(), LiveError> {
        self.next_message(shell, until, |message| message["method"] == event).map(|_| ())
    }

    /// The next message that `is` wanted; others are passed over.
    fn next_message(
        &mut self,
        shell: &mut Running,
        until: Instant,
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value, LiveError> {
        loop {
            match self.messages.recv_timeout(STEP) {
                Ok(message) if is(&message) => return Ok(message),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(shell.failed("the browser ended")),
                Err(RecvTimeoutError::Timeout) if !shell.runs() => {
                    return Err(shell.failed("the browser did not start"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() > until {
                return Err(shell.failed("the page was not loaded in time"));
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Lets the reading thread go if no browser ever came. It is not there for long, and nobody waits for it.
        let _opened = OpenOptions::new().write(true).custom_flags(nix::libc::O_NONBLOCK).open(&self.answers);
    }
}
