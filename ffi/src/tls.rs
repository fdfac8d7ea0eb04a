//! TLS, and what connections are made from.
//!
//! A client configuration serves any number of connections and endpoints, a server configuration any number of endpoints.
//! Both are not changed once they are made, may be used by several threads at a time, and may be freed as soon as no call
//! uses them: connections keep what they need.

use crate::address::hvq_bytes;
use crate::admission::hvq_admission_callback;
use crate::config::hvq_transport_config;
use crate::error::hvq_result;
use crate::guard::{self, entry};
use crate::session::hvq_session_store;
use hvq_qlog::Qlog;
use hvq_transport::endpoint::{ClientConfig, ServerConfig};
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// The server is not who it says: the handshake fails with the alert certificate_unknown. A negative answer -N fails it
/// with the alert N, such as -42 for a bad certificate and -45 for one that expired.
pub const HVQ_VERIFY_REFUSED: i32 = 0;
/// The server is who it says.
pub const HVQ_VERIFY_TRUSTED: i32 = 1;
/// Not known yet: the handshake waits. The callback is called again when more arrives, and by
/// hvq_connection_verify_again().
pub const HVQ_VERIFY_PENDING: i32 = 2;

/// Judges the certificates of a server: the name or address that the client asked for, and `count` certificates in DER, the
/// server's own first. Everything is valid during the call only. It answers one of HVQ_VERIFY_; it must check the name
/// too. It is called within calls on the endpoint, on their thread, and must not call the library for the same endpoint.
pub type hvq_verify_callback = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        server_name: *const c_char,
        chain: *const hvq_bytes,
        count: usize,
    ) -> i32,
>;

/// Called with each line of a key log in the format of NSS, which tools such as Wireshark decrypt captures with: text
/// without a line break that ends with a zero byte and is valid during the call. Threads and calls as for other callbacks.
pub type hvq_keylog_callback = Option<unsafe extern "C" fn(user: *mut c_void, line: *const c_char)>;

/// The options of a client configuration, filled with the defaults by hvq_client_options_init().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_client_options {
    /// The size of this struct, as the caller was compiled. Set by the init function.
    pub size: usize,
    /// Limits and choices of the connections; NULL for the defaults.
    pub transport: *const hvq_transport_config,
    /// Application protocols to offer, the preferred one first, such as "h3". At least one is needed, unless `ssl_ctx` has
    /// some.
    pub alpn: *const *const c_char,
    /// The number of protocols.
    pub alpn_count: usize,
    /// A PEM file with the certificates that servers' certificates must go back to. Without any of `ca_file`, `ca_pem`,
    /// `verify`, `ssl_ctx` and `insecure` the system's roots count.
    pub ca_file: *const c_char,
    /// The same certificates as PEM in memory.
    pub ca_pem: hvq_bytes,
    /// Judges certificates in place of the library.
    pub verify: hvq_verify_callback,
    /// Passed to `verify`; must be valid as long as connections of this configuration exist.
    pub verify_user: *mut c_void,
    /// 1 verifies nothing: whoever is on the network path can read and change everything. For tests.
    pub insecure: u32,
    /// With `ssl_ctx`: 1 has the library check that the certificate is for the server's name. Must be 0 for contexts of
    /// TLS_with_buffers_method and for those that check names themselves.
    pub check_name: u32,
    /// A BoringSSL `SSL_CTX *` of the program, in place of one that the library makes. It must be of the very BoringSSL that
    /// the library is linked with, which is so with libhvq-boringssl.a. A reference is taken; the context is not changed.
    /// Sessions are resumed if its callback for new sessions calls hvq_session_keep().
    pub ssl_ctx: *mut c_void,
    /// Groups for the key exchange, such as "X25519:P-256"; NULL for BoringSSL's choice.
    pub groups: *const c_char,
    /// Called with the secrets of connections, or NULL. Not with `ssl_ctx`.
    pub keylog: hvq_keylog_callback,
    /// Passed to `keylog`.
    pub keylog_user: *mut c_void,
    /// The store of tickets, by which connections resume earlier sessions; NULL for none. The table is copied, what its
    /// `user` points to is not. With `ssl_ctx` see hvq_session_keep().
    pub sessions: *const hvq_session_store,
    /// 1 sends data in 0-RTT with tickets that permit it, 0 does not. Read the warning under Session tickets.
    pub early_data: u32,
    /// 0.
    pub reserved: u32,
    /// A token of an earlier connection to the same server (HVQ_EVENT_TOKEN), for endpoints that did not get it
    /// themselves; those of its own connections an endpoint keeps and uses without being told.
    pub token: hvq_bytes,
    /// Cipher suites to offer, the preferred one first, by the numbers of TLS: 0x1301, 0x1302, 0x1303; NULL for all three.
    /// Not with `ssl_ctx`.
    pub suites: *const u16,
    /// The number of cipher suites.
    pub suite_count: usize,
}

/// The options of a server configuration, filled with the defaults by hvq_server_options_init().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_server_options {
    /// The size of this struct, as the caller was compiled. Set by the init function.
    pub size: usize,
    /// Limits and choices of the connections; NULL for the defaults.
    pub transport: *const hvq_transport_config,
    /// Application protocols, the preferred one first. At least one is needed, unless there is an `ssl_ctx`.
    pub alpn: *const *const c_char,
    /// The number of protocols.
    pub alpn_count: usize,
    /// A PEM file with the certificate chain, the server's own certificate first.
    pub certificate_file: *const c_char,
    /// A PEM file with its private key.
    pub key_file: *const c_char,
    /// In place of the files: the chain as PEM in memory.
    pub certificate_pem: hvq_bytes,
    /// In place of the files: the key as PEM in memory.
    pub key_pem: hvq_bytes,
    /// A BoringSSL `SSL_CTX *` of the program with certificate, key and a callback that selects the protocol; as for clients.
    pub ssl_ctx: *mut c_void,
    /// Called with the secrets of connections, or NULL. Not with `ssl_ctx`.
    pub keylog: hvq_keylog_callback,
    /// Passed to `keylog`.
    pub keylog_user: *mut c_void,
    /// Clients prove their address first (a round trip) while so many handshakes are not complete: 0 always,
    /// UINT64_MAX never.
    pub retry_from: u64,
    /// Decides about each client that asks for a connection, or NULL (see Admission).
    pub admission: hvq_admission_callback,
    /// Passed to `admission`.
    pub admission_user: *mut c_void,
    /// 1 accepts data in 0-RTT, once with each ticket that the same endpoint issued; 0 refuses it. Read the warning under
    /// Session tickets. Not with `ssl_ctx`.
    pub early_data: u32,
    /// 0.
    pub reserved: u32,
    /// Bytes that stand for settings of the program that 0-RTT relies on: tickets issued under other bytes do not open
    /// 0-RTT. None for "hvq".
    pub early_data_context: hvq_bytes,
    /// Cipher suites to accept, as for clients.
    pub suites: *const u16,
    /// The number of cipher suites.
    pub suite_count: usize,
}

/// The configuration of a client's connections.
#[derive(Debug)]
pub struct hvq_client_config {
    pub(crate) config: ClientConfig,
    pub(crate) qlog: Option<Qlog>,
}

/// The configuration of a server's connections.
#[derive(Debug)]
pub struct hvq_server_config {
    pub(crate) config: ServerConfig,
    pub(crate) qlog: Option<Qlog>,
}

/// Fills options with the defaults. `size` is sizeof(hvq_client_options).
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT` if `size` is no size that the struct ever had.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_client_options_init(
    options: *mut hvq_client_options,
    size: usize,
) -> hvq_result {
    // SAFETY: the caller passes a struct of that size.
    entry(|| unsafe { guard::initialise(options, size) })
}

/// Makes a client configuration, to be freed with hvq_client_config_free(). Files are read now.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_UNKNOWN_NAME` for a scheduler or controller, `HVQ_ERR_TLS`,
/// `HVQ_ERR_SYSTEM` for the qlog folder. Nothing is written to `config` then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_client_config_new(
    options: *const hvq_client_options,
    config: *mut *mut hvq_client_config,
) -> hvq_result {
    entry(|| {
        guard::check(config)?;
        // SAFETY: the caller passes options as documented.
        let made = unsafe { guard::versioned(options)?.client()? };
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(config, Box::into_raw(Box::new(made))) }
    })
}

/// Frees a client configuration. NULL is ignored. With a `qlog_folder` it waits, for a second at most, until what was
/// recorded is in the files: who wants all of it frees endpoints first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_client_config_free(config: *mut hvq_client_config) {
    // SAFETY: the caller gives back what hvq_client_config_new made.
    unsafe { free(config, |config| config.qlog) };
}

/// Fills options with the defaults. `size` is sizeof(hvq_server_options).
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT` if `size` is no size that the struct ever had.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_server_options_init(
    options: *mut hvq_server_options,
    size: usize,
) -> hvq_result {
    // SAFETY: the caller passes a struct of that size.
    entry(|| unsafe { guard::initialise(options, size) })
}

/// Makes a server configuration, to be freed with hvq_server_config_free(). Files are read now.
///
/// Errors: those of hvq_client_config_new().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_server_config_new(
    options: *const hvq_server_options,
    config: *mut *mut hvq_server_config,
) -> hvq_result {
    entry(|| {
        guard::check(config)?;
        // SAFETY: the caller passes options as documented.
        let made = unsafe { guard::versioned(options)?.server()? };
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(config, Box::into_raw(Box::new(made))) }
    })
}

/// Frees a server configuration, as hvq_client_config_free() does. NULL is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_server_config_free(config: *mut hvq_server_config) {
    // SAFETY: the caller gives back what hvq_server_config_new made.
    unsafe { free(config, |config| config.qlog) };
}

/// The time for which freeing a configuration waits for its logs.
const PATIENCE: Duration = Duration::from_secs(1);

unsafe fn free<T>(pointer: *mut T, qlog: impl FnOnce(T) -> Option<Qlog>) {
    entry(|| {
        if !pointer.is_null() {
            // SAFETY: the caller gives back what a Box was made into, once.
            if let Some(qlog) = qlog(*unsafe { Box::from_raw(pointer) }) {
                let _slow_disks_keep_nobody_waiting = qlog.flush(PATIENCE);
            }
        }
        Ok(())
    });
}
