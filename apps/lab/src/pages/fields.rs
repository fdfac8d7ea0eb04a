//! Reads the fields of a JSON object, so that an error can name the field.

use crate::pages::PageError;
use crate::pages::place::line_of;
use serde_json::{Map, Value};
use std::time::Duration;

/// Longer than any capture; keeps arithmetic on times exact.
const LONGEST_MS: f64 = 24.0 * 3600.0 * 1000.0;

/// A file by name and text.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// An error about `field`.
    fn error(self, field: String, problem: String) -> PageError {
        PageError::Field { file: self.file.to_owned(), line: line_of(self.text, &field), field, problem }
    }
}

/// A JSON object and where it stands.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    source: Source<'a>,
    place: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The fields of `value`, which stands at `place` (empty at the top) of `source`.
    pub(crate) fn new(source: Source<'a>, place: String, value: &'a Value) -> Result<Self, PageError> {
        match value.as_object() {
            Some(map) => Ok(Self { source, place, map }),
            None => {
                let field = if place.is_empty() { "top level".to_owned() } else { place };
                let problem = format!("expected an object, found {}", describe(value));
                Err(source.error(field, problem))
            }
        }
    }

    /// An error about the field `name`.
    pub(crate) fn error(&self, name: &str, problem: impl Into<String>) -> PageError {
        self.source.error(self.path(name), problem.into())
    }

    /// The fields of the object `name`; `None` if it is absent or null.
    pub(crate) fn optional_object(&self, name: &str) -> Result<Option<Fields<'a>>, PageError> {
        self.present(name).map(|value| Fields::new(self.source, self.path(name), value)).transpose()
    }

    /// The elements of the array `name`, each of them an object.
    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Fields<'a>>, PageError> {
        let value = self.required(name)?;
        let elements = value.as_array().ok_or_else(|| self.mismatch(name, "an array", value))?;
        let place = |index| format!("{}[{index}]", self.path(name));
        elements
            .iter()
            .enumerate()
            .map(|(index, value)| Fields::new(self.source, place(index), value))
            .collect()
    }

    /// The text `name`.
    pub(crate) fn text(&self, name: &str) -> Result<&'a str, PageError> {
        let value = self.required(name)?;
        value.as_str().ok_or_else(|| self.mismatch(name, "a text", value))
    }

    /// The whole number `name`, at most that of its type.
    pub(crate) fn count<T: TryFrom<u64>>(&self, name: &str) -> Result<T, PageError> {
        self.as_count(name, self.required(name)?)
    }

    /// The whole number `name`; `None` if it is absent or null.
    pub(crate) fn optional_count<T: TryFrom<u64>>(&self, name: &str) -> Result<Option<T>, PageError> {
        self.present(name).map(|value| self.as_count(name, value)).transpose()
    }

    /// The answer `name`; `None` if it is absent or null.
    pub(crate) fn optional_answer(&self, name: &str) -> Result<Option<bool>, PageError> {
        let answer =
            |value: &Value| value.as_bool().ok_or_else(|| self.mismatch(name, "true or false", value));
        self.present(name).map(answer).transpose()
    }

    /// The factor `name`, greater than zero; `None` if it is absent or null.
    pub(crate) fn optional_factor(&self, name: &str) -> Result<Option<f64>, PageError> {
        let factor = |value: &Value| match value.as_f64() {
            Some(factor) if factor > 0.0 => Ok(factor),
            _ => Err(self.mismatch(name, "a number greater than zero", value)),
        };
        self.present(name).map(factor).transpose()
    }

    /// The time `name`, in milliseconds.
    pub(crate) fn milliseconds(&self, name: &str) -> Result<Duration, PageError> {
        self.as_duration(name, self.required(name)?)
    }

    /// The time `name`, in milliseconds; `None` if it is absent or null.
    pub(crate) fn optional_milliseconds(&self, name: &str) -> Result<Option<Duration>, PageError> {
        self.present(name).map(|value| self.as_duration(name, value)).transpose()
    }

    /// The value of `table` that the text `name` stands for.
    pub(crate) fn one_of<T: Copy>(&self, name: &str, table: &[(&str, T)]) -> Result<T, PageError> {
        let text = self.text(name)?;
        let found = table.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = table.iter().map(|(word, _)| *word).collect();
            self.error(name, format!("expected one of {}, found \"{text}\"", words.join(", ")))
        })
    }

    fn as_count<T: TryFrom<u64>>(&self, name: &str, value: &Value) -> Result<T, PageError> {
        let count = value.as_u64().and_then(|count| T::try_from(count).ok());
        count.ok_or_else(|| self.mismatch(name, "a whole number that is not negative", value))
    }

    fn as_duration(&self, name: &str, value: &Value) -> Result<Duration, PageError> {
        match value.as_f64() {
            Some(ms) if (0.0..=LONGEST_MS).contains(&ms) => Ok(Duration::from_secs_f64(ms / 1000.0)),
            _ => Err(self.mismatch(name, "milliseconds from 0 to one day", value)),
        }
    }

    fn required(&self, name: &str) -> Result<&'a Value, PageError> {
        self.map.get(name).ok_or_else(|| self.error(name, "missing"))
    }

    fn present(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn mismatch(&self, name: &str, expected: &str, value: &Value) -> PageError {
        self.error(name, format!("expected {expected}, found {}", describe(value)))
    }

    fn path(&self, name: &str) -> String {
        if self.place.is_empty() { name.to_owned() } else { format!("{}.{name}", self.place) }
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        // An error line stays short, whatever the file holds.
        other => other.to_string().chars().take(60).collect(),
    }
}
