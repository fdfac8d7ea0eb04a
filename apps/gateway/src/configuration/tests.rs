use super::*;
use crate::configuration::file::SourceText;
use std::fs;

struct Fixture(tempfile::TempDir);

impl Fixture {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(place.file("chain.pem"), made.cert.pem()).unwrap();
        fs::write(place.file("key.pem"), made.signing_key.serialize_pem()).unwrap();
        fs::write(place.file("tokens"), "ann 0123456789abcdef\n").unwrap();
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The configuration of a file that begins with a certificate, and has `text` after it.
    fn load(&self, text: &str) -> Result<Config, ConfigError> {
        let folder = self.0.path().display();
        let text = format!(
            "certificate = '{folder}/chain.pem'\nkey = '{folder}/key.pem'\n{}",
            text.replace("DIR", &folder.to_string())
        );
        fs::write(self.file("gateway.toml"), text).unwrap();
        Config::load(Some(&self.file("gateway.toml")), &Overrides::default())
    }

    /// Line, field and problem of a file that is wrong.
    fn wrong(&self, text: &str) -> (usize, String, String) {
        match self.load(text) {
            Err(ConfigError::Field { line, field, problem, .. }) => (line, field, problem),
            other => panic!("{text}: {:?}", other.map(|_| ())),
        }
    }
}

const HOST: &str = "[[host]]\nnames = ['*']\norigin = 'http://127.0.0.1:80'\n";

#[test]
fn everything_that_may_be_said_is_understood() {
    let place = Fixture::new();
    let config = place
        .load(
            "listen = ['127.0.0.1:0']\nchannel = ['embb=127.0.0.1:4433,rate=60mbit']\nadmin = '127.0.0.1:0'\n\
             admin_hosts = ['metrics']\npersistent_keys = 'DIR/keys'\ndrain = '5s'\nearly_data = true\n\
             [transport]\nscheduler = 'min-rtt'\ncongestion = 'bbr'\nidle = '2m'\nlargest_datagram = '9000B'\n\
             [log]\nfile = '-'\nformat = 'json'\n\
             [limits]\nheader = '16KiB'\nbody = '1MiB'\nconnections = 5\nhandshakes = 6\nrequests = 7\nrequests_per_connection = 8\ntunnels = 9\n\
             [timeouts]\nheader = '1s'\nconnect = '2s'\nfirst_byte = '3s'\nidle = '4s'\ntunnel = '5s'\nfiles = '0s'\n\
             [[host]]\nnames = ['example.org', '*.example.org']\norigin = 'h2c://127.0.0.1:81'\nhost_header = 'origin'\nunderscores = 'keep'\n\
             [[host]]\nnames = ['*']\nfiles = 'DIR'\ndot_files = true\n\
             [proxy]\nallow = ['*:443']\ntokens = 'DIR/tokens'\nreach = ['10.0.0.0/8']\nunderscores = 'keep'\n",
        )
        .unwrap();
    assert_eq!((config.scheduler.to_string().as_str(), config.congestion), ("min-rtt", Algorithm::Bbr));
    assert_eq!((config.limits.header, config.limits.body, config.limits.tunnels), (16 << 10, 1 << 20, 9));
    assert_eq!((config.limits.connections, config.limits.handshakes, config.limits.requests), (5, 6, 7));
    assert_eq!((config.timeouts.first_byte, config.drain), (Duration::from_secs(3), Duration::from_secs(5)));
    assert_eq!((config.timeouts.files, config.largest_datagram), (Duration::ZERO, 9000));
    assert_eq!((config.log.format, config.early_data), (Format::Json, EarlyData::On));
    assert!(matches!(
        &config.hosts[0].serves,
        Serves::Origin { host_header: HostHeader::Origin, underscores: Underscores::Keep, .. }
    ));
    assert!(matches!(&config.hosts[1].serves, Serves::Files { dot_files: DotFiles::Served, .. }));
    assert_eq!(config.proxy.as_ref().unwrap().underscores, Underscores::Keep);
    assert!(config.proxy.unwrap().reach.allows("10.1.1.1".parse().unwrap()));
}

#[test]
fn what_is_wrong_is_said_with_line_and_field() {
    let place = Fixture::new();
    // J11: the line is that of the value, two lines after the text begins.
    for (text, line, field, part) in [
        ("listen = ['here']\n", 3, "listen", "socket address"),
        ("\ncolour = 'red'\n", 4, "colour", "unknown field"),
        ("[limits]\nheader = '16KB'\n", 4, "limits.header", "\"32KiB\""),
        ("[limits]\nrequests = -1\n", 4, "limits.requests", "-1"),
        ("[limits]\nrequests = 0\n", 4, "limits.requests", "nonzero"),
        ("[limits]\nconnections = 0\n", 4, "limits.connections", "nonzero"),
        ("[limits]\nhandshakes = 1.5\n", 4, "limits.handshakes", "1.5"),
        ("[limits]\nrequests_per_connection = 0\n", 4, "limits.requests_per_connection", "nonzero"),
        // RFC 9000 §4.6: more than 2^60 streams are an error, which each client would make of it.
        (
            "[limits]\nrequests_per_connection = 9223372036854775807\n",
            4,
            "limits.requests_per_connection",
            "nonzero u32",
        ),
        ("[limits]\nheader = '0B'\n", 4, "limits.header", "above zero"),
        ("[timeouts]\nidle = '0s'\n", 4, "timeouts.idle", "above zero"),
        ("[transport]\nlargest_datagram = '1KiB'\n", 4, "transport.largest_datagram", "1200 to 65507"),
        ("[timeouts]\n\nidle = 60\n", 5, "timeouts.idle", "string"),
        ("[timeouts]\nidle = '60'\n", 4, "timeouts.idle", "\"30s\""),
        ("[transport]\nscheduler = 'fastest'\n", 4, "transport.scheduler", "hvc"),
        ("[transport]\ncongestion = 'bbr9'\n", 4, "transport.congestion", "cubic"),
        ("[log]\nformat = 'xml'\n", 4, "log.format", "common, json"),
        ("channel = ['embb']\n", 3, "channel", "NAME="),
        ("[[host]]\nnames = ['*']\n", 3, "host", "an origin or files"),
        ("[[host]]\nnames = []\nfiles = '.'\n", 3, "host", "a name"),
        ("[[host]]\nnames = ['a b']\nfiles = '.'\n", 4, "host.names", "name of a host"),
        ("[[host]]\nnames = ['*']\norigin = 'ftp://a'\n", 5, "host.origin", "h2c://"),
        ("[[host]]\nnames = ['*']\nfiles = '/nonexistent'\n", 5, "host.files", "not a folder"),
        ("[[host]]\nnames = ['*']\norigin = 'http://a'\nca = 'x'\n", 6, "host.ca", "https://"),
        (
            "[[host]]\nnames = ['*']\norigin = 'https://a'\nca = 'DIR/tokens'\n",
            6,
            "host.ca",
            "no certificate",
        ),
        ("[[host]]\nnames = ['*']\norigin = 'http://a:99999'\n", 5, "host.origin", "h2c://"),
        ("[proxy]\nallow = []\nclient_ca = 'DIR/tokens'\n", 5, "proxy.client_ca", "no certificate"),
        (
            "[[host]]\nnames = ['*']\norigin = 'http://a'\nhost_header = 'mine'\n",
            6,
            "host.host_header",
            "client",
        ),
        ("[proxy]\nallow = ['*:443']\n", 3, "proxy", "token"),
        ("[proxy]\nallow = ['*']\ntokens = 'DIR/tokens'\n", 4, "proxy.allow", "HOST:PORT"),
        ("[proxy]\nallow = []\ntokens = 'DIR/missing'\n", 5, "proxy.tokens", "cannot read"),
        ("[proxy]\nallow = []\ntokens = 'DIR/tokens'\nreach = ['ten']\n", 6, "proxy.reach", "ten"),
        ("listen = [\n", 3, "listen", ""),
    ] {
        let (said_line, said_field, problem) = place.wrong(text);
        // A list that is open ends where the file does.
        let lines = if text == "listen = [\n" { said_line..said_line + 1 } else { line..line + 1 };
        assert!(
            lines.contains(&said_line) && said_field == field,
            "{text}: {said_line} {said_field} {problem}"
        );
        assert!(problem.contains(part) || problem.contains("IP address"), "{text}: {problem}");
        assert!(!problem.contains('\n'), "{problem}");
    }
}

#[test]
fn one_of_many_is_told_its_number_and_its_workers() {
    let place = Fixture::new();
    let key = "8f95f09245765f80256934e50c66207f";
    let file = format!(
        "workers = 4\n{HOST}[quic_lb]\nserver_id = '0a01'\nnonce = 9\nrotation = 5\nkey = '{key}'\nfirst_octet = 'random'\n"
    );
    let config = place.load(&file).unwrap();
    let lb = config.quic_lb.unwrap();
    assert_eq!((config.workers.get(), lb.rotation, lb.server_id, lb.nonce_length), (4, 5, vec![10, 1], 9));
    assert_eq!((lb.key.map(|key| key[0]), lb.first_octet), (Some(0x8f), hvq::balancing::FirstOctet::Random));
    assert!(place.load(HOST).unwrap().quic_lb.is_none());
    // Flags go before the file: machines share one.
    fs::write(place.file("lb.key"), format!("{}\n", key.replace("8f", "9f"))).unwrap();
    let quic_lb = QuicLbOverrides {
        server_id: Some("0b02".parse().unwrap()),
        key_file: Some(place.file("lb.key")),
        rotation: Some(6),
    };
    let overrides = Overrides { quic_lb, workers: NonZeroU16::new(2), ..Overrides::default() };
    let config = Config::load(Some(&place.file("gateway.toml")), &overrides).unwrap();
    let (workers, lb) = (config.workers.get(), config.quic_lb.unwrap());
    assert_eq!((lb.rotation, lb.server_id, lb.key.map(|key| key[0])), (6, vec![11, 2], Some(0x9f)));
    assert_eq!((workers, lb.nonce_length), (2, 8), "the file says nothing of them this time");
}

#[test]
fn mistakes_about_clients_tunnels_workers_and_balancers_are_said_with_line_and_field() {
    let place = Fixture::new();
    let (proxy, tunnel) =
        ("[proxy]\nallow = []\ntokens = 'DIR/tokens'\n", "[tunnel]\nroutes = ['10.0.0.0/8']\n");
    for (text, line, field, part) in [
        ("workers = 0\n".to_owned(), 3, "workers", "nonzero"),
        (format!("{HOST}[quic_lb]\nrotation = 1\n"), 6, "quic_lb", "--server-id"),
        (format!("{HOST}[quic_lb]\nserver_id = '1'\n"), 7, "quic_lb.server_id", "two digits"),
        (format!("{HOST}[quic_lb]\nserver_id = '01'\nkey = '0102'\n"), 8, "quic_lb.key", "32 hexadecimal"),
        (format!("{HOST}[quic_lb]\nserver_id = '01'\nrotation = 7\n"), 6, "quic_lb", "0 to 6"),
        (format!("{HOST}[quic_lb]\nserver_id = '01'\nnonce = 3\n"), 6, "quic_lb", "4 bytes"),
        (format!("{HOST}[quic_lb]\nserver_id = '01'\nnonce = 19\n"), 6, "quic_lb", "7 to 19"),
        ("[proxy]\nallow = []\nclient_ca = 'DIR/none'\n".to_owned(), 5, "proxy.client_ca", "cannot read"),
        (format!("{proxy}clients = ['ann']\n"), 3, "proxy", "client_ca"),
        (format!("{HOST}{tunnel}"), 6, "tunnel", "[proxy]"),
        (format!("{proxy}[tunnel]\nroutes = []\n"), 6, "tunnel", "10.0.0.0/8"),
        (format!("{proxy}{tunnel}device = 'a/b'\n"), 8, "tunnel.device", "letters"),
    ] {
        let (said_line, said_field, problem) = place.wrong(&text);
        assert_eq!((said_line, said_field.as_str()), (line, field), "{text}: {problem}");
        assert!(problem.contains(part) && !problem.contains("0102"), "{text}: {problem}");
    }
    let config = place.load(&format!("{proxy}{tunnel}")).unwrap();
    let tunnel = config.tunnel.unwrap();
    assert_eq!((tunnel.device.as_str(), tunnel.network, tunnel.tcp_lane), ("hvq0", 200, true));
    let packets_only = place
        .load(&format!("{proxy}{tunnel}tcp_lane = false\n", tunnel = "[tunnel]\nroutes = ['10.0.0.0/8']\n"));
    assert!(!packets_only.unwrap().tunnel.unwrap().tcp_lane);
}

#[test]
fn routes_of_tunnels_on_which_every_packet_would_be_dropped_are_refused() {
    let place = Fixture::new();
    let file = |reach: &str, routes: &str| {
        format!(
            "[proxy]\nallow = []\ntokens = 'DIR/tokens'\nreach = [{reach}]\n[tunnel]\nroutes = [{routes}]\n"
        )
    };
    for (reach, routes, named) in [
        ("", "'10.0.0.0/8', '169.254.7.0/24'", "169.254.7.0/24"),
        ("'10.0.0.0/8'", "'127.0.0.0/8'", "127.0.0.0/8"),
        ("'169.254.0.0/16'", "'169.254.169.254/32'", "169.254.169.254/32"),
        ("", "'fe80::/64'", "fe80::/64"),
        // The gateway's own end of the tunnels, and what is behind other tunnels.
        ("'100.64.0.0/10'", "'100.64.200.1/32'", "100.64.200.1/32"),
        ("'100.64.200.8/29'", "'100.64.200.8/29'", "100.64.200.8/29"),
    ] {
        let (line, field, problem) = place.wrong(&file(reach, routes));
        assert_eq!((line, field.as_str()), (7, "tunnel"), "{problem}");
        let parts = ["[tunnel] routes", &format!("to {named} would be dropped")];
        assert!(parts.iter().all(|part| problem.contains(part)), "{problem}");
        assert!(problem.contains("[proxy] reach") || problem.contains("network of the tunnels"), "{problem}");
    }
    // Without a file, by the flag.
    let overrides = Overrides {
        tokens: Some(place.file("tokens")),
        routes: vec!["169.254.7.0/24".parse().unwrap()],
        identity: Some(Identity::Files { chain: place.file("chain.pem"), key: place.file("key.pem") }),
        ..Overrides::default()
    };
    let said = Config::load(None, &overrides).map(|_| ()).unwrap_err().to_string();
    assert!(
        said.starts_with("--tunnel-route: every packet to 169.254.7.0/24") && said.contains("--reach"),
        "{said}"
    );
    for (reach, routes) in [
        ("'169.254.7.0/24'", "'169.254.7.0/24'"),
        ("'100.64.200.1/32'", "'100.64.200.1/32'"),
        ("", "'10.0.0.0/8', '1.1.1.0/24', 'fd00::/8'"),
    ] {
        assert_eq!(place.load(&file(reach, routes)).unwrap().warnings(), [""; 0], "{reach} {routes}");
    }
}

#[test]
fn routes_that_lead_in_part_to_what_may_not_be_reached_are_warned_of() {
    let place = Fixture::new();
    let file = |reach: &str, routes: &str| {
        format!(
            "[proxy]\nallow = []\ntokens = 'DIR/tokens'\nreach = [{reach}]\n[tunnel]\nroutes = [{routes}]\n"
        )
    };
    let warnings = place.load(&file("", "'10.0.0.0/7', '10.9.0.0/16'")).unwrap().warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for part in [
        "[tunnel] routes",
        "[proxy] reach",
        "10.0.0.0/7 leads",
        "10.0.0.0/13, 10.8.0.0/16, 10.10.0.0/15, 10.12.0.0/14, …",
    ] {
        assert!(warnings[0].contains(part), "{part}: {warnings:?}");
    }
    assert_eq!(place.load(&file("'10.0.0.0/8'", "'10.0.0.0/7'")).unwrap().warnings(), [""; 0]);
}

#[test]
fn certificates_and_keys_that_do_not_work_are_named() {
    let place = Fixture::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(place.file("other.pem"), made.signing_key.serialize_pem()).unwrap();
    for (chain, key, line, field, part) in [
        ("tokens", "key.pem", 1, "certificate", "no certificate"),
        ("chain.pem", "tokens", 2, "key", "not valid PEM"),
        ("chain.pem", "other.pem", 2, "key", "does not belong"),
    ] {
        let (chain, key) = (place.file(chain), place.file(key));
        let text = format!("certificate = '{}'\nkey = '{}'\n{HOST}", chain.display(), key.display());
        fs::write(place.file("gateway.toml"), text).unwrap();
        let said = Config::load(Some(&place.file("gateway.toml")), &Overrides::default()).map(|_| ());
        match said.unwrap_err() {
            ConfigError::Field { line: at, field: of, problem, .. } => {
                assert_eq!((at, of.as_str()), (line, field), "{problem}");
                assert!(problem.contains(part), "{problem}");
            }
            other => panic!("{other}"),
        }
        // The same as flags: there is no line, but a file.
        let fallback = Some(Serves::files(place.0.path()));
        let identity = Some(Identity::Files { chain: chain.clone(), key: key.clone() });
        let overrides = Overrides { identity, fallback, ..Overrides::default() };
        let said = Config::load(None, &overrides).map(|_| ()).unwrap_err().to_string();
        let file = if field == "key" { key } else { chain };
        assert!(said.starts_with(&format!("{}: ", file.display())) && said.contains(part), "{said}");
    }
}

#[test]
fn several_origins_share_a_host_and_have_a_health() {
    let place = Fixture::new();
    let host = |rest: &str| format!("[[host]]\nnames = ['*']\n{rest}\n");
    let three = "origins = ['http://127.0.0.1:1', 'h2c://127.0.0.1:2', 'unix:/run/app.sock']";
    let table = "[host.health]\nfailures = 2\nrest = '1s'\nmost = 30\npath = '/health?x'\ninterval = '3s'\ntimeout = '4s'";
    let config = place.load(&host(&format!("{three}\n{table}"))).unwrap();
    let Serves::Origin { urls, health, .. } = &config.hosts[0].serves else { panic!("there are origins") };
    assert_eq!(urls.iter().map(ToString::to_string).collect::<Vec<_>>()[2], "unix:/run/app.sock");
    let seconds = Duration::from_secs;
    let said = HealthConfig {
        failures: 2,
        rest: seconds(1),
        most: 30,
        path: Some("/health?x".parse().unwrap()),
        interval: seconds(3),
        timeout: seconds(4),
    };
    assert_eq!((urls.len(), health), (3, &said));
    let config = place.load(&host(three)).unwrap();
    let Serves::Origin { health, compress, .. } = &config.hosts[0].serves else {
        panic!("there are origins")
    };
    assert_eq!((health, compress), (&HealthConfig::default(), &Vec::new()));
    let config = place.load(&host(&format!("{three}\ncompress = ['zstd', 'gzip']"))).unwrap();
    let Serves::Origin { compress, .. } = &config.hosts[0].serves else { panic!("there are origins") };
    assert_eq!(*compress, [ContentCoding::Zstd, ContentCoding::Gzip]);
    for (text, line, field, part) in [
        ("origins = []", 5, "origins", "no origin in the list"),
        ("origins = ['http://a', 'http://a']", 5, "origins", "http://a stands there twice"),
        ("origin = 'http://a'\norigins = ['http://b']", 6, "origins", "not both"),
        ("origins = ['http://a']\nfiles = 'DIR'", 3, "host", "not both"),
        ("origins = ['http://a', 'a:80']", 5, "origins", "is no origin"),
        ("origins = ['http://a']\nca = 'DIR/chain.pem'", 6, "ca", "only an origin with https://"),
        ("origin = 'unix:app.sock'", 5, "origin", "the whole path of a socket"),
        ("origins = ['http://a']\n[host.health]\nmost = 101", 7, "most", "100 percent"),
        ("origins = ['http://a']\n[host.health]\nfailures = 0", 7, "failures", "nonzero"),
        ("origins = ['http://a']\n[host.health]\npath = 'here'", 7, "path", "is no path"),
        ("origins = ['http://a']\n[host.health]\ninterval = '1s'", 7, "interval", "nothing is checked"),
        ("origins = ['http://a']\n[host.health]\nrest = '0s'", 7, "rest", "not above zero"),
        ("files = 'DIR'\n[host.health]\nmost = 1", 6, "health", "only origins have a health"),
        ("files = 'DIR'\ncompress = ['br']", 6, "compress", "only responses of origins"),
        ("origins = ['http://a']\ncompress = ['br', 'gzip', 'br']", 6, "compress", "br stands there twice"),
        ("origins = ['http://a']\ncompress = ['deflate']", 6, "compress", "unknown variant"),
    ] {
        let (at, of, problem) = place.wrong(&host(text));
        assert!(at == line && of.ends_with(field) && problem.contains(part), "{text}: {at} {of} {problem}");
    }
}

#[test]
fn further_certificates_are_read_and_each_is_tried() {
    let place = Fixture::new();
    let made = rcgen::generate_simple_self_signed(["other.test".to_owned()]).unwrap();
    fs::write(place.file("other.pem"), made.cert.pem()).unwrap();
    fs::write(place.file("other.key"), made.signing_key.serialize_pem()).unwrap();
    fs::write(place.file("good.ocsp"), [0x30, 3, 0x0a, 1, 0]).unwrap();
    let other =
        "[[identity]]\ncertificate = 'DIR/other.pem'\nkey = 'DIR/other.key'\nocsp = 'DIR/good.ocsp'\n";
    let hosts = HOST.replace("'*'", "'localhost', 'other.test', 'none.test'");
    let config = place.load(&format!("{other}{hosts}")).unwrap();
    let names: Vec<_> = config.certificates().iter().map(|holder| holder.names[0].clone()).collect();
    assert_eq!(names, ["localhost", "other.test"]);
    let staples: Vec<_> = config.credentials.iter().map(|credential| credential.ocsp.is_some()).collect();
    assert_eq!(staples, [false, true]);
    let warnings = config.warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("no certificate is for the host none.test"),
        "{warnings:?}"
    );
    for (text, line, part) in [
        (other.replace("key = 'DIR/other.key'\n", ""), 3, "missing field `key`"),
        (other.replace("other.key", "key.pem"), 5, "does not belong"),
        (other.replace("other.pem", "tokens"), 4, "no certificate"),
        (other.replace("good.ocsp", "tokens"), 6, "no successful OCSP response"),
        (other.replace("good.ocsp", "none"), 6, "cannot read"),
    ] {
        let (at, _, problem) = place.wrong(&format!("{text}{HOST}"));
        assert!(at == line && problem.contains(part), "{at}: {problem}");
    }
    // Without one beside the tables the first of them is the default.
    let text = format!("{other}{HOST}").replace("DIR", &place.0.path().display().to_string());
    fs::write(place.file("gateway.toml"), text).unwrap();
    let config = Config::load(Some(&place.file("gateway.toml")), &Overrides::default()).unwrap();
    assert_eq!(config.certificates()[0].names[0], "other.test");
}

#[test]
fn flags_about_clients_without_a_way_through_are_refused() {
    let place = Fixture::new();
    place.load(HOST).unwrap();
    for overrides in [
        Overrides { tokens: Some(place.file("tokens")), ..Overrides::default() },
        Overrides { client_ca: Some(place.file("chain.pem")), ..Overrides::default() },
        Overrides { clients: vec!["ann".to_owned()], ..Overrides::default() },
        Overrides { reach: vec!["10.0.0.0/8".parse().unwrap()], ..Overrides::default() },
    ] {
        let said = Config::load(Some(&place.file("gateway.toml")), &overrides).map(|_| ());
        let said = said.unwrap_err().to_string();
        assert!(said.contains("--allow"), "{said}");
    }
}

#[test]
fn what_stands_there_twice_is_refused() {
    let place = Fixture::new();
    for (text, said) in [
        ("listen = ['127.0.0.1:1', '[::1]:1', '127.0.0.1:1']", "127.0.0.1:1 stands there twice"),
        ("channel = ['embb=127.0.0.1:1', 'embb=127.0.0.2:1']", "channel embb stands there twice"),
    ] {
        let refused = place.load(&format!("{text}\n{HOST}")).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
    // Each is another port.
    place.load(&format!("listen = ['127.0.0.1:0', '127.0.0.1:0']\n{HOST}")).unwrap();
}

#[test]
fn what_is_missing_is_said() {
    let place = Fixture::new();
    assert!(place.load("").map(|_| ()).unwrap_err().to_string().contains("nothing to serve"));
    let missing = Config::load(Some(&place.file("none.toml")), &Overrides::default()).map(|_| ());
    assert!(missing.unwrap_err().to_string().contains("none.toml"));
    let fallback = Some(Serves::files(place.0.path()));
    let overrides = Overrides { fallback, ..Overrides::default() };
    let missing = Config::load(None, &overrides).map(|_| ());
    assert!(missing.unwrap_err().to_string().contains("no certificate"));
}

#[test]
fn flags_go_before_the_file() {
    let place = Fixture::new();
    place.load(&format!("listen = ['127.0.0.1:1']\ndrain = '5s'\n[log]\nfile = 'a'\n{HOST}")).unwrap();
    let overrides = Overrides {
        listen: vec!["127.0.0.1:2".parse().unwrap()],
        drain: Some(Duration::from_secs(1)),
        log_file: Some("-".into()),
        fallback: Some(Serves::files(place.0.path())),
        ..Overrides::default()
    };
    let config = Config::load(Some(&place.file("gateway.toml")), &overrides).unwrap();
    assert_eq!(config.listen, ["127.0.0.1:2".parse::<SocketAddr>().unwrap()]);
    assert_eq!(
        (config.drain, config.log.file, config.hosts.len()),
        (Duration::from_secs(1), Some("-".into()), 2)
    );
}

#[test]
fn damaged_files_never_do_more_than_be_refused() {
    // J11: every prefix, and every byte turned into another.
    let text = format!(
        "listen = ['127.0.0.1:1']\n[limits]\nheader = '16KiB'\n[transport]\nscheduler = 'hvc'\n{HOST}"
    );
    for end in 0..text.len() {
        let _either = SourceText::parse("a".to_owned(), text[..end].to_owned());
        for other in ['\0', '"', '[', '9', '\u{e4}'] {
            let damaged = format!("{}{other}{}", &text[..end], &text[end + 1..]);
            if let Err(error) = SourceText::parse("a".to_owned(), damaged) {
                assert!(matches!(error, ConfigError::Field { line: 1.., .. }), "{error}");
            }
        }
    }
}

#[test]
fn ports_over_tcp_are_read_and_what_would_not_work_is_refused() {
    let place = Fixture::new();
    let said = format!(
        "listen = ['[::]:8443']\n[tcp]\nlisten = ['[::]:8443']\nhttp = ['[::]:80']\nchallenges = '{}'\nalt_svc = '1h'\ntls = '1.3'\n{}",
        place.0.path().display(),
        HOST.replace('*', "example.org")
    );
    let config = place.load(&said).unwrap();
    let tcp = config.tcp.clone().unwrap();
    assert_eq!((tcp.listen[0].port(), tcp.http[0].port()), (8443, 80));
    assert_eq!((tcp.alt_svc, tcp.oldest_tls), (Duration::from_secs(3600), TlsVersion::V1_3));
    assert_eq!(config.https_records(), ["example.org. HTTPS 1 . alpn=\"h3,h2\" port=8443"]);
    assert_eq!(place.load(HOST).unwrap().tcp, None);
    let both = Overrides {
        listen_tcp: vec!["127.0.0.1:443".parse().unwrap()],
        listen_http: vec!["127.0.0.1:80".parse().unwrap()],
        ..Overrides::default()
    };
    let tcp = Config::load(Some(&place.file("gateway.toml")), &both).unwrap().tcp.unwrap();
    assert_eq!((tcp.alt_svc, tcp.oldest_tls, tcp.challenges), (TcpConfig::ALT_SVC, TlsVersion::V1_2, None));
    for (text, part) in [
        ("[tcp]\nalt_svc = '1h'\n", "tcp: there is no address to listen on"),
        ("[tcp]\nhttp = ['[::]:80']\n", "tcp: browsers would be sent to https, where nobody listens"),
        ("[tcp]\nlisten = ['[::]:443']\nhttp = ['[::]:443']\n", "[::]:443 stands there twice"),
        (
            "[tcp]\nlisten = ['[::]:443']\nchallenges = '/'\n",
            "tcp.challenges: challenges are shown without TLS only",
        ),
        ("[tcp]\nlisten = ['[::]:443']\nhttp = ['[::]:80']\nchallenges = '/none'\n", "/none is not a folder"),
        ("[tcp]\nlisten = ['[::]:443']\ntls = '1.1'\n", "tcp.tls"),
    ] {
        let refused = place.load(&format!("{text}{HOST}")).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(part), "{text}: {refused}");
    }
}
