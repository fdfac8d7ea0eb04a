//! Configurations of Nginx.

use crate::error::{LiveError, cannot};
use base64::prelude::{BASE64_STANDARD, Engine};
use hvq_program::tls::SelfSigned;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A configuration. Nginx runs in the foreground as a single process, so that it is gone when that is.
#[derive(Clone, Debug)]
pub struct NginxConfig {
    /// The folder of what is served.
    pub root: PathBuf,
    /// Addresses and ports for plain HTTP.
    pub plain: Vec<String>,
    /// Addresses and ports for TLS with HTTP/2, and for HTTP/3.
    pub secure: Vec<String>,
    /// The certificate and its key, for `secure`.
    pub identity: Option<[PathBuf; 2]>,
    /// Further lines within the server's block.
    pub more: String,
}

impl NginxConfig {
    /// Writes it to `folder`, where Nginx keeps its own files too, and returns the command line that starts `nginx` with it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn command(&self, nginx: &Path, folder: &Path) -> Result<String, LiveError> {
        let file = folder.join("nginx.conf");
        fs::write(&file, self.text(folder)).map_err(cannot("write Nginx's configuration"))?;
        Ok(format!("exec '{}' -e stderr -p '{}' -c '{}'", nginx.display(), folder.display(), file.display()))
    }

    fn text(&self, folder: &Path) -> String {
        let folder = folder.display();
        let mut server = format!("root '{}';\n", self.root.display());
        let mut put = |line: String| writeln!(server, "{line}").expect("writing to a string does not fail");
        for address in &self.plain {
            put(format!("listen {address};"));
        }
        for address in &self.secure {
            put(format!("listen {address} ssl;\nlisten {address} quic reuseport;"));
        }
        if let Some([chain, key]) = &self.identity {
            put("http2 on; http3 on; quic_gso on; http3_stream_buffer_size 1m;".to_owned());
            put(format!("ssl_certificate '{}';\nssl_certificate_key '{}';", chain.display(), key.display()));
        }
        put(self.more.clone());
        format!(
            "daemon off;\nmaster_process off;\npid '{folder}/nginx.pid';\nerror_log stderr error;\n\
             events {{ worker_connections 4096; }}\nhttp {{\n\
             access_log off;\nsendfile on;\ntcp_nopush on;\nkeepalive_requests 100000000;\n\
             client_body_temp_path '{folder}/t1'; proxy_temp_path '{folder}/t2'; fastcgi_temp_path '{folder}/t3';\n\
             uwsgi_temp_path '{folder}/t4'; scgi_temp_path '{folder}/t5';\n\
             default_type application/octet-stream;\nserver {{\n{server}}}\n}}\n"
        )
    }
}

/// A certificate that no name stands in, and its key, as files in `folder`, and the hash of the key by which Chromium is
/// told to believe it: SHA-256 in base64. No client takes it for another host's: each virtual host gets connections of its
/// own, as different servers would.
///
/// # Errors
/// The files cannot be written.
pub fn identity(folder: &Path) -> Result<([PathBuf; 2], String), LiveError> {
    identity_of("hvq.invalid", folder)
}

/// Writes a certificate with `name` in it, and its key, as [`identity`] does.
///
/// # Errors
/// The files cannot be written.
pub(crate) fn identity_of(name: &str, folder: &Path) -> Result<([PathBuf; 2], String), LiveError> {
    let made = SelfSigned::new(&[name.to_owned()]);
    let made = made.map_err(|failure| LiveError::Program { program: "hvq", says: failure.line() })?;
    let files = ["chain.pem", "key.pem"].map(|name| folder.join(name));
    let write = |file: &PathBuf, text: String| fs::write(file, text).map_err(cannot("write a certificate"));
    write(&files[0], made.certificate)?;
    write(&files[1], made.key)?;
    let hash = ring::digest::digest(&ring::digest::SHA256, &made.public_key);
    Ok((files, BASE64_STANDARD.encode(hash)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_what_is_served_and_where() {
        let folder = tempfile::tempdir().unwrap();
        let (identity, hash) = identity(folder.path()).unwrap();
        assert_eq!(hash.len(), 44);
        let site = NginxConfig {
            root: "/srv".into(),
            plain: vec!["80".to_owned()],
            secure: vec!["443".to_owned()],
            identity: Some(identity),
            more: "location = /x { return 204; }".to_owned(),
        };
        let text = site.text(Path::new("/f"));
        for part in ["root '/srv'", "listen 80;", "listen 443 quic reuseport;", "http3 on", "return 204"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
