//! Lines of the access log, and their formats.

use super::moment;
use crate::configuration::Format;
use http::{Method, StatusCode, Version};
use serde_json::json;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// A request that is over.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) time: SystemTime,
    pub(crate) address: IpAddr,
    /// The name of the token that was shown.
    pub(crate) user: Option<String>,
    pub(crate) method: Method,
    /// The version of HTTP that the request came by.
    pub(crate) version: Version,
    pub(crate) asked: Asked,
    /// `None` if no response was begun.
    pub(crate) status: Option<StatusCode>,
    /// Bytes of the response's body that were sent.
    pub(crate) sent: u64,
    /// Bytes of the request's body that went on.
    pub(crate) received: u64,
    /// From the request to the head of the origin's response.
    pub(crate) first_byte: Option<Duration>,
    /// From the request to the end of the response.
    pub(crate) total: Duration,
}

/// A request's own description, as the log has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) referrer: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) priority: Option<String>,
}

impl Record {
    /// The line, without its end.
    pub(super) fn line(&self, format: Format) -> String {
        match format {
            Format::Common => self.common(),
            Format::Json => self.json(),
        }
    }

    fn common(&self) -> String {
        let part = |text: &Option<String>| text.as_deref().map_or_else(|| "-".to_owned(), quoted);
        format!(
            "{} - {} [{}] \"{} {} {:?}\" {} {} \"{}\" \"{}\"",
            self.address,
            part(&self.user),
            moment::common(self.time),
            quoted(self.method.as_str()),
            quoted(&self.asked.path),
            // Written as nginx writes it: "HTTP/1.1", "HTTP/2.0", "HTTP/3.0".
            self.version,
            // nginx writes 499 for clients that gave up.
            self.status.map_or(499, |status| status.as_u16()),
            self.sent,
            part(&self.asked.referrer),
            part(&self.asked.agent),
        )
    }

    fn json(&self) -> String {
        let milliseconds = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
        json!({
            "time": moment::rfc3339(self.time),
            "client": self.address.to_string(),
            "user": self.user,
            "method": self.method.as_str(),
            "host": self.asked.host,
            "path": self.asked.path,
            "protocol": format!("{:?}", self.version),
            "status": self.status.map(|status| status.as_u16()),
            "sent": self.sent,
            "received": self.received,
            "priority": self.asked.priority,
            "referrer": self.asked.referrer,
            "agent": self.asked.agent,
            "origin_ms": self.first_byte.map(milliseconds),
            "total_ms": milliseconds(self.total),
        })
        .to_string()
    }
}

/// `text` as it may be between quotes: nobody ends a line or a field from within (CWE-117).
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' => quoted.push(character),
            other => {
                let mut bytes = [0; 4];
                for byte in other.encode_utf8(&mut bytes).bytes() {
                    // Writing to a string does not fail.
                    let _written = write!(quoted, "\\x{byte:02X}");
                }
            }
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            time: std::time::UNIX_EPOCH,
            address: [192, 0, 2, 1].into(),
            user: None,
            method: Method::GET,
            version: Version::HTTP_3,
            asked: Asked {
                host: "example.org".to_owned(),
                path: "/a?b".to_owned(),
                referrer: None,
                agent: Some("a \"b\"\n\u{e9}".to_owned()),
                priority: Some("u=1".to_owned()),
            },
            status: Some(StatusCode::OK),
            sent: 5,
            received: 0,
            first_byte: Some(Duration::from_micros(1500)),
            total: Duration::from_millis(2),
        }
    }

    #[test]
    fn a_line_in_the_common_format_cannot_be_forged_from_within() {
        let line = record().line(Format::Common);
        assert_eq!(
            line,
            "192.0.2.1 - - [01/Jan/1970:00:00:00 +0000] \"GET /a?b HTTP/3.0\" 200 5 \"-\" \"a \\\"b\\\"\\x0A\\xC3\\xA9\""
        );
    }

    #[test]
    fn a_line_of_json_is_one_object() {
        let line = record().line(Format::Json);
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&object["status"], &object["origin_ms"], &object["agent"]),
            (&200.into(), &1.5.into(), &"a \"b\"\n\u{e9}".into())
        );
        assert!(!line.contains('\n'));
    }
}
