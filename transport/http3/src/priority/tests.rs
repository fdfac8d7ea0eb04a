use super::*;
use proptest::prelude::*;

fn headers(lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(PRIORITY, HeaderValue::from_bytes(line.as_bytes()).unwrap());
    }
    headers
}

fn parsed(line: &str) -> (u8, bool) {
    let priority = parse(&headers(&[line]));
    (priority.urgency, priority.incremental)
}

#[test]
fn urgency_and_incremental_are_read() {
    assert_eq!(parsed("u=0"), (0, false));
    assert_eq!(parsed("u=7, i"), (7, true));
    assert_eq!(parsed("i"), (3, true));
    assert_eq!(parsed("i=?1,u=5"), (5, true));
    assert_eq!(parsed("i=?0"), (3, false));
    assert_eq!(parsed("u=1;reason=fast, i;x"), (1, true));
}

/// RFC 9218 §4.1, §4.2.
#[test]
fn without_a_header_the_default_holds() {
    assert_eq!(parse(&HeaderMap::new()), Priority { urgency: 3, incremental: false });
    assert_eq!(parsed(""), (3, false));
}

//= https://www.rfc-editor.org/rfc/rfc9218#section-4
//= type=test
//# Where the Dictionary is successfully parsed, this document places the additional requirement that
//# unknown priority parameters, priority parameters with out-of-range values, or values of unexpected
//# types MUST be ignored.
#[test]
fn parameters_that_make_no_sense_are_ignored_and_the_others_hold() {
    for line in ["u=8, i", "u=-1, i", "u=1.0, i", "u=\"1\", i", "u=(1 2), i", "u, i", "u=256, i", "q=1, i"] {
        assert_eq!(parsed(line), (3, true), "{line}");
    }
    for line in ["u=2, i=1", "u=2, i=yes", "u=2, i=(?1)", "u=2, x=?1"] {
        assert_eq!(parsed(line), (2, false), "{line}");
    }
}

/// RFC 9651 §4.2: a field that fails to parse is ignored as a whole.
#[test]
fn a_header_that_is_no_dictionary_is_ignored_as_a_whole() {
    for line in ["u=", "u=1,", "u=1 i", "U=1", "u=1, ,i", "=1", "u=1, i=?2", "\u{fc}=1, u=1", "u=1;"] {
        assert_eq!(parsed(line), (3, false), "{line}");
    }
}

/// RFC 9651 §4.2.2: of several values the last holds.
#[test]
fn the_last_of_several_values_holds_over_all_lines() {
    assert_eq!(parsed("u=1, u=2"), (2, false));
    assert_eq!(parsed("u=1, u=9"), (3, false));
    let priority = parse(&headers(&["u=1", "i", "u=6"]));
    assert_eq!(priority, Priority { urgency: 6, incremental: true });
    assert_eq!(parse(&headers(&["u=1", "u="])), Priority::DEFAULT);
}

/// RFC 9218 §8, with its example.
#[test]
fn a_response_overrides_only_what_it_states() {
    let merged = merge(parse(&headers(&["u=5, i"])), &headers(&["u=1"]));
    assert_eq!(merged, Priority { urgency: 1, incremental: true });
    let merged = merge(parse(&headers(&["u=5, i"])), &headers(&["i=?0"]));
    assert_eq!(merged, Priority { urgency: 5, incremental: false });
    assert_eq!(merge(parse(&headers(&[])), &headers(&["nonsense=,"])), Priority::DEFAULT);
}

#[test]
fn the_default_needs_no_header_and_others_the_shortest() {
    assert_eq!(header(Priority::DEFAULT), None);
    let text = |urgency, incremental| header(Priority { urgency, incremental }).unwrap();
    assert_eq!(text(3, true), "i");
    assert_eq!(text(0, false), "u=0");
    assert_eq!(text(6, true), "u=6, i");
    assert_eq!(text(200, false), "u=7");
}

proptest! {
    #[test]
    fn a_priority_survives_its_header(urgency in 0u8..=7, incremental: bool) {
        let priority = Priority { urgency, incremental };
        let headers: HeaderMap = header(priority).map(|value| (PRIORITY, value)).into_iter().collect();
        prop_assert_eq!(parse(&headers), priority);
    }

    #[test]
    fn any_header_gives_a_valid_priority(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            let headers: HeaderMap = [(PRIORITY, value)].into_iter().collect();
            prop_assert!(parse(&headers).urgency <= 7);
        }
    }
}

#[test]
fn a_priority_that_somebody_types_is_told_to_be_wrong_where_a_header_would_be_ignored() {
    for fine in ["u=1, i", "i", "u=7", "i=?0", "", "x=y"] {
        assert_eq!(typed(fine), Ok(HeaderValue::from_static(fine)), "{fine}");
    }
    for (wrong, part) in [
        ("u=8", "urgency"),
        ("u=8, i", "urgency"),
        ("u=1, i=2", "?1"),
        ("u=", "dictionary"),
        ("\n", "header"),
    ] {
        let told = typed(wrong).expect_err("a header would ignore it");
        assert!(told.contains(part), "{wrong}: {told}");
    }
}
