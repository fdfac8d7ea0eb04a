//! The `priority` header (RFC 9218 §5): how urgent a response is, and whether parts of it are of use.

use http::{HeaderMap, HeaderName, HeaderValue};
use hvq::Priority;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The header's name.
pub const PRIORITY: HeaderName = HeaderName::from_static("priority");

/// The least urgent value of the urgency parameter (RFC 9218 §4.1).
const LEAST_URGENT: i64 = 7;

/// The priority that the headers of a request ask for: `u` is the urgency, 0 to 7, and `i` says that the response is
/// of use in parts (RFC 9218 §4).
///
/// A missing parameter has its default (3, not incremental), and so has all of a header that is not a structured
/// dictionary (RFC 9651 §4.2). Parameters that are unknown, out of range or of another type are ignored, as RFC 9218 §4
/// demands.
pub fn parse(request: &HeaderMap) -> Priority {
    Parameters::of(request).or_default(Priority::DEFAULT)
}

/// `text` as a header that says a priority.
///
/// # Errors
/// [`parse`] would ignore it, or its urgency or whether it is incremental: what somebody typed is better told to be wrong.
pub fn typed(text: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::from_str(text).map_err(|_| "this is not the value of a header".to_owned())?;
    let dictionary = Parser::new(text).parse::<Dictionary>();
    let dictionary = dictionary
        .map_err(|error| format!("{text:?} is no dictionary such as \"u=1, i\" (RFC 9218 §4): {error}"))?;
    let headers = HeaderMap::from_iter([(PRIORITY, value.clone())]);
    let Parameters { urgency, incremental } = Parameters::of(&headers);
    match (dictionary.contains_key("u"), dictionary.contains_key("i")) {
        (true, _) if urgency.is_none() => Err("the urgency u is a number from 0 to 7".to_owned()),
        (_, true) if incremental.is_none() => Err("i is there, or ?1 or ?0".to_owned()),
        _ => Ok(value),
    }
}

/// The priority when the server's application has an opinion too: what the headers of its response say goes before `asked`,
/// the priority that the client asked for (RFC 9218 §8).
pub fn merge(asked: Priority, response: &HeaderMap) -> Priority {
    Parameters::of(response).or_default(asked)
}

/// The priority that the field value of a PRIORITY_UPDATE frame says (RFC 9218 §7), like a `priority` header.
pub(crate) fn of_update(value: &[u8]) -> Priority {
    match HeaderValue::from_bytes(value) {
        Ok(value) => parse(&HeaderMap::from_iter([(PRIORITY, value)])),
        Err(_) => Priority::DEFAULT,
    }
}

/// A `priority` header that says `priority`, in its shortest form; `None` for the default, which needs no header.
pub fn header(priority: Priority) -> Option<HeaderValue> {
    let urgency = i64::from(priority.urgency).min(LEAST_URGENT);
    let text = match (priority.urgency == Priority::DEFAULT.urgency, priority.incremental) {
        (true, false) => return None,
        (true, true) => "i".to_owned(),
        (false, false) => format!("u={urgency}"),
        (false, true) => format!("u={urgency}, i"),
    };
    Some(HeaderValue::from_str(&text).expect("letters, digits and punctuation are a header value"))
}

/// The parameters that a header states validly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Parameters {
    urgency: Option<u8>,
    incremental: Option<bool>,
}

impl Parameters {
    fn of(headers: &HeaderMap) -> Self {
        // RFC 9651 §4.2: several lines of a dictionary are one, joined by commas.
        let lines: Vec<&[u8]> = headers.get_all(PRIORITY).iter().map(HeaderValue::as_bytes).collect();
        let Ok(dictionary) = Parser::new(&lines.join(&b", "[..])).parse::<Dictionary>() else {
            return Self::default();
        };
        //= https://www.rfc-editor.org/rfc/rfc9218#section-4
        //# Where the Dictionary is successfully parsed, this document places the additional requirement that
        //# unknown priority parameters, priority parameters with out-of-range values, or values of unexpected
        //# types MUST be ignored.
        let item = |key: &str| match dictionary.get(key) {
            Some(ListEntry::Item(item)) => Some(&item.bare_item),
            Some(ListEntry::InnerList(_)) | None => None,
        };
        Self {
            urgency: item("u").and_then(urgency),
            incremental: item("i").and_then(|item| match item {
                BareItem::Boolean(incremental) => Some(*incremental),
                _ => None,
            }),
        }
    }

    fn or_default(self, default: Priority) -> Priority {
        Priority {
            urgency: self.urgency.unwrap_or(default.urgency),
            incremental: self.incremental.unwrap_or(default.incremental),
        }
    }
}

/// The urgency that an item states, if it is an integer from 0 to 7.
fn urgency(item: &BareItem) -> Option<u8> {
    match item {
        BareItem::Integer(urgency) => {
            u8::try_from(*urgency).ok().filter(|urgency| i64::from(*urgency) <= LEAST_URGENT)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
