//! Wrong arguments are said in one line, with the exit code that the documentation promises.

use crate::support::{code, run, said};

#[test]
fn wrong_arguments_exit_with_2_and_one_line() {
    for arguments in [
        &[][..],
        &["fly"],
        &["get"],
        &["get", "--colour", "https://localhost/"],
        &["get", "http://localhost/"],
        &["get", "--scheduler", "fastest", "https://localhost/"],
        &["get", "--cc", "tahoe", "https://localhost/"],
        &["get", "--spin-bit", "maybe", "https://localhost/"],
        &["get", "--rotate-packets", "0", "https://localhost/"],
        &["get", "--ciphers", "rot13", "https://localhost/"],
        &["get", "--versions", "v3", "https://localhost/"],
        &["get", "--rotate-every", "often", "https://localhost/"],
        &["get", "--path", "urllc=127.0.0.1,rate=2", "https://localhost/"],
        &["get", "--cacert", "/nonexistent.pem", "https://127.0.0.1:1/"],
        &["get", "-k", "-H", "no header", "https://localhost/"],
        &["get", "-k", "-d", "@/nonexistent", "--log", "a=b=c", "https://localhost/"],
        &["get", "-k", "-d", "@/nonexistent", "https://127.0.0.1:1/"],
        &["get", "-k", "https://ann:secret@127.0.0.1:1/"],
        &["serve"],
        &["serve", "--self-signed", "", "--listen", "127.0.0.1:0"],
        &["serve", "--self-signed", "localhost", "--root", "/nonexistent"],
        &["serve", "--self-signed", "localhost", "--page", "nowhere"],
        &["serve", "--self-signed", "localhost", "--migration", "perhaps"],
        &["serve", "--self-signed", "localhost", "--greasing", "yes"],
        &["serve", "--self-signed", "localhost", "--retry", "sometimes"],
        &["serve", "--self-signed", "localhost", "--listen", "203.0.113.1:1"],
        &["serve", "--cert", "/nonexistent.pem", "--key", "/nonexistent.pem"],
        &["serve", "--self-signed", "localhost", "--channel", "wifi=wlan0"],
        &["emulate"],
        &["emulate", "--channel", "a:127.0.0.1:0=127.0.0.1:1,rtt=x"],
        &["emulate", "--channel", "a:127.0.0.1:0=127.0.0.1:1,rtt=file:/nonexistent.csv"],
        &["emulate", "--channel", "a:203.0.113.1:1=127.0.0.1:1"],
        &["emulate", "--channel", "a:127.0.0.1:9=127.0.0.1:9"],
        &["emulate", "--channel", "a:127.0.0.1:0=127.0.0.1:1", "--channel", "a:127.0.0.1:0=127.0.0.1:2"],
        &["get", "--path", "a=127.0.0.1", "--path", "a=127.0.0.2", "https://localhost:1"],
        &["gateway", "--root", ".", "--self-signed", "a", "--tokens", "/nonexistent"],
        &["gateway", "--root", ".", "--self-signed", "a", "--client", "ann"],
        &["demo", "--pages", "0"],
        &["demo", "--pages", "nowhere"],
        &["demo", "--embb", "XX"],
        &["demo", "--repeat", "0"],
    ] {
        let output = run(arguments);
        let said = said(&output);
        assert_eq!(code(&output), 2, "{arguments:?}: {said}");
        assert!(said.starts_with("hvq: ") && said.lines().count() == 1, "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn help_names_the_exit_codes() {
    #[cfg(target_os = "linux")]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = crate::support::hvq().arg("--help").stdout(full).output().unwrap();
        assert!(code(&output) == 1 && said(&output).contains("standard output"), "{}", said(&output));
    }
    let output = run(["--help"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(code(&output), 0);
    for part in ["serve", "get", "emulate", "demo", "Exit codes", "22 HTTP error status", "143"] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn the_help_of_both_ends_names_what_observers_see() {
    for (command, more) in [("get", "--migrate-after"), ("serve", "--migration")] {
        let text = String::from_utf8(run([command, "--help"]).stdout).unwrap();
        for option in [
            "--spin-bit",
            "--greasing",
            "--ack-frequency",
            "--rotate-packets",
            "--rotate-every",
            "--rotate-idle",
            more,
        ] {
            assert!(text.contains(option), "{command} {option}");
        }
    }
}
