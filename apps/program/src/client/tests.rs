use super::target::Target;
use crate::failure::Exit;
use crate::names::Names;
use crate::path_choice::PathChoice;

#[test]
fn a_url_has_a_default_scheme_and_port_and_ipv6_brackets() {
    for (text, host, port) in [
        ("https://example.org/a", "example.org", 443),
        ("example.org:4433/a", "example.org", 4433),
        ("127.0.0.1:4433", "127.0.0.1", 4433),
        ("https://[::1]:8443/x?y=z", "::1", 8443),
        ("localhost:1/", "localhost", 1),
    ] {
        let target = Target::parse(text).unwrap();
        assert_eq!((target.host.as_str(), target.port), (host, port), "{text}");
    }
}

#[test]
fn what_is_no_url_for_http3_is_a_wrong_argument() {
    for text in [
        "http://example.org/",
        "ftp://a/b",
        "https://",
        "https://a:99999/",
        "https://a:0/",
        "https://ann:secret@a/",
        "https://ann@a/",
        "",
    ] {
        let failure = Target::parse(text).unwrap_err();
        assert_eq!(failure.exit(), Exit::Usage, "{text}");
        assert!(!failure.line().contains("secret"), "{}", failure.line());
    }
}

#[test]
fn the_remote_name_is_a_plain_file_name() {
    let name = |text| Target::parse(text).unwrap().file_name();
    assert_eq!(name("https://a/b/c%20d.txt?e=f").unwrap(), "c d.txt");
    for text in ["https://a", "https://a/b/", "https://a/..%2fpasswd", "https://a/%00"] {
        assert!(name(text).is_err(), "{text}");
    }
}

#[test]
fn headers_are_read_and_refused() {
    let (name, value) = super::fetch::header("X-Test:  a b ").unwrap();
    assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-test", "a b"));
    for text in ["TE: trailers", "Host: example.org:8443", "Content-Length: 5"] {
        assert!(super::fetch::header(text).is_ok(), "{text}");
    }
    for text in [
        "novalue",
        "bad name: x",
        ": x",
        "a: b\nc",
        "Connection: close",
        "Transfer-Encoding: chunked",
        "TE: gzip",
        "Host: a b",
    ] {
        assert!(super::fetch::header(text).is_err(), "{text}");
    }
}

#[tokio::test]
async fn addresses_need_no_name_server() {
    let target = Target::parse("https://[::1]:8443/").unwrap();
    let found = target.approach(&Names::default(), &PathChoice::default()).await.unwrap().destinations;
    assert_eq!(found.iter().map(|found| found.address).collect::<Vec<_>>(), ["[::1]:8443".parse().unwrap()]);
}
