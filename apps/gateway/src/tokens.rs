//! Bearer tokens, which clients have to know to go through the gateway (RFC 6750 §2.1).

use http::HeaderValue;
use ring::digest::{Digest, SHA256, digest};
use std::fmt;
use std::path::Path;
use subtle::{Choice, ConstantTimeEq};

/// The fewest bytes of a token: what is shorter can be guessed.
const SHORTEST: usize = 16;

/// Tokens, of which only digests are kept.
#[derive(Clone)]
pub struct Tokens {
    known: Vec<(String, Digest)>,
}

impl Tokens {
    /// The tokens in the file at `path`: a line each, `NAME TOKEN`; empty lines and those that start with `#` do not count.
    /// The name is for the access log.
    ///
    /// # Errors
    /// The file cannot be read, a line is no name and token, a token is shorter than 16 bytes, or there is none.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    /// The tokens in `text`, that of such a file.
    ///
    /// # Errors
    /// Returns the errors of [`Tokens::read`] but for those of the file. They name lines, never tokens.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut known = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let (Some(name), Some(token), None) = (words.next(), words.next(), words.next()) else {
                return Err(format!("line {}: expected NAME TOKEN", index + 1));
            };
            if token.len() < SHORTEST {
                return Err(format!("line {}: a token has at least {SHORTEST} bytes", index + 1));
            }
            let digest = digest(&SHA256, token.as_bytes());
            if known
                .iter()
                .any(|(other, known): &(String, Digest)| other != name && known.as_ref() == digest.as_ref())
            {
                return Err(format!("line {}: somebody else has this token already", index + 1));
            }
            known.push((name.to_owned(), digest));
        }
        if known.is_empty() { Err("there is no token in it".to_owned()) } else { Ok(Self { known }) }
    }

    /// The name of the token that `authorization` (`Bearer TOKEN`) shows; `None` if it shows none of these.
    ///
    /// All tokens are compared, and each in constant time, so that time tells nothing.
    pub fn name(&self, authorization: Option<&HeaderValue>) -> Option<&str> {
        let (scheme, token) = authorization?.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let shown = digest(&SHA256, token.trim().as_bytes());
        let mut found = None;
        for (name, known) in &self.known {
            let equal: Choice = known.as_ref().ct_eq(shown.as_ref());
            if bool::from(equal) {
                found = Some(name.as_str());
            }
        }
        found
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.known.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name<'a>(tokens: &'a Tokens, shown: &str) -> Option<&'a str> {
        tokens.name(Some(&HeaderValue::from_str(shown).unwrap()))
    }

    #[test]
    fn only_a_whole_token_opens_and_its_name_is_told() {
        let tokens = Tokens::parse("# people\nann 0123456789abcdef\n\nbob fedcba9876543210\n").unwrap();
        assert_eq!(name(&tokens, "Bearer 0123456789abcdef"), Some("ann"));
        assert_eq!(name(&tokens, "bearer fedcba9876543210"), Some("bob"));
        for wrong in
            ["Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Basic 0123456789abcdef", "Bearer ", "ann"]
        {
            assert_eq!(name(&tokens, wrong), None, "{wrong}");
        }
        assert_eq!(tokens.name(None), None);
        assert_eq!(format!("{tokens:?}"), "[\"ann\", \"bob\"]");
    }

    #[test]
    fn a_file_without_a_good_token_is_refused_without_showing_it() {
        for (text, part) in [
            ("", "no token"),
            ("ann", "line 1"),
            ("ann short", "line 1"),
            ("\na b c", "line 2"),
            ("ann 0123456789abcdef\nbob 0123456789abcdef", "line 2"),
        ] {
            let problem = Tokens::parse(text).unwrap_err();
            assert!(
                problem.contains(part) && !problem.contains("short") && !problem.contains("0123"),
                "{problem}"
            );
        }
    }
}
