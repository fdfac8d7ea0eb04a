//! One log: a JSON text sequence (RFC 7464), the header first.

use crate::dialect::{Dialect, Name};
use crate::event::Translator;
use crate::record::Record;
use crate::{QlogOptions, event};
use hvq_transport::connection::Role;
use hvq_transport::time::Instant;
use hvq_transport::trace::Subject;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The byte that begins every record (RFC 7464 §2.2).
const RECORD_SEPARATOR: u8 = 0x1e;
/// Files of one connection at most, if it is seen several times in one folder.
const MOST_NAMESAKES: usize = 100;

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct LogFile {
    output: BufWriter<File>,
    translator: Translator,
    /// The time of the first event, from which all times count.
    reference: Option<Instant>,
    latest: Duration,
    bytes: u64,
}

impl LogFile {
    /// Creates the log of a connection that began at `wall`.
    pub(crate) fn create(options: &QlogOptions, subject: &Subject, wall: SystemTime) -> io::Result<Self> {
        let file = create_new(&options.directory, subject)?;
        let translator = Translator::new(options.dialect);
        let mut log = Self {
            output: BufWriter::new(file),
            translator,
            reference: None,
            latest: Duration::ZERO,
            bytes: 0,
        };
        log.put(&header(options.dialect, subject, wall))?;
        Ok(log)
    }

    /// Bytes written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes what `record` of time `at` says.
    pub(crate) fn write(&mut self, at: Instant, record: &Record) -> io::Result<()> {
        let reference = *self.reference.get_or_insert(at);
        // Viewers refuse times that go back.
        self.latest = self.latest.max(at.since(reference));
        for (name, tuple, data) in self.translator.translate(record) {
            self.put_event(name, tuple.as_deref(), data)?;
        }
        Ok(())
    }

    /// Writes how many events are missing, if any, and hands everything to the system.
    pub(crate) fn finish(mut self, dropped: u64) -> io::Result<()> {
        if dropped > 0 {
            let data = json!({ "message": format!("{dropped} events were not logged") });
            self.put_event(Name::Warning, None, data)?;
        }
        self.flush()
    }

    /// Hands everything to the system.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn put_event(&mut self, name: Name, tuple: Option<&str>, data: Value) -> io::Result<()> {
        let mut event = json!({
            "time": event::milliseconds(self.latest),
            "name": self.translator.dialect().name(name),
            "data": data,
        });
        if let (Some(tuple), Value::Object(fields)) = (tuple, &mut event) {
            fields.insert("tuple".to_owned(), tuple.into());
        }
        self.put(&event.to_string())
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        self.output.write_all(&[RECORD_SEPARATOR])?;
        self.output.write_all(text.as_bytes())?;
        self.output.write_all(b"\n")?;
        self.bytes += text.len() as u64 + 2;
        Ok(())
    }
}

/// The file of `subject`, which did not exist before.
fn create_new(directory: &Path, subject: &Subject) -> io::Result<File> {
    let end = match subject.role {
        Role::Client => "client",
        Role::Server => "server",
    };
    let name = |namesake: usize| match namesake {
        0 => format!("{}_{end}.sqlog", subject.original_destination),
        _ => format!("{}_{end}-{namesake}.sqlog", subject.original_destination),
    };
    let mut error = io::Error::from(io::ErrorKind::AlreadyExists);
    for namesake in 0..MOST_NAMESAKES {
        match OpenOptions::new().write(true).create_new(true).open(directory.join(name(namesake))) {
            Err(exists) if exists.kind() == io::ErrorKind::AlreadyExists => error = exists,
            result => return result,
        }
    }
    Err(error)
}

/// The first record (main schema §5). The members that viewers look for come first in its text.
fn header(dialect: Dialect, subject: &Subject, wall: SystemTime) -> String {
    let since_epoch = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    let id = subject.original_destination.to_string();
    let end = match subject.role {
        Role::Client => "client",
        Role::Server => "server",
    };
    let vantage_point = json!({ "name": "hvq", "type": end });
    match dialect {
        Dialect::Qvis => {
            let trace = json!({
                "vantage_point": vantage_point,
                "title": format!("hvq {end} {id}"),
                "common_fields": {
                    "ODCID": id,
                    "group_id": id,
                    "protocol_type": ["QUIC"],
                    "time_format": "relative",
                    "reference_time": event::milliseconds(since_epoch),
                },
            });
            format!(r#"{{"qlog_version":"0.3","qlog_format":"JSON-SEQ","title":"hvq","trace":{trace}}}"#)
        }
        Dialect::Draft => {
            let schemas: Vec<_> = dialect.schema().into_iter().chain(["urn:hvq:qlog:events:hvq"]).collect();
            let trace = json!({
                "vantage_point": vantage_point,
                "title": format!("hvq {end} {id}"),
                "event_schemas": schemas,
                "common_fields": {
                    "group_id": id,
                    "time_format": "relative_to_epoch",
                    "reference_time": {
                        "clock_type": "monotonic",
                        "epoch": "unknown",
                        "wall_clock_time": rfc3339(since_epoch),
                    },
                },
            });
            format!(
                r#"{{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","title":"hvq","trace":{trace}}}"#
            )
        }
    }
}

/// A time since 1970 as RFC 3339 writes it, in UTC.
pub(crate) fn rfc3339(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (days, in_day) = (seconds / 86_400, seconds % 86_400);
    // Counted in eras of 400 years that begin in March, so that a leap day is the last day of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (in_day / 3_600, in_day / 60 % 60, in_day % 60);
    let millis = since_epoch.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}
