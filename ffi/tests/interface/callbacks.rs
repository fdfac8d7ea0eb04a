//! Tests of callbacks: verification, key logs, logs, schedulers; contexts of BoringSSL that are handed in.

use crate::pair::identity;
use crate::talk::{Talk, route};
use boring::ssl::{SslContext, SslContextBuilder, SslFiletype, SslMethod, SslVerifyMode};
use foreign_types::ForeignType;
use hvq_ffi::address::hvq_bytes;
use hvq_ffi::config::hvq_transport_config;
use hvq_ffi::connection::hvq_connection_verify_again;
use hvq_ffi::endpoint::hvq_endpoint_poll;
use hvq_ffi::error::{HVQ_ERR_BUSY, HVQ_OK};
use hvq_ffi::log::HVQ_LOG_DEBUG;
use hvq_ffi::output::*;
use hvq_ffi::path::{hvq_path, hvq_path_open};
use hvq_ffi::scheduler::*;
use hvq_ffi::stream::*;
use hvq_ffi::tls::*;
use std::ffi::{CStr, c_char, c_void};
use std::mem::{MaybeUninit, size_of};
use std::ptr;

/// The answer of a callback, and the arguments that it saw.
#[derive(Default)]
struct Judge {
    answer: i32,
    asked: usize,
    name: String,
    certificates: usize,
}

unsafe extern "C" fn judge(
    user: *mut c_void,
    name: *const c_char,
    chain: *const hvq_bytes,
    count: usize,
) -> i32 {
    // SAFETY: the test passes a judge, and the library what its documentation says.
    let (judge, name, chain) = unsafe {
        (&mut *user.cast::<Judge>(), CStr::from_ptr(name), std::slice::from_raw_parts(chain, count))
    };
    judge.asked += 1;
    judge.name = name.to_string_lossy().into_owned();
    judge.certificates = chain.iter().filter(|der| der.length > 100).count();
    judge.answer
}

fn judged(judge_state: &mut Judge) -> Talk {
    Talk::new(|_, client, _| {
        client.ca_pem.length = 0;
        client.verify = Some(judge);
        client.verify_user = ptr::from_mut(judge_state).cast();
    })
}

#[test]
fn a_callback_that_trusts_the_server_lets_the_handshake_go_on() {
    let mut state = Judge { answer: HVQ_VERIFY_TRUSTED, ..Judge::default() };
    let mut talk = judged(&mut state);
    talk.exchange(50);
    assert!(talk.client_said(HVQ_EVENT_CONNECTED));
    drop(talk);
    assert_eq!((state.name.as_str(), state.certificates, state.asked), ("localhost", 1, 1));
}

#[test]
fn a_callback_that_refuses_the_server_ends_the_handshake_with_its_alert() {
    // RFC 9001 §4.8: the code is 0x100 and the alert; RFC 8446 §6.2: 46 is certificate_unknown, 45 certificate_expired.
    for (answer, alert) in [(HVQ_VERIFY_REFUSED, 46), (-45, 45), (-1000, 46), (77, 46)] {
        let mut state = Judge { answer, ..Judge::default() };
        let mut talk = judged(&mut state);
        talk.exchange(50);
        assert_eq!(talk.client_end(), Some((HVQ_CLOSED_BY_ERROR, 0x100 + alert)), "{answer}");
    }
}

#[test]
fn a_verdict_may_come_later() {
    let mut state = Judge { answer: HVQ_VERIFY_PENDING, ..Judge::default() };
    let user = ptr::from_mut(&mut state);
    let mut talk = judged(&mut state);
    talk.exchange(50);
    assert!(!talk.client_said(HVQ_EVENT_CONNECTED) && talk.client_end().is_none());
    // SAFETY: no call is under way, and the judge lives as long as the test.
    unsafe {
        assert!((*user).asked >= 1);
        (*user).answer = HVQ_VERIFY_TRUSTED;
        assert_eq!(hvq_connection_verify_again(talk.client, talk.connection, talk.now), HVQ_OK);
    }
    talk.exchange(20);
    assert!(talk.client_said(HVQ_EVENT_CONFIRMED));
    // SAFETY: as above. It comes too late to matter.
    unsafe {
        (*user).answer = HVQ_VERIFY_REFUSED;
        assert_eq!(hvq_connection_verify_again(talk.client, talk.connection, talk.now), HVQ_OK);
    }
    talk.exchange(5);
    assert!(talk.client_end().is_none());
}

/// A context as a program makes it, that trusts `chain`.
fn client_context(chain: &str) -> SslContext {
    let mut context = SslContextBuilder::new(SslMethod::tls()).expect("there is memory");
    context.set_verify(SslVerifyMode::PEER);
    let root = boring::x509::X509::from_pem(chain.as_bytes()).expect("the chain is valid");
    context.cert_store_mut().add_cert(root).expect("it is the first one");
    context.build()
}

#[test]
fn contexts_of_the_program_serve_both_ends_and_are_left_alone() {
    let (chain, key) = identity();
    let folder = std::env::temp_dir().join(format!("hvq-ffi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("chain.pem"), &chain).unwrap();
    std::fs::write(folder.join("key.pem"), &key).unwrap();
    let mut server = SslContextBuilder::new(SslMethod::tls()).unwrap();
    server.set_certificate_chain_file(folder.join("chain.pem")).unwrap();
    server.set_private_key_file(folder.join("key.pem"), SslFiletype::PEM).unwrap();
    server.set_alpn_select_callback(|_, _| Ok(b"test"));
    std::fs::remove_dir_all(&folder).unwrap();
    let (server, trusting, doubting) =
        (server.build(), client_context(&chain), client_context(&identity().0));
    let talk = |context: &SslContext, check_name| {
        let mut talk = Talk::new(|_, client, options| {
            client.ca_pem.length = 0;
            client.ssl_ctx = context.as_ptr().cast();
            client.check_name = check_name;
            options.ssl_ctx = server.as_ptr().cast();
        });
        talk.exchange(50);
        talk
    };
    for check_name in [0, 1] {
        assert!(talk(&trusting, check_name).client_said(HVQ_EVENT_CONNECTED));
        // RFC 8446 §6.2: 48 is unknown_ca, 46 certificate_unknown.
        let end = talk(&doubting, check_name).client_end().unwrap();
        assert!(end.0 == HVQ_CLOSED_BY_ERROR && (0x128..=0x130).contains(&end.1), "{end:?}");
    }
}

unsafe extern "C" fn collect(user: *mut c_void, line: *const c_char) {
    // SAFETY: the test passes a list, and the library text.
    unsafe { (*user.cast::<Vec<String>>()).push(CStr::from_ptr(line).to_string_lossy().into_owned()) };
}

unsafe extern "C" fn collect_log(user: *mut c_void, _now: u64, level: u32, line: *const c_char) {
    assert!((1..=HVQ_LOG_DEBUG).contains(&level));
    // SAFETY: as above.
    unsafe { collect(user, line) };
}

#[test]
fn key_logs_and_logs_are_lines() {
    let (mut keys, mut lines) = (Vec::<String>::new(), Vec::<String>::new());
    let mut talk = Talk::new(|transport, client, _| {
        client.keylog = Some(collect);
        client.keylog_user = ptr::from_mut(&mut keys).cast();
        transport.log = Some(collect_log);
        transport.log_user = ptr::from_mut(&mut lines).cast();
        transport.log_level = HVQ_LOG_DEBUG;
    });
    talk.exchange(30);
    drop(talk);
    assert!(keys.iter().any(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")), "{keys:?}");
    for wanted in ["started: 127.0.0.1:1000 to 127.0.0.1:2000", "Handshake(Confirmed)", "server "] {
        assert!(lines.iter().any(|line| line.contains(wanted)), "{wanted}: {lines:?}");
    }
    assert!(lines.iter().all(|line| !line.contains('\n')));
}

/// The counters of a scheduler. It calls the library, as it must not.
#[derive(Default)]
struct Seen {
    endpoint: *mut hvq_ffi::hvq_endpoint,
    created: usize,
    destroyed: usize,
    placed: usize,
    observed: usize,
    refused: usize,
    allowed: usize,
}

unsafe extern "C" fn create(user: *mut c_void) -> *mut c_void {
    // SAFETY: the test passes what is seen.
    unsafe { (*user.cast::<Seen>()).created += 1 };
    user
}

unsafe extern "C" fn destroy(state: *mut c_void) {
    // SAFETY: as above.
    unsafe { (*state.cast::<Seen>()).destroyed += 1 };
}

unsafe extern "C" fn place(
    state: *mut c_void,
    item: *const hvq_item,
    paths: *const hvq_path_view,
    count: usize,
    placement: *mut hvq_placement,
) {
    // SAFETY: as above, and the library passes what its documentation says.
    let (seen, item, paths) =
        unsafe { (&mut *state.cast::<Seen>(), &*item, std::slice::from_raw_parts(paths, count)) };
    seen.placed += 1;
    if !seen.endpoint.is_null() {
        let mut output = MaybeUninit::uninit();
        // SAFETY: the endpoint exists.
        match unsafe { hvq_endpoint_poll(seen.endpoint, 0, output.as_mut_ptr()) } {
            HVQ_ERR_BUSY => seen.refused += 1,
            _ => seen.allowed += 1,
        }
    }
    // The path with the largest number that has room.
    let best = paths.iter().filter(|path| path.room > 0 || item.content == HVQ_CONTENT_ACKNOWLEDGEMENT);
    if let Some(best) = best.max_by_key(|path| path.id) {
        let answer = hvq_placement {
            kind: HVQ_PLACE_ON,
            path: best.id,
            bytes: item.bytes,
            ..hvq_placement::default()
        };
        // SAFETY: as above.
        unsafe { placement.write(answer) };
    }
}

unsafe extern "C" fn observe(state: *mut c_void, observation: *const hvq_observation) {
    // SAFETY: as above.
    unsafe {
        assert!((*observation).kind <= HVQ_OBSERVED_PATH_GONE);
        (*state.cast::<Seen>()).observed += 1;
    }
}

#[test]
fn a_scheduler_of_c_places_frames_and_may_not_call_back() {
    let mut seen = Seen::default();
    let user = ptr::from_mut(&mut seen);
    let table = hvq_scheduler {
        size: size_of::<hvq_scheduler>(),
        user: user.cast(),
        create: Some(create),
        destroy: Some(destroy),
        place: Some(place),
        observe: Some(observe),
        repeats: None,
        first: None,
    };
    let mut talk = Talk::new(|transport: &mut hvq_transport_config, _, _| {
        transport.custom_scheduler = &table;
    });
    talk.exchange(20);
    let mut path = hvq_path::default();
    let mut stream = hvq_stream::default();
    let mut written = 0;
    // SAFETY: the endpoint is ours, and everything that is pointed to is above.
    unsafe {
        assert_eq!(hvq_path_open(talk.client, talk.connection, &route(1), talk.now, &mut path), HVQ_OK);
        talk.exchange(10);
        (*user).endpoint = talk.client;
        assert_eq!(hvq_stream_open(talk.client, talk.connection, HVQ_BIDIRECTIONAL, &mut stream), HVQ_OK);
        let data = [1u8; 1000];
        assert_eq!(hvq_stream_write(talk.client, stream, data.as_ptr().cast(), 1000, &mut written), HVQ_OK);
        let mut output = MaybeUninit::uninit();
        assert_eq!(hvq_endpoint_poll(talk.client, talk.now, output.as_mut_ptr()), HVQ_OK);
        let output: hvq_output = output.assume_init();
        assert_eq!(output.kind, HVQ_OUTPUT_TRANSMIT);
        assert_eq!(output.transmit.route, route(1), "the scheduler prefers the path with the larger number");
        (*user).endpoint = ptr::null_mut();
    }
    drop(talk);
    assert_eq!((seen.created, seen.destroyed), (2, 2));
    assert!(seen.placed > 10 && seen.observed > 10);
    assert!(seen.refused > 0 && seen.allowed == 0, "{} and {}", seen.refused, seen.allowed);
}
