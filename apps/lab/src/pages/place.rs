//! Finds the line of a field in the text of a page description, so that an error can name it.

/// A step of a path such as `objects[3].size_bytes`.
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// The line, counted from 1, on which the field `path` of the JSON in `text` stands; if it is missing, that of what it is
/// missing from.
pub(crate) fn line_of(text: &str, path: &str) -> usize {
    let mut walk = Walk { text: text.as_bytes(), at: 0 };
    for step in steps(path) {
        let found = match step {
            Step::Key(key) => walk.enter_member(key),
            Step::Index(index) => walk.enter_element(index),
        };
        if found.is_none() {
            break;
        }
    }
    let before = walk.text.get(..walk.at).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    path.split('.').flat_map(|part| {
        let mut pieces = part.split('[');
        let key = pieces.next().filter(|key| !key.is_empty()).map(Step::Key);
        let index = |piece: &str| piece.trim_end_matches(']').parse().ok().map(Step::Index);
        let indices: Vec<Option<Step<'_>>> = pieces.map(index).collect();
        key.into_iter().chain(indices.into_iter().flatten())
    })
}

/// A place in JSON that is known to be well-formed.
struct Walk<'a> {
    text: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// From an object to the value of its member `key`; stays where it is if there is none.
    fn enter_member(&mut self, key: &str) -> Option<()> {
        self.peek()?;
        let start = self.at;
        let mut enter = || {
            self.take(b'{')?;
            loop {
                let name = self.string()?;
                self.take(b':')?;
                self.peek()?;
                if self.text.get(name)? == key.as_bytes() {
                    return Some(());
                }
                self.skip()?;
                self.take(b',')?;
            }
        };
        let found = enter();
        if found.is_none() {
            self.at = start;
        }
        found
    }

    /// From an array to its element number `index`; stays where it is if there is none.
    fn enter_element(&mut self, index: usize) -> Option<()> {
        self.peek()?;
        let start = self.at;
        let mut enter = || {
            self.take(b'[')?;
            for _ in 0..index {
                self.skip()?;
                self.take(b',')?;
            }
            self.peek().map(|_| ())
        };
        let found = enter();
        if found.is_none() {
            self.at = start;
        }
        found
    }

    /// Passes a string; returns where its content is.
    fn string(&mut self) -> Option<std::ops::Range<usize>> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            match self.text.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(start..self.at - 1)
    }

    /// Passes a value, whatever it is.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => self.scalar(),
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Passes a number or a word.
    fn scalar(&mut self) {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        // One at least, so that nothing is looked at twice.
        self.at += 1;
        while self.text.get(self.at).is_some_and(is_part) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "schema": "a \" { [",
  "numbers": [1, -2.5e3,
    {"x": null}],
  "objects": [
    {"id": 0, "after": null},
    {
      "id": 1,
      "after": {"id":
        7}
    }
  ]
}"#;

    #[test]
    fn a_field_is_found_on_its_line() {
        for (path, line) in [
            ("schema", 2),
            ("numbers[1]", 3),
            ("numbers[2].x", 4),
            ("objects", 5),
            ("objects[0].after", 6),
            ("objects[1].id", 8),
            ("objects[1].after.id", 10),
        ] {
            assert_eq!(line_of(TEXT, path), line, "{path}");
        }
    }

    #[test]
    fn what_is_missing_is_missing_from_where_it_should_be() {
        assert_eq!(line_of(TEXT, "objects[1].size_bytes"), 7);
        assert_eq!(line_of(TEXT, "objects[9].id"), 5);
        assert_eq!(line_of(TEXT, "site"), 1);
        assert_eq!(line_of(TEXT, "top level"), 1);
    }

    #[test]
    fn text_that_is_no_json_has_some_line_all_the_same() {
        for text in ["", "{", "{\"a\": \"", "[1, 2", "{\"a\": \"\\", "}}"] {
            assert_eq!(line_of(text, "a[3].b"), 1, "{text}");
        }
    }
}
