//! Rust source without what is not code: comments, texts and, on request, tests.

/// The mark of test code.
const TEST_MARK: &str = "#[cfg(test)]";

/// `source` with comments and the inside of string and character literals blanked; lines stay where they are.
pub(crate) fn code(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out = chars.clone();
    let mut at = 0;
    while at < chars.len() {
        let end = match literal_or_comment(&chars, at) {
            Some(end) => end,
            None => {
                at += 1;
                continue;
            }
        };
        for blank in &mut out[at..end] {
            if *blank != '\n' {
                *blank = ' ';
            }
        }
        at = end;
    }
    out.into_iter().collect()
}

/// The inside of every string literal of `source`, with the line that it begins in, counted from 1. Escapes stay as they
/// are written.
pub(crate) fn texts(source: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = source.chars().collect();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let end = literal_or_comment(&chars, at).unwrap_or(at + 1);
        if matches!(chars[at], '"' | 'r') && end > at + 1 {
            let text: String = chars[at..end].iter().collect();
            found.push((line, text.trim_start_matches('r').trim_matches('#').trim_matches('"').to_owned()));
        }
        line += chars[at..end].iter().filter(|c| **c == '\n').count();
        at = end;
    }
    found
}

/// The items of `code` (see [`code`]) under `#[cfg(test)]`, the mark included.
pub(crate) fn tests(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(TEST_MARK) {
        let marked = &rest[start..];
        let (item, after) = marked.split_at(item_end(marked));
        found.push(item);
        rest = after;
    }
    found
}

/// `code` (see [`code`]) with everything under `#[cfg(test)]` blanked.
pub(crate) fn without_tests(code: &str) -> String {
    without(code, TEST_MARK)
}

/// `code` (see [`code`]) with the items that `mark` stands before blanked.
pub(crate) fn without(code: &str, mark: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(mark) {
        let (before, marked) = rest.split_at(start);
        let end = item_end(marked);
        out.push_str(before);
        out.extend(marked[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &marked[end..];
    }
    out.push_str(rest);
    out
}

/// The end of the item at the start of `code`: its closing brace, or a semicolon outside of braces.
fn item_end(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == '}' || c == ';') {
            return at + 1;
        }
    }
    code.len()
}

/// The end of the comment or literal that starts at `at`, if one does.
fn literal_or_comment(chars: &[char], at: usize) -> Option<usize> {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => Some(position(chars, at, |c| c == '\n').unwrap_or(chars.len())),
        '/' if next == Some('*') => Some(block_comment_end(chars, at)),
        '"' => Some(text_end(chars, at)),
        'r' if !follows_word(chars, at) => raw_text_end(chars, at),
        '\'' => character_end(chars, at),
        _ => None,
    }
}

fn follows_word(chars: &[char], at: usize) -> bool {
    // `br"` is a raw text too.
    let before = if at > 0 && chars[at - 1] == 'b' { at - 1 } else { at };
    before > 0 && (chars[before - 1].is_alphanumeric() || chars[before - 1] == '_')
}

fn position(chars: &[char], from: usize, wanted: impl Fn(char) -> bool) -> Option<usize> {
    chars[from..].iter().position(|c| wanted(*c)).map(|offset| from + offset)
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn text_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn raw_text_end(chars: &[char], start: usize) -> Option<usize> {
    let open = position(chars, start + 1, |c| c != '#')?;
    if chars[open] != '"' {
        return None;
    }
    let hashes = open - start - 1;
    let mut at = open + 1;
    while let Some(quote) = position(chars, at, |c| c == '"') {
        let tail = &chars[quote + 1..];
        if tail.len() >= hashes && tail[..hashes].iter().all(|c| *c == '#') {
            return Some(quote + 1 + hashes);
        }
        at = quote + 1;
    }
    Some(chars.len())
}

/// The end of a character literal; `None` for a lifetime.
fn character_end(chars: &[char], start: usize) -> Option<usize> {
    match (chars.get(start + 1)?, chars.get(start + 2)?) {
        ('\\', _) => position(chars, start + 3, |c| c == '\'').map(|end| end + 1),
        (_, '\'') => Some(start + 3),
        _ => None,
    }
}

#[test]
fn comments_and_texts_are_blanked_and_code_stays() {
    let source =
        "let a = \"un\\\"safe\"; // unsafe\n/* unsafe /* unsafe */ */ fn b<'a>(c: &'a u8) { 'x'; '\\''; }";
    let code = code(source);
    assert!(!code.contains("safe"), "{code}");
    assert!(code.contains("fn b<'a>(c: &'a u8) {") && code.lines().count() == 2, "{code}");
}

#[test]
fn raw_texts_are_blanked_to_their_own_end() {
    let code = code("f(r#\"one \" unsafe\"#, br\"unsafe\", for_r, r#type); unsafe {}");
    assert_eq!(code.matches("unsafe").count(), 1, "{code}");
    assert!(code.contains("for_r, r#type"), "{code}");
}

#[test]
fn tests_are_blanked_and_what_follows_them_stays() {
    let source = "use a;\n#[cfg(test)]\nmod tests {\n fn x() { bad() }\n}\nfn good() {}\n#[cfg(test)]\nmod tests;\nfn fine() {}";
    let code = without_tests(source);
    assert!(!code.contains("bad") && !code.contains("mod tests"), "{code}");
    assert!(code.contains("use a;") && code.contains("good") && code.contains("fine"), "{code}");
    assert_eq!(code.lines().count(), source.lines().count());
}

#[test]
fn texts_are_found_with_their_lines_and_comments_are_not() {
    let source = "// \"no\"\nlet a = \"one\";\nlet b = (r#\"two \"x\"\"#, '\"', \"three\");";
    let found = [(2, "one".to_owned()), (3, "two \"x".to_owned()), (3, "three".to_owned())];
    assert_eq!(texts(source), found);
}
