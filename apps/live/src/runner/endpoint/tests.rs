//! Client and server against each other in one process.

use crate::case::TestCase;
use crate::client::CaseClient;
use crate::server;
use crate::settings::{Role, Settings};
use clap::Parser;
use hvq_program::qlog::Logs;
use std::time::Duration;

/// A folder with a certificate and files, and settings of both sides in it.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["www", "downloads", "certs"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let world = Self { folder };
        world.write("certs/cert.pem", made.cert.pem().as_bytes());
        world.write("certs/ca.pem", made.cert.pem().as_bytes());
        world.write("certs/priv.key", made.signing_key.serialize_pem().as_bytes());
        world
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn settings(&self, role: Role, requests: &str) -> Settings {
        let mut settings = Settings::parse_from(["hvq-endpoint", "--role", "client"]);
        settings.role = role;
        settings.requests = requests.to_owned();
        settings.www = self.path("www");
        settings.downloads = self.path("downloads");
        settings.certs = self.path("certs");
        settings.keylog = self.path("keys.log").display().to_string();
        settings.qlog = String::new();
        settings.listen = vec!["127.0.0.1:0".parse().unwrap()];
        settings
    }

    /// Downloads `files` as `case` wants it, and compares them.
    async fn download(&self, case: TestCase, files: &[(&str, usize)]) {
        let server = server::bind(&self.settings(Role::Server, ""), case, &Logs::none()).unwrap();
        let address = server.local_addr().unwrap();
        let accepting = server.clone();
        let www = self.path("www");
        tokio::spawn(async move {
            while let Some(connection) = accepting.accept().await {
                tokio::spawn(server::serve(connection, www.clone()));
            }
        });
        let mut requests = String::new();
        for (name, length) in files {
            let content: Vec<u8> = (0..*length).map(|index| (index % 251) as u8).collect();
            self.write(&format!("www/{name}"), &content);
            requests.push_str(&format!("https://{address}/{name} "));
        }
        let client = CaseClient::new(&self.settings(Role::Client, &requests), case, &Logs::none()).unwrap();
        tokio::time::timeout(Duration::from_secs(30), client.work()).await.unwrap().unwrap();
        for (name, _) in files {
            let (sent, received) =
                (self.path(&format!("www/{name}")), self.path(&format!("downloads/{name}")));
            assert!(std::fs::read(sent).unwrap() == std::fs::read(received).unwrap(), "{case:?}: {name}");
        }
    }
}

const FILES: &[(&str, usize)] = &[("a", 20_000), ("b", 0), ("c", 300_000)];

#[tokio::test]
async fn every_case_downloads_its_files() {
    for case in [
        TestCase::Handshake,
        TestCase::Transfer,
        TestCase::ChaCha20,
        TestCase::KeyUpdate,
        TestCase::Retry,
        TestCase::Resumption,
        TestCase::ZeroRtt,
        TestCase::Http3,
        TestCase::Multiconnect,
        TestCase::Ecn,
        TestCase::Version2,
    ] {
        World::new().download(case, FILES).await;
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_a_failure() {
    let world = World::new();
    for case in [TestCase::Transfer, TestCase::Http3] {
        let server = server::bind(&world.settings(Role::Server, ""), case, &Logs::none()).unwrap();
        let address = server.local_addr().unwrap();
        let www = world.path("www");
        tokio::spawn(async move {
            if let Some(connection) = server.accept().await {
                server::serve(connection, www).await;
            }
        });
        let requests = format!("https://{address}/missing");
        let client = CaseClient::new(&world.settings(Role::Client, &requests), case, &Logs::none()).unwrap();
        let done = tokio::time::timeout(Duration::from_secs(30), client.work()).await.unwrap();
        assert!(done.is_err(), "{case:?}");
    }
}

#[test]
fn names_of_other_cases_are_not_known() {
    assert_eq!(TestCase::named("transfer"), Some(TestCase::Transfer));
    for name in ["", "Transfer", "quick-brown-fox", "versionnegotiation"] {
        assert_eq!(TestCase::named(name), None);
    }
}
