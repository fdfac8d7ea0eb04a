//! TLS configurations, made from the options of C.

use crate::address::hvq_bytes;
use crate::admission::admission;
use crate::error::{Failure, HVQ_ERR_TLS};
use crate::guard::{self, Versioned};
use crate::session::Store;
use crate::tls::*;
use crate::transport::{self, is_on, wrong};
use bytes::Bytes;
use hvq_transport::crypto::keys::Suite;
use hvq_transport::crypto::session::{
    CertificateVerdict, ClientTls, EarlyData, Identity, KeyLog, NameCheck, Presented, ServerTls,
    TlsConfigError, Verifier, Verify,
};
use hvq_transport::endpoint::{ClientConfig, RetryPolicy, ServerConfig};
use std::ffi::{CString, c_char, c_void};
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;

const NO_BYTES: hvq_bytes = hvq_bytes { data: ptr::null(), length: 0 };

// SAFETY: the struct begins with its size and holds numbers, pointers and functions, for which zeros are NULL.
unsafe impl Versioned for hvq_client_options {
    const FIRST_SIZE: usize = mem::offset_of!(Self, sessions);

    fn defaults() -> Self {
        Self {
            size: mem::size_of::<Self>(),
            transport: ptr::null(),
            alpn: ptr::null(),
            alpn_count: 0,
            ca_file: ptr::null(),
            ca_pem: NO_BYTES,
            verify: None,
            verify_user: ptr::null_mut(),
            insecure: 0,
            check_name: 0,
            ssl_ctx: ptr::null_mut(),
            groups: ptr::null(),
            keylog: None,
            keylog_user: ptr::null_mut(),
            sessions: ptr::null(),
            early_data: 0,
            reserved: 0,
            token: NO_BYTES,
            suites: ptr::null(),
            suite_count: 0,
        }
    }
}

// SAFETY: as above.
unsafe impl Versioned for hvq_server_options {
    const FIRST_SIZE: usize = mem::offset_of!(Self, admission);

    fn defaults() -> Self {
        Self {
            size: mem::size_of::<Self>(),
            transport: ptr::null(),
            alpn: ptr::null(),
            alpn_count: 0,
            certificate_file: ptr::null(),
            key_file: ptr::null(),
            certificate_pem: NO_BYTES,
            key_pem: NO_BYTES,
            ssl_ctx: ptr::null_mut(),
            keylog: None,
            keylog_user: ptr::null_mut(),
            retry_from: match RetryPolicy::default() {
                RetryPolicy::Always => 0,
                RetryPolicy::Never => u64::MAX,
                RetryPolicy::WhenBusy(count) => count as u64,
            },
            admission: None,
            admission_user: ptr::null_mut(),
            early_data: 0,
            reserved: 0,
            early_data_context: NO_BYTES,
            suites: ptr::null(),
            suite_count: 0,
        }
    }
}

/// The first argument of a callback, which stands calls from several threads, as the documentation of callbacks asks.
#[derive(Clone, Copy)]
pub(crate) struct User(*mut c_void);

// SAFETY: the documentation of callbacks asks for it.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    /// The argument.
    pub(crate) fn pointer(self) -> *mut c_void {
        self.0
    }
}

fn tls(error: TlsConfigError) -> Failure {
    Failure::because(HVQ_ERR_TLS, error)
}

impl hvq_bytes {
    /// The bytes.
    ///
    /// # Safety
    ///
    /// They are there for as long as the result is used.
    pub(crate) unsafe fn get<'a>(self) -> Result<&'a [u8], Failure> {
        // SAFETY: the caller says so.
        unsafe { guard::elements(self.data, self.length) }
    }
}

fn early_data(switch: u32) -> Result<EarlyData, Failure> {
    Ok(if is_on(switch)? { EarlyData::On } else { EarlyData::Off })
}

/// Cipher suites by their numbers.
unsafe fn suites(list: *const u16, count: usize) -> Result<Vec<Suite>, Failure> {
    // SAFETY: the caller passes so many numbers.
    let numbers = unsafe { guard::elements(list, count) }?;
    let suite =
        |number: &u16| Suite::from_code_point(*number).ok_or_else(|| wrong("an unknown cipher suite"));
    numbers.iter().map(suite).collect()
}

unsafe fn protocols(list: *const *const c_char, count: usize) -> Result<Vec<Vec<u8>>, Failure> {
    // SAFETY: the caller passes a list of texts.
    let names = unsafe { guard::elements(list, count) }?;
    // SAFETY: as above.
    names.iter().map(|name| Ok(unsafe { guard::text(*name) }?.as_bytes().to_vec())).collect()
}

fn keylog(callback: hvq_keylog_callback, user: *mut c_void) -> Option<KeyLog> {
    let (call, user) = (callback?, User(user));
    Some(Box::new(move |line| {
        if let Ok(line) = CString::new(line) {
            // SAFETY: the callback may be called with its `user`, and the text ends with a zero byte.
            unsafe { call(user.pointer(), line.as_ptr()) };
        }
    }))
}

fn verifier(callback: hvq_verify_callback, user: *mut c_void) -> Option<Verifier> {
    let (call, user) = (callback?, User(user));
    Some(Arc::new(move |presented: Presented<'_>| {
        let Ok(name) = CString::new(presented.server_name) else {
            return CertificateVerdict::Refused { alert: 0 };
        };
        let bytes = |der: &Vec<u8>| hvq_bytes { data: der.as_ptr(), length: der.len() };
        let chain: Vec<hvq_bytes> = presented.chain.iter().map(bytes).collect();
        // SAFETY: the callback may be called with its `user`, and everything else is valid during the call.
        match unsafe { call(user.pointer(), name.as_ptr(), chain.as_ptr(), chain.len()) } {
            HVQ_VERIFY_TRUSTED => CertificateVerdict::Trusted,
            HVQ_VERIFY_PENDING => CertificateVerdict::Pending,
            other => CertificateVerdict::Refused { alert: u8::try_from(other.unsigned_abs()).unwrap_or(0) },
        }
    }))
}

impl hvq_client_options {
    /// The configuration.
    ///
    /// # Safety
    ///
    /// Everything that is pointed to is as the header says.
    pub(crate) unsafe fn client(self) -> Result<hvq_client_config, Failure> {
        // SAFETY: the caller says so, here and below.
        let transport = unsafe { transport::read(self.transport) }?;
        // SAFETY: as above.
        let alpn = unsafe { protocols(self.alpn, self.alpn_count) }?;
        let ways = [
            !self.ca_file.is_null(),
            self.ca_pem.length > 0,
            self.verify.is_some(),
            !self.ssl_ctx.is_null(),
            self.insecure != 0,
        ];
        if ways.into_iter().filter(|way| *way).count() > 1 {
            return Err(wrong("more than one of ca_file, ca_pem, verify, ssl_ctx and insecure"));
        }
        let tls_config = match NonNull::new(self.ssl_ctx) {
            // SAFETY: the caller passes a valid context.
            Some(context) => unsafe { self.with_context(context, &alpn) }?,
            // SAFETY: as above.
            None => unsafe { self.own_tls(&alpn) }?,
        };
        // SAFETY: as above.
        let token = unsafe { self.token.get() }?;
        let mut config = ClientConfig::new(tls_config, transport.config);
        config.set_token((!token.is_empty()).then(|| Bytes::copy_from_slice(token)));
        Ok(hvq_client_config { config, qlog: transport.qlog })
    }

    unsafe fn with_context(&self, context: NonNull<c_void>, alpn: &[Vec<u8>]) -> Result<ClientTls, Failure> {
        if self.keylog.is_some() || !self.groups.is_null() || self.suite_count > 0 {
            return Err(wrong("with ssl_ctx, key log, groups and cipher suites are the context's business"));
        }
        // SAFETY: the caller passes a valid pointer or NULL.
        let store = unsafe { self.store() }?;
        let early_data = early_data(self.early_data)?;
        let check = if self.check_name == 1 { NameCheck::Required } else { NameCheck::None };
        // SAFETY: the caller says so.
        let tls_config = unsafe { ClientTls::from_context(context, alpn, check) }.map_err(tls)?;
        match store {
            Some(_) if alpn.is_empty() => Err(wrong("with ssl_ctx and sessions, alpn names the protocols")),
            Some(store) => tls_config.with_sessions(Arc::new(store), early_data).map_err(tls),
            None if early_data == EarlyData::On => Err(wrong("0-RTT needs sessions")),
            None => Ok(tls_config),
        }
    }

    /// The store of tickets, if there is one.
    ///
    /// # Safety
    ///
    /// `sessions` is as the header says.
    unsafe fn store(&self) -> Result<Option<Store>, Failure> {
        if self.sessions.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller says so.
        Store::new(unsafe { guard::versioned(self.sessions) }?).map(Some)
    }

    unsafe fn own_tls(&self, alpn: &[Vec<u8>]) -> Result<ClientTls, Failure> {
        // SAFETY: the caller passes valid pointers or NULL.
        let (ca_file, ca_pem, groups) = unsafe {
            (guard::optional_text(self.ca_file)?, self.ca_pem.get()?, guard::optional_text(self.groups)?)
        };
        let verify = match (ca_file, ca_pem, self.insecure) {
            (Some(file), ..) => Verify::CaFile(file.into()),
            (_, [_, ..], _) => Verify::CaPem(ca_pem.to_vec()),
            (_, _, 1) => Verify::Insecure,
            (_, _, 0) => Verify::SystemRoots,
            _ => return Err(wrong("insecure is 0 or 1")),
        };
        let mut builder = ClientTls::builder().alpn(alpn).verify(verify);
        if let Some(verifier) = verifier(self.verify, self.verify_user) {
            builder = builder.verifier(verifier);
        }
        if let Some(groups) = groups {
            builder = builder.curves(groups);
        }
        if let Some(keylog) = keylog(self.keylog, self.keylog_user) {
            builder = builder.keylog(keylog);
        }
        // SAFETY: as above.
        builder = builder.suites(unsafe { suites(self.suites, self.suite_count) }?);
        // SAFETY: as above.
        if let Some(store) = unsafe { self.store() }? {
            builder = builder.sessions(Arc::new(store));
        }
        builder.early_data(early_data(self.early_data)?).build().map_err(tls)
    }
}

impl hvq_server_options {
    /// The configuration.
    ///
    /// # Safety
    ///
    /// Everything that is pointed to is as the header says.
    pub(crate) unsafe fn server(self) -> Result<hvq_server_config, Failure> {
        // SAFETY: the caller says so, here and below.
        let transport = unsafe { transport::read(self.transport) }?;
        let tls_config = match NonNull::new(self.ssl_ctx) {
            Some(_) if self.keylog.is_some() || self.early_data != 0 || self.suite_count > 0 => {
                return Err(wrong(
                    "with ssl_ctx, key log, 0-RTT and cipher suites are not the library's business",
                ));
            }
            // SAFETY: the caller passes a valid context.
            Some(context) => unsafe { ServerTls::from_context(context) }.map_err(tls)?,
            // SAFETY: as above.
            None => unsafe { self.own_tls() }?,
        };
        let mut config = ServerConfig::new(tls_config, transport.config);
        config
            .set_retry(match self.retry_from {
                0 => RetryPolicy::Always,
                u64::MAX => RetryPolicy::Never,
                count => RetryPolicy::WhenBusy(usize::try_from(count).unwrap_or(usize::MAX)),
            })
            .set_admission(admission(self.admission, User(self.admission_user)));
        Ok(hvq_server_config { config, qlog: transport.qlog })
    }

    unsafe fn own_tls(&self) -> Result<ServerTls, Failure> {
        // SAFETY: the caller passes valid pointers or NULL.
        let (alpn, chain_file, key_file, chain, key) = unsafe {
            (
                protocols(self.alpn, self.alpn_count)?,
                guard::optional_text(self.certificate_file)?,
                guard::optional_text(self.key_file)?,
                self.certificate_pem.get()?,
                self.key_pem.get()?,
            )
        };
        let identity = match (chain_file, key_file) {
            (Some(chain), Some(key)) => Identity::Files { chain: chain.into(), key: key.into() },
            (None, None) if !chain.is_empty() => Identity::Pem { chain: chain.to_vec(), key: key.to_vec() },
            _ => {
                return Err(wrong("a server needs a certificate and a key, both in files or both in memory"));
            }
        };
        let mut builder = ServerTls::builder(identity).alpn(alpn);
        if let Some(keylog) = keylog(self.keylog, self.keylog_user) {
            builder = builder.keylog(keylog);
        }
        // SAFETY: the caller passes valid pointers or NULL.
        let (suites, context) =
            unsafe { (suites(self.suites, self.suite_count)?, self.early_data_context.get()?) };
        builder = builder.suites(suites).early_data(early_data(self.early_data)?);
        if !context.is_empty() {
            builder = builder.early_data_context(context);
        }
        builder.build().map_err(tls)
    }
}
