//! `--path auto`: paths that follow the links of this machine.

use crate::support::{Running, code, hvq, json, run, said};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn a_download_goes_over_the_link_that_reaches_the_server_and_the_others_say_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let (site, certificate) = (folder.path().join("site"), folder.path().join("certificate.pem"));
    fs::create_dir(&site).unwrap();
    fs::write(site.join("hello.txt"), "hello world").unwrap();
    let server = Running::serve(&site, &certificate, &[]);
    let url = server.url("/hello.txt");
    let trust = ["--cacert", certificate.to_str().unwrap()];
    let output = run([&["get", "--path", "auto", "--json", &url], &trust[..]].concat());
    assert_eq!(code(&output), 0, "{}", said(&output));
    let figures = json(&output);
    let paths = figures["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 1, "only loopback leads to loopback: {figures}");
    assert!(paths[0]["local"].as_str().unwrap().starts_with("127.0.0.1:"), "{figures}");
    let unused = figures["unused"].as_array().unwrap();
    assert!(unused.iter().all(|link| link["name"] != paths[0]["name"]), "{figures}");

    // A rule that is for no link is warned of, and rules ask for links.
    let output = run([&["get", "--rule", "wlam*=use", &url], &trust[..]].concat());
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(said(&output).contains("no network interface matches the rule wlam*=use"), "{}", said(&output));
}

#[test]
fn rules_that_make_no_sense_are_wrong_arguments() {
    for (words, problem) in [
        (&["--rule", "wwan0=metered,budget=0MB/day"][..], "such as 500MB/day"),
        (&["--rule", "wwan0=sometimes"], "use, backup, metered, never"),
        (&["--path", "a=127.0.0.1", "--rule", "wwan0=use"], "do not go with"),
        (&["--rules", "/nowhere/rules"], "/nowhere/rules"),
    ] {
        let output = run([&["get", "https://127.0.0.1:1/"], words].concat());
        assert_eq!(code(&output), 2, "{}", said(&output));
        assert!(said(&output).contains(problem), "{}", said(&output));
    }
}

#[test]
fn without_a_link_that_may_be_used_the_connection_fails_and_says_why() {
    let output = run(["get", "--rule", "any=never", "https://127.0.0.1:1/"]);
    assert_eq!(code(&output), 3, "{}", said(&output));
    let reason = "no network link can be used: lo: the rule any=never forbids it";
    assert!(said(&output).contains(reason), "{}", said(&output));
}

#[test]
fn a_proxy_reads_its_rules_again_and_keeps_them_if_the_file_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let certificate = folder.path().join("certificate.pem");
    let server = Running::serve(folder.path(), &certificate, &[]);
    let gateway = format!("localhost:{}", server.address(0).port());
    let (rules, errors) = (file("rules"), file("errors"));
    fs::write(&rules, "any=use\n").unwrap();
    let proxy = Running::of(
        hvq()
            .args(["proxy", "--json", "--listen", "127.0.0.1:0", "--gateway", &gateway, "--rules", &rules])
            .args(["--cacert", certificate.to_str().unwrap()])
            .stderr(fs::File::create(&errors).unwrap()),
    );
    let said = |text: &str| {
        let start = Instant::now();
        while !fs::read_to_string(&errors).unwrap().contains(text) {
            assert!(start.elapsed() < Duration::from_secs(20), "{text}: {:?}", fs::read_to_string(&errors));
            sleep(Duration::from_millis(10));
        }
    };
    let reload = || {
        let sent = Command::new("kill").arg("-HUP").arg(proxy.id().to_string()).status().unwrap();
        assert!(sent.success());
    };
    fs::write(&rules, "wlam0=use\nany=use\n").unwrap();
    reload();
    said("no network interface matches the rule wlam0=use");
    fs::write(&rules, "any=use\n\nany=sometimes\n").unwrap();
    reload();
    said("the rules stay: ");
    said("line 3");
    proxy.interrupt();
    assert_eq!(proxy.wait().0, 0, "SIGHUP ends nothing");
}

#[cfg(unix)]
#[test]
fn the_paths_of_a_running_proxy_are_told_to_its_user_alone_and_none_are_once_it_ended() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("certificate.pem");
    let server = Running::serve(folder.path(), &certificate, &[]);
    let gateway = format!("localhost:{}", server.address(0).port());
    let paths =
        |more: &[&str]| hvq().arg("paths").args(more).env("XDG_RUNTIME_DIR", folder.path()).output().unwrap();
    let output = paths(&[]);
    assert_eq!(code(&output), 1);
    assert!(said(&output).contains("no hvq proxy or tunnel of this user runs"), "{}", said(&output));

    let proxy = Running::of(
        hvq()
            .args(["proxy", "--json", "--listen", "127.0.0.1:0", "--gateway", &gateway])
            .args(["--rule", "any=metered,budget=1GB/day,price=3", "--cacert", certificate.to_str().unwrap()])
            .env("XDG_RUNTIME_DIR", folder.path()),
    );
    let socket = folder.path().join(format!("hvq/proxy-{}.sock", proxy.id()));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
    let status = json(&paths(&["--json"]));
    assert_eq!(
        (&status["program"], &status["peer"]),
        (&"proxy".into(), &gateway.as_str().into()),
        "{status}"
    );
    let path = &status["paths"][0];
    assert_eq!(
        (&path["name"], &path["state"], &path["price"]),
        (&"lo".into(), &"validated".into(), &3.into())
    );
    assert_eq!(path["budget"]["budget"], "1GB/day", "{status}");
    assert!(path["bytes_sent"].as_u64() > Some(1_000) && path["rtt_ms"].as_f64() > Some(0.0), "{status}");
    assert!(status["unused"].as_array().unwrap().iter().all(|link| link["name"] != "lo"), "{status}");

    let number = proxy.id().to_string();
    let text = String::from_utf8(paths(&["--process", &number]).stdout).unwrap();
    assert!(text.contains(&format!("hvq proxy (process {number}) is connected to {gateway}")), "{text}");
    assert!(text.contains("were spent of 1GB/day"), "{text}");
    assert_eq!(code(&paths(&["--process", "1"])), 1);

    proxy.interrupt();
    assert_eq!(proxy.wait().0, 0);
    assert!(!socket.exists(), "it is left behind");
    assert_eq!(code(&paths(&[])), 1);
    // One that was killed leaves its socket, at which nobody answers.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert_eq!(code(&paths(&[])), 1);
    assert!(!socket.exists(), "nobody can answer there");
}
