//! Mistakes of programs that can be caught are errors, and the library goes on.

use crate::pair::c::filled;
use crate::talk::{Talk, route};
use hvq_ffi::address::{hvq_buffer, hvq_bytes};
use hvq_ffi::config::hvq_hints;
use hvq_ffi::connection::*;
use hvq_ffi::datagram::*;
use hvq_ffi::endpoint::*;
use hvq_ffi::error::*;
use hvq_ffi::output::HVQ_EVENT_DATAGRAM;
use hvq_ffi::path::*;
use hvq_ffi::stream::*;
use hvq_ffi::tls::*;
use std::ffi::{CStr, c_char};
use std::mem::size_of;
use std::ptr;

/// Returns the message of the last failure on this thread.
fn last_error() -> String {
    let mut text = [0 as c_char; 300];
    // SAFETY: there is that much room, and the text ends with a zero byte.
    unsafe {
        hvq_last_error(text.as_mut_ptr(), text.len());
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    }
}

#[test]
fn freeing_null_is_fine() {
    // SAFETY: NULL is what is tried.
    unsafe {
        assert_eq!(hvq_endpoint_free(ptr::null_mut()), HVQ_OK);
        hvq_client_config_free(ptr::null_mut());
        hvq_server_config_free(ptr::null_mut());
    }
}

#[test]
fn arguments_without_a_meaning_are_errors() {
    let talk = Talk::connected();
    let (client, connection) = (talk.client, talk.connection);
    let (mut count, mut stream) = (0, hvq_stream::default());
    // SAFETY: the endpoint is ours, and everything that is pointed to is valid.
    unsafe {
        for wrong in [1, 99, u64::MAX] {
            assert_eq!(
                hvq_stream_open(client, wrong, HVQ_BIDIRECTIONAL, &mut stream),
                HVQ_ERR_UNKNOWN_CONNECTION
            );
            assert_eq!(hvq_connection_close(client, wrong, 0, ptr::null(), 0), HVQ_ERR_UNKNOWN_CONNECTION);
            let mut stream = hvq_stream { connection, id: wrong };
            assert_eq!(
                hvq_stream_write(client, stream, [1u8].as_ptr().cast(), 1, &mut count),
                HVQ_ERR_UNKNOWN_STREAM
            );
            let path = hvq_path { connection, id: wrong as u32, reserved: 0 };
            assert_eq!(hvq_path_set_hints(client, path, &hvq_hints::default()), HVQ_ERR_UNKNOWN_PATH);
            assert_eq!(hvq_stream_open(client, connection, 7, &mut stream), HVQ_ERR_ARGUMENT);
        }
        let path = hvq_path { connection, id: 0, reserved: 0 };
        assert_eq!(hvq_path_abandon(client, path, 0, talk.now), HVQ_ERR_LAST_PATH);
        assert_eq!(hvq_path_set_status(client, path, 2), HVQ_ERR_ARGUMENT);
        assert_eq!(hvq_path_set_congestion(client, path, c"none".as_ptr()), HVQ_ERR_UNKNOWN_NAME);
        assert!(last_error().contains("cubic"), "{}", last_error());
        assert_eq!(hvq_path_set_dscp(client, path, 64), HVQ_ERR_ARGUMENT);
        for hints in [
            hvq_hints { known: 32, ..hvq_hints::default() },
            hvq_hints { sharing: 4, ..hvq_hints::default() },
            hvq_hints { metering: 3, ..hvq_hints::default() },
        ] {
            assert_eq!(hvq_path_set_hints(client, path, &hints), HVQ_ERR_ARGUMENT);
        }
    }
    let accepted = talk.accepted.unwrap();
    // SAFETY: as above.
    let opened = unsafe { hvq_path_open(talk.server, accepted, &route(1), 0, &mut hvq_path::default()) };
    assert_eq!(opened, HVQ_ERR_NOT_CLIENT);
}

#[test]
fn streams_end_block_and_are_reset_as_documented() {
    let mut talk = Talk::connected();
    let (mut stream, mut count, mut buffer) = (hvq_stream::default(), 0, [0u8; 64]);
    // SAFETY: the endpoints are ours, and everything that is pointed to is above.
    unsafe {
        assert_eq!(hvq_stream_open(talk.client, talk.connection, HVQ_BIDIRECTIONAL, &mut stream), HVQ_OK);
        assert_eq!(hvq_stream_write(talk.client, stream, b"hello".as_ptr().cast(), 5, &mut count), HVQ_OK);
        assert_eq!(hvq_stream_end_message(talk.client, stream, talk.now + 1_000_000_000), HVQ_OK);
        assert_eq!(hvq_stream_finish(talk.client, stream), HVQ_OK);
        assert_eq!(hvq_stream_finish(talk.client, stream), HVQ_ERR_FINISHED);
        talk.exchange(3);
        let (server, accepted) = (talk.server, talk.accepted.unwrap());
        let mut theirs = hvq_stream::default();
        assert_eq!(hvq_stream_accept(server, accepted, HVQ_BIDIRECTIONAL, &mut theirs), HVQ_OK);
        assert_eq!(theirs.id, stream.id);
        assert_eq!(hvq_stream_read(server, theirs, buffer.as_mut_ptr().cast(), 64, &mut count), HVQ_OK);
        assert_eq!(&buffer[..count], b"hello");
        assert_eq!(hvq_stream_read(server, theirs, buffer.as_mut_ptr().cast(), 64, &mut count), HVQ_ERR_END);
        assert_eq!(hvq_stream_accept(server, accepted, HVQ_BIDIRECTIONAL, &mut theirs), HVQ_ERR_NONE);
        let theirs = hvq_stream { connection: accepted, id: stream.id };
        assert_eq!(hvq_stream_reset(server, theirs, 1 << 62), HVQ_ERR_ARGUMENT);
        assert_eq!(hvq_stream_reset(server, theirs, 77), HVQ_OK);
        talk.exchange(3);
        let read = hvq_stream_read(talk.client, stream, buffer.as_mut_ptr().cast(), 64, &mut count);
        assert_eq!((read, hvq_last_error_code()), (HVQ_ERR_RESET, 77));
    }
}

unsafe extern "C" fn release(user: *mut std::ffi::c_void) {
    // SAFETY: the test passes a counter.
    unsafe { *user.cast::<usize>() += 1 };
}

#[test]
fn bytes_that_are_lent_are_given_back_once() {
    let mut released = 0usize;
    let user = ptr::from_mut(&mut released);
    let data = vec![9u8; 100_000];
    let owned = |length| hvq_owned {
        bytes: hvq_bytes { data: data.as_ptr(), length },
        release: Some(release),
        user: user.cast(),
    };
    let mut talk = Talk::connected();
    let (mut stream, mut count) = (hvq_stream::default(), 0);
    // SAFETY: the endpoint is ours, and everything that is pointed to lives longer.
    unsafe {
        assert_eq!(hvq_stream_open(talk.client, talk.connection, HVQ_UNIDIRECTIONAL, &mut stream), HVQ_OK);
        assert_eq!(hvq_stream_write_owned(talk.client, stream, &owned(100_000), &mut count), HVQ_OK);
        assert_eq!((count, *user), (100_000, 0));
        talk.exchange(200);
        let mut theirs = hvq_stream::default();
        let accepted = talk.accepted.unwrap();
        assert_eq!(hvq_stream_accept(talk.server, accepted, HVQ_UNIDIRECTIONAL, &mut theirs), HVQ_OK);
        assert_eq!(*user, 1, "the peer has everything");
        // Also for calls that fail, whatever the reason.
        assert_eq!(hvq_stream_write_owned(ptr::null_mut(), stream, &owned(3), &mut count), HVQ_ERR_NULL);
        let nobody = hvq_stream { connection: 5, id: 5 };
        assert_eq!(
            hvq_stream_write_owned(talk.client, nobody, &owned(3), &mut count),
            HVQ_ERR_UNKNOWN_CONNECTION
        );
        assert_eq!(*user, 3);
    }
}

#[test]
fn datagrams_go_both_ways_and_have_a_largest_size() {
    let mut talk = Talk::connected();
    let data = [3u8; 100];
    let mut buffer = [0u8; 200];
    let bytes = |length| hvq_bytes { data: data.as_ptr(), length };
    let datagram = hvq_datagram { bytes: bytes(100), deadline: u64::MAX, urgency: 1, reserved: 0 };
    let mut room = hvq_buffer { data: buffer.as_mut_ptr(), capacity: 200, length: 0 };
    // SAFETY: the endpoints are ours, and everything that is pointed to is above.
    unsafe {
        assert_eq!(hvq_datagram_receive(talk.client, talk.connection, &mut room), HVQ_ERR_NONE);
        assert_eq!(hvq_datagram_send(talk.server, talk.accepted.unwrap(), &datagram), HVQ_OK);
        talk.exchange(3);
        assert!(talk.client_said(HVQ_EVENT_DATAGRAM));
        assert_eq!(hvq_datagram_receive(talk.client, talk.connection, &mut room), HVQ_OK);
        assert_eq!(&buffer[..room.length], &data);
        let large = vec![0u8; 3000];
        let bytes = hvq_bytes { data: large.as_ptr(), length: large.len() };
        let datagram = hvq_datagram { bytes, ..datagram };
        assert_eq!(hvq_datagram_send(talk.client, talk.connection, &datagram), HVQ_ERR_TOO_LARGE);
        let mut info = hvq_connection_info::default();
        assert_eq!(hvq_connection_get_info(talk.client, talk.connection, &mut info), HVQ_OK);
        assert!((1000..1500).contains(&info.max_datagram_size));
        assert_eq!((info.is_multipath, info.paths, info.state), (1, 1, HVQ_STATE_CONFIRMED));
    }
}

#[test]
fn structs_of_other_versions_are_understood_or_refused() {
    let mut config = ptr::null_mut();
    // SAFETY: the structs are as large as they say.
    unsafe {
        let mut options: hvq_client_options = filled(hvq_client_options_init);
        let name: [*const c_char; 1] = [c"test".as_ptr()];
        (options.alpn, options.alpn_count, options.insecure) = (name.as_ptr(), 1, 1);
        options.size = 8;
        assert_eq!(hvq_client_config_new(&options, &mut config), HVQ_ERR_ARGUMENT);
        assert!(last_error().contains("init function"));

        // A later version has more fields: fine as long as they are zero.
        #[repr(C)]
        struct Later(hvq_client_options, u64);
        options.size = size_of::<Later>();
        let mut later = Later(options, 0);
        assert_eq!(hvq_client_config_new(ptr::from_ref(&later).cast(), &mut config), HVQ_OK);
        hvq_client_config_free(config);
        later.1 = 1;
        assert_eq!(hvq_client_config_new(ptr::from_ref(&later).cast(), &mut config), HVQ_ERR_ARGUMENT);
        assert!(last_error().contains("later version"));

        options.size = size_of::<hvq_client_options>();
        options.ca_file = c"ca.pem".as_ptr();
        assert_eq!(hvq_client_config_new(&options, &mut config), HVQ_ERR_ARGUMENT);
        (options.insecure, options.alpn_count) = (0, 0);
        assert_eq!(hvq_client_config_new(&options, &mut config), HVQ_ERR_TLS);
    }
}

#[test]
fn an_endpoint_goes_from_thread_to_thread_and_refuses_two_at_a_time() {
    let talk = Talk::connected();
    let endpoint = talk.client as usize;
    let connection = talk.connection;
    let look = move || {
        let mut info = hvq_connection_info::default();
        // SAFETY: the endpoint lives until the threads have ended.
        unsafe { hvq_connection_get_info(endpoint as *mut _, connection, &mut info) }
    };
    assert_eq!(std::thread::spawn(look).join().unwrap(), HVQ_OK);
    let several = (0..4).map(|_| std::thread::spawn(move || (0..20_000).map(|_| look()).collect::<Vec<_>>()));
    let several: Vec<_> = several.collect();
    let results: Vec<_> = several.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert!(results.iter().all(|result| [HVQ_OK, HVQ_ERR_BUSY].contains(result)));
    assert_eq!(look(), HVQ_OK);
}
