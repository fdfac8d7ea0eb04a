//! Session tickets, 0-RTT and tokens.

use crate::talk::{Talk, endpoint};
use boring::ssl::{Ssl, SslContextBuilder, SslMethod, SslSession, SslSessionCacheMode};
use foreign_types::{ForeignType, ForeignTypeRef};
use hvq_ffi::address::{hvq_buffer, hvq_bytes};
use hvq_ffi::counters::{hvq_endpoint_get_statistics, hvq_endpoint_statistics};
use hvq_ffi::endpoint::hvq_endpoint_free;
use hvq_ffi::error::*;
use hvq_ffi::output::*;
use hvq_ffi::session::*;
use hvq_ffi::stream::*;
use hvq_ffi::tls::*;
use std::ffi::{CStr, c_char, c_void};
use std::mem::size_of;
use std::ptr;

/// Tickets as a program keeps them: server name, protocol, ticket.
#[derive(Default)]
struct Kept {
    tickets: Vec<(String, Vec<u8>, Vec<u8>)>,
    asked: usize,
}

unsafe fn copy(of: hvq_bytes) -> Vec<u8> {
    // SAFETY: the library passes valid bytes.
    unsafe { std::slice::from_raw_parts(of.data, of.length) }.to_vec()
}

unsafe extern "C" fn put(user: *mut c_void, name: *const c_char, protocol: hvq_bytes, ticket: hvq_bytes) {
    // SAFETY: the test passes a list, and the library what its documentation says.
    unsafe {
        let name = CStr::from_ptr(name).to_string_lossy().into_owned();
        (*user.cast::<Kept>()).tickets.push((name, copy(protocol), copy(ticket)));
    }
}

unsafe extern "C" fn take(
    user: *mut c_void,
    name: *const c_char,
    protocols: *const hvq_bytes,
    count: usize,
    ticket: *mut hvq_buffer,
) -> i32 {
    // SAFETY: as above.
    unsafe {
        let (kept, name) = (&mut *user.cast::<Kept>(), CStr::from_ptr(name).to_string_lossy());
        let protocols = std::slice::from_raw_parts(protocols, count).iter().map(|name| copy(*name));
        let protocols: Vec<_> = protocols.collect();
        kept.asked += 1;
        let fits =
            |(of, protocol, _): &(String, Vec<u8>, Vec<u8>)| *of == name && protocols.contains(protocol);
        let Some(index) = kept.tickets.iter().rposition(fits) else { return 0 };
        let (.., bytes) = kept.tickets.remove(index);
        let place = &mut *ticket;
        assert!(bytes.len() <= place.capacity && place.capacity == 65_536);
        ptr::copy_nonoverlapping(bytes.as_ptr(), place.data, bytes.len());
        place.length = bytes.len();
        1
    }
}

/// Returns BoringSSL's part of the latest ticket: after the format and the version it is the first part, behind its
/// length.
fn session_of(kept: &Kept) -> Vec<u8> {
    let (.., ticket) = kept.tickets.last().expect("there is a ticket");
    let length = u32::from_be_bytes(ticket[5..9].try_into().expect("these are four bytes"));
    ticket[9..][..length as usize].to_vec()
}

fn store(kept: &mut Kept) -> hvq_session_store {
    let user = ptr::from_mut(kept).cast();
    hvq_session_store { size: size_of::<hvq_session_store>(), user, put: Some(put), take: Some(take) }
}

/// A client that keeps tickets in `kept` and has talked to the server once.
fn acquainted(kept: &mut Kept, early_data: u32) -> Talk {
    let table = store(kept);
    let mut talk = Talk::new(|_, client, server| {
        client.sessions = &table;
        // Any server will do.
        (client.ca_pem.length, client.insecure) = (0, 1);
        (client.early_data, server.early_data) = (early_data, early_data);
    });
    talk.exchange(50);
    assert!(talk.client_said(HVQ_EVENT_CONFIRMED));
    assert_eq!(talk.infos().map(|info| (info.is_resumed, info.early_data)), [(0, HVQ_EARLY_UNUSED); 2]);
    talk
}

#[test]
fn a_ticket_that_the_program_kept_resumes_the_session() {
    let mut kept = Kept::default();
    let user = ptr::from_mut(&mut kept);
    let mut talk = acquainted(&mut kept, 0);
    // SAFETY: no call is under way.
    unsafe {
        assert!(!(*user).tickets.is_empty());
        assert!((*user).tickets.iter().all(|(name, protocol, _)| name == "localhost" && protocol == b"test"));
    }
    talk.connect();
    talk.exchange(50);
    assert_eq!(talk.infos().map(|info| info.is_resumed), [1; 2]);
    // SAFETY: as above. What is no ticket makes a full handshake.
    unsafe {
        (*user).tickets.iter_mut().for_each(|(.., ticket)| ticket.truncate(40));
        talk.connect();
        talk.exchange(50);
        assert_eq!(talk.infos().map(|info| info.is_resumed), [0; 2]);
        (*user).tickets.iter_mut().for_each(|(.., ticket)| ticket.reverse());
        talk.connect();
        talk.exchange(50);
        assert_eq!((talk.infos().map(|info| info.is_resumed), (*user).asked), ([0; 2], 4));
    }
}

#[test]
fn data_in_0_rtt_arrives_with_the_first_datagram_and_is_marked() {
    let mut kept = Kept::default();
    let mut talk = acquainted(&mut kept, 1);
    talk.connect();
    let (mut stream, mut theirs, mut count, mut is_early) =
        (hvq_stream::default(), hvq_stream::default(), 0, 9);
    let mut buffer = [0u8; 16];
    // SAFETY: the endpoints are ours, and everything that is pointed to is above.
    unsafe {
        assert_eq!(hvq_stream_open(talk.client, talk.connection, HVQ_BIDIRECTIONAL, &mut stream), HVQ_OK);
        assert_eq!(hvq_stream_write(talk.client, stream, b"early".as_ptr().cast(), 5, &mut count), HVQ_OK);
        talk.exchange(1);
        assert!(talk.server_said(HVQ_EVENT_EARLY_DATA) && !talk.server_said(HVQ_EVENT_CONNECTED));
        let [_, info] = talk.infos();
        assert_eq!((info.early_data, info.is_early_data), (HVQ_EARLY_ACCEPTED, 1));
        let accepted = talk.accepted.unwrap();
        assert_eq!(hvq_stream_accept(talk.server, accepted, HVQ_BIDIRECTIONAL, &mut theirs), HVQ_OK);
        assert_eq!(hvq_stream_is_early(talk.server, theirs, &mut is_early), HVQ_OK);
        assert_eq!(is_early, 1);
        assert_eq!(hvq_stream_read(talk.server, theirs, buffer.as_mut_ptr().cast(), 16, &mut count), HVQ_OK);
        assert_eq!(&buffer[..count], b"early");
    }
    talk.exchange(20);
    let ends = talk.infos().map(|info| (info.early_data, info.is_early_data, info.is_resumed));
    assert_eq!(ends, [(HVQ_EARLY_ACCEPTED, 0, 1); 2]);
}

#[test]
fn a_server_without_0_rtt_rejects_it_and_gets_the_data_later() {
    let mut kept = Kept::default();
    let mut talk = acquainted(&mut kept, 1);
    // Another server, which does not know the ticket, takes the place of the first.
    let mut other = Talk::new(|_, _, _| {});
    std::mem::swap(&mut talk.server, &mut other.server);
    talk.connect();
    let (mut stream, mut count, mut is_early) = (hvq_stream::default(), 0, 9);
    let mut buffer = [0u8; 16];
    // SAFETY: the endpoints are ours, and everything that is pointed to is above.
    unsafe {
        assert_eq!(hvq_stream_open(talk.client, talk.connection, HVQ_UNIDIRECTIONAL, &mut stream), HVQ_OK);
        assert_eq!(hvq_stream_write(talk.client, stream, b"early".as_ptr().cast(), 5, &mut count), HVQ_OK);
        talk.exchange(20);
        assert!(!talk.server_said(HVQ_EVENT_EARLY_DATA));
        let ends = talk.infos().map(|info| (info.early_data, info.is_resumed));
        assert_eq!(ends, [(HVQ_EARLY_REJECTED, 0), (HVQ_EARLY_UNUSED, 0)]);
        let theirs = hvq_stream { connection: talk.accepted.unwrap(), id: stream.id };
        let mut accepted = hvq_stream::default();
        assert_eq!(
            hvq_stream_accept(talk.server, theirs.connection, HVQ_UNIDIRECTIONAL, &mut accepted),
            HVQ_OK
        );
        assert_eq!(accepted, theirs);
        assert_eq!(hvq_stream_read(talk.server, theirs, buffer.as_mut_ptr().cast(), 16, &mut count), HVQ_OK);
        assert_eq!(&buffer[..count], b"early");
        assert_eq!((hvq_stream_is_early(talk.server, theirs, &mut is_early), is_early), (HVQ_OK, 0));
    }
}

#[test]
fn a_token_that_the_program_takes_elsewhere_proves_the_address() {
    let mut talk = Talk::new(|_, _, server| server.retry_from = 0);
    talk.exchange(50);
    assert!(talk.client_said(HVQ_EVENT_TOKEN));
    let token = talk.told.clone();
    let counters = |talk: &Talk| {
        let mut counters = hvq_endpoint_statistics::default();
        // SAFETY: the endpoint is ours, and so is the struct.
        assert_eq!(unsafe { hvq_endpoint_get_statistics(talk.server, &mut counters) }, HVQ_OK);
        (counters.retries, counters.proven_addresses)
    };
    let (retries, proven) = counters(&talk);
    assert_eq!(retries, 1);
    // Another endpoint, which knows of no token, with a configuration that does.
    let mut options: hvq_client_options = crate::pair::c::filled(hvq_client_options_init);
    let protocols = [c"test".as_ptr()];
    (options.alpn, options.alpn_count, options.insecure) = (protocols.as_ptr(), 1, 1);
    options.token = hvq_bytes { data: token.as_ptr(), length: token.len() };
    // SAFETY: everything that is pointed to is above, and what is freed is not used any more.
    unsafe {
        assert_eq!(hvq_endpoint_free(talk.client), HVQ_OK);
        talk.client = endpoint(ptr::null());
        hvq_client_config_free(talk.config);
        assert_eq!(hvq_client_config_new(&options, &mut talk.config), HVQ_OK);
    }
    talk.connect();
    talk.exchange(50);
    assert!(talk.client_said(HVQ_EVENT_CONFIRMED));
    assert_eq!(counters(&talk), (retries, proven + 1));
}

#[test]
fn contexts_of_the_program_resume_sessions_if_their_callback_passes_them_on() {
    let mut context = SslContextBuilder::new(SslMethod::tls()).expect("there is memory");
    context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
    context.set_new_session_callback(|ssl, session| {
        let mut is_kept = 9;
        // SAFETY: both are what BoringSSL passed.
        let result = unsafe { hvq_session_keep(ssl.as_ptr().cast(), session.as_ptr().cast(), &mut is_kept) };
        assert_eq!((result, is_kept), (HVQ_OK, 1));
    });
    let context = context.build();
    let mut kept = Kept::default();
    let table = store(&mut kept);
    let mut talk = Talk::new(|_, client, server| {
        client.sessions = &table;
        client.ca_pem.length = 0;
        client.ssl_ctx = context.as_ptr().cast();
        (client.early_data, server.early_data) = (1, 1);
    });
    talk.exchange(50);
    assert_eq!(talk.infos().map(|info| (info.is_resumed, info.early_data)), [(0, HVQ_EARLY_UNUSED); 2]);
    talk.connect();
    let (mut stream, mut count) = (hvq_stream::default(), 0);
    // SAFETY: the endpoint is ours, and everything that is pointed to is above.
    unsafe {
        assert_eq!(hvq_stream_open(talk.client, talk.connection, HVQ_BIDIRECTIONAL, &mut stream), HVQ_OK);
        assert_eq!(hvq_stream_write(talk.client, stream, b"early".as_ptr().cast(), 5, &mut count), HVQ_OK);
    }
    talk.exchange(50);
    assert_eq!(talk.infos().map(|info| (info.is_resumed, info.early_data)), [(1, HVQ_EARLY_ACCEPTED); 2]);
    // Connections that are not of the library are left to the program.
    let (foreign, mut is_kept) = (Ssl::new(&context).expect("there is memory"), 9);
    let session = SslSession::from_der(&session_of(&kept)).expect("it was written by BoringSSL");
    let (ssl, session) = (foreign.as_ptr().cast(), session.as_ptr().cast());
    // SAFETY: both are valid or NULL, and nobody else uses them.
    unsafe {
        assert_eq!((hvq_session_keep(ssl, session, &mut is_kept), is_kept), (HVQ_OK, 0));
        assert_eq!(hvq_session_keep(ptr::null_mut(), session, &mut is_kept), HVQ_ERR_NULL);
        assert_eq!(hvq_session_keep(ssl, ptr::null_mut(), &mut is_kept), HVQ_ERR_NULL);
        assert_eq!(hvq_session_keep(ssl, session, ptr::null_mut()), HVQ_ERR_NULL);
    }
}

#[test]
fn stores_need_both_functions_and_with_a_context_of_the_program_protocols() {
    let mut kept = Kept::default();
    let mut options: hvq_client_options = crate::pair::c::filled(hvq_client_options_init);
    let protocols = [c"test".as_ptr()];
    (options.alpn, options.alpn_count, options.insecure) = (protocols.as_ptr(), 1, 1);
    let mut config = ptr::null_mut();
    for half in [
        hvq_session_store { put: None, ..store(&mut kept) },
        hvq_session_store { take: None, ..store(&mut kept) },
    ] {
        options.sessions = &half;
        // SAFETY: everything that is pointed to is above.
        assert_eq!(unsafe { hvq_client_config_new(&options, &mut config) }, HVQ_ERR_NULL);
    }
    options.sessions = ptr::null();
    options.early_data = 2;
    // SAFETY: as above.
    assert_eq!(unsafe { hvq_client_config_new(&options, &mut config) }, HVQ_ERR_ARGUMENT);
    let context = SslContextBuilder::new(SslMethod::tls()).expect("there is memory").build();
    (options.early_data, options.insecure, options.ssl_ctx) = (1, 0, context.as_ptr().cast());
    // SAFETY: as above. 0-RTT without tickets.
    assert_eq!(unsafe { hvq_client_config_new(&options, &mut config) }, HVQ_ERR_ARGUMENT);
    let table = store(&mut kept);
    (options.sessions, options.alpn_count) = (&table, 0);
    // SAFETY: as above. Tickets for no protocol.
    assert_eq!(unsafe { hvq_client_config_new(&options, &mut config) }, HVQ_ERR_ARGUMENT);
}
