use super::*;

fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(http::uri::Scheme::HTTPS);
    uri.authority = Some("example.org".parse().unwrap());
    uri.path_and_query = Some(path.parse().unwrap());
    let mut request = Request::new(());
    *request.method_mut() = method.parse().unwrap();
    *request.uri_mut() = http::Uri::from_parts(uri).unwrap();
    for (name, value) in fields {
        request.headers_mut().append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    }
    request
}

fn malformed(fields: &[(&str, &str)]) -> bool {
    matches!(check(&request("POST", "/", fields)), Err(FieldError::Malformed(_)))
}

fn map(fields: &[(&str, &str)]) -> HeaderMap {
    request("GET", "/", fields).headers().clone()
}

fn provenance(authority: &Authority) -> Provenance {
    Provenance::new([192, 0, 2, 7].into(), authority)
}

fn plainly(provenance: Provenance) -> Circumstances {
    Circumstances { provenance, underscores: Underscores::Drop, version: Version::HTTP_3, early: false }
}

#[test]
fn fields_about_a_connection_are_malformed() {
    // I2: what would steer an HTTP/1.1 connection never reaches one.
    for field in [
        ("connection", "close"),
        ("connection", "x-secret"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("upgrade", "websocket"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
    ] {
        assert!(malformed(&[field]), "{field:?}");
    }
    assert!(!malformed(&[("te", "trailers")]));
}

#[test]
fn a_content_length_is_one_number() {
    // I4: several, signed, listed and overflowing lengths.
    for value in ["", "+5", "-1", "5, 5", "0x5", "5 ", "18446744073709551616", "1e3"] {
        assert!(malformed(&[("content-length", value)]), "{value:?}");
    }
    assert!(malformed(&[("content-length", "5"), ("content-length", "5")]));
    assert_eq!(
        check(&request("POST", "/", &[("content-length", "18446744073709551615")])),
        Ok(Some(u64::MAX))
    );
    assert_eq!(check(&request("POST", "/", &[])), Ok(None));
}

#[test]
fn paths_are_absolute_and_printable() {
    // I3: an absolute URL, or nothing, where a path belongs; a path that only UTF-8 can write.
    assert!(matches!(check(&request("GET", "*", &[])), Err(FieldError::Malformed(_))));
    // What h3 reads paths into takes these for none.
    for path in ["http://elsewhere/", "elsewhere", "/a b", "/a\r\nb"] {
        assert!(path.parse::<http::uri::PathAndQuery>().is_err(), "{path}");
    }
    assert!(matches!(
        check(&request("GET", "/\u{e4}", &[])),
        Err(FieldError::Refused(StatusCode::BAD_REQUEST, _))
    ));
    for (method, path) in
        [("OPTIONS", "*"), ("GET", "/a%20b?c=d"), ("GET", "//double"), ("DELETE", "/a;b:@c")]
    {
        assert_eq!(check(&request(method, path, &[])), Ok(None), "{path}");
    }
}

#[test]
fn several_hosts_and_users_in_the_authority_are_malformed() {
    // I5; that `host` and `:authority` are equal is checked before.
    assert!(malformed(&[("host", "example.org"), ("host", "example.org")]));
    let mut user = request("GET", "/", &[]);
    *user.uri_mut() = "https://user@example.org/".parse().unwrap();
    assert!(matches!(check(&user), Err(FieldError::Malformed(_))));
}

#[test]
fn what_a_client_says_about_itself_is_overwritten() {
    // I10: forged addresses.
    let authority: Authority = "example.org:8443".parse().unwrap();
    let fields = map(&[
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-for", "10.0.0.1"),
        ("forwarded", "for=127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("early-data", "1"),
        ("proxy-authorization", "Bearer secret"),
        ("authorization", "Bearer kept"),
        ("priority", "u=1, i"),
    ]);
    let fields = inbound(&fields, plainly(provenance(&authority))).unwrap();
    assert_eq!(fields.get_all("x-forwarded-for").iter().collect::<Vec<_>>(), ["192.0.2.7"]);
    assert_eq!(fields["forwarded"], "for=192.0.2.7;host=\"example.org:8443\";proto=https");
    assert_eq!(
        (&fields["x-forwarded-host"], &fields["x-forwarded-proto"]),
        (&"example.org:8443".parse().unwrap(), &"https".parse().unwrap())
    );
    for gone in ["x-real-ip", "early-data", "proxy-authorization"] {
        assert!(!fields.contains_key(gone), "{gone}");
    }
    assert_eq!(
        (&fields["authorization"], &fields["priority"]),
        (&"Bearer kept".parse().unwrap(), &"u=1, i".parse().unwrap())
    );
    let six = Provenance::new("2001:db8::1".parse().unwrap(), &authority);
    let fields = inbound(&HeaderMap::new(), Circumstances { early: true, ..plainly(six) }).unwrap();
    assert!(fields["forwarded"].to_str().unwrap().starts_with("for=\"[2001:db8::1]\";"));
    assert_eq!(fields["early-data"], "1");
}

#[test]
fn names_with_underscores_go_on_only_where_that_is_asked_for() {
    // K8: CGI and WSGI make HTTP_X_REAL_IP of `x_real_ip`, too.
    let authority: Authority = "example.org".parse().unwrap();
    let sent = map(&[
        ("x_real_ip", "127.0.0.1"),
        ("x_forwarded_for", "127.0.0.1"),
        ("content_length", "5"),
        ("session_id", "7"),
        ("x-plain", "1"),
    ]);
    let onward = inbound(&sent, plainly(provenance(&authority))).unwrap();
    assert!(onward.keys().all(|name| !name.as_str().contains('_')), "{onward:?}");
    assert_eq!(onward["x-plain"], "1");
    let keep = Circumstances { underscores: Underscores::Keep, ..plainly(provenance(&authority)) };
    assert_eq!(inbound(&sent, keep).unwrap()["session_id"], "7");
    // Trailers become fields of the request at some origins (RFC 9110 §6.5.1).
    let late =
        map(&[("x_real_ip", "127.0.0.1"), ("x-real-ip", "127.0.0.1"), ("digest", "abc"), ("a_b", "1")]);
    let names =
        |underscores| trailers(&late, underscores).keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(Underscores::Drop), ["digest"]);
    assert_eq!(names(Underscores::Keep), ["x_real_ip", "digest", "a_b"]);
}

#[test]
fn ports_beyond_16_bits_are_malformed() {
    for (authority, is_sound) in [
        ("example.org", true),
        ("example.org:", true),
        ("example.org:65535", true),
        ("[2001:db8::1]:443", true),
        ("example.org:65536", false),
        ("example.org:99999999999", false),
        ("example.org:+443", false),
    ] {
        let mut asked = request("GET", "/", &[]);
        *asked.uri_mut() = format!("https://{authority}/").parse().unwrap();
        assert_eq!(check(&asked).is_ok(), is_sound, "{authority}");
    }
}

#[test]
fn crumbs_of_a_cookie_are_joined() {
    // I7.
    let authority: Authority = "example.org".parse().unwrap();
    let crumbs = map(&[("cookie", "a=1"), ("cookie", "b=2; c=3"), ("cookie", "d=4")]);
    let fields = inbound(&crumbs, plainly(provenance(&authority))).unwrap();
    assert_eq!(fields.get_all("cookie").iter().collect::<Vec<_>>(), ["a=1; b=2; c=3; d=4"]);
}

#[test]
fn a_request_that_goes_in_circles_is_stopped() {
    let authority: Authority = "example.org".parse().unwrap();
    let mut fields = HeaderMap::new();
    for _ in 0..PASSES {
        fields = inbound(&fields, plainly(provenance(&authority))).unwrap();
    }
    let refused = inbound(&fields, plainly(provenance(&authority))).unwrap_err();
    assert!(matches!(refused, FieldError::Refused(StatusCode::LOOP_DETECTED, _)));
}

#[test]
fn what_concerns_one_hop_does_not_come_back() {
    let response = Response::builder()
        .status(200)
        .header("connection", "keep-alive, X-Hop")
        .header("keep-alive", "timeout=5")
        .header("x-hop", "1")
        .header("transfer-encoding", "chunked")
        .header("upgrade", "h2c")
        .header("server", "origin")
        .header("set-cookie", "a=1")
        .header("set-cookie", "b=2")
        .body(())
        .unwrap();
    let response = outbound(response.into_parts().0).unwrap();
    let names: Vec<_> = response.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["server", "set-cookie"]);
    assert_eq!(response.headers().get_all("set-cookie").iter().count(), 2);
    let switched = Response::builder().status(101).body(()).unwrap();
    assert!(matches!(
        outbound(switched.into_parts().0),
        Err(FieldError::Refused(StatusCode::BAD_GATEWAY, _))
    ));
}
