//! Logs in files.

use crate::talk::Talk;
use hvq_ffi::config::{hvq_transport_config, hvq_transport_config_init};
use hvq_ffi::error::*;
use hvq_ffi::output::HVQ_EVENT_CONFIRMED;
use hvq_ffi::tls::*;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

unsafe extern "C" fn count(user: *mut c_void, _now: u64, _level: u32, line: *const c_char) {
    // SAFETY: the test passes a number, and the library text.
    unsafe {
        assert!(!CStr::from_ptr(line).is_empty());
        *user.cast::<usize>() += 1;
    }
}

#[test]
fn qlog_files_are_whole_once_the_configurations_are_freed() {
    let folder = std::env::temp_dir().join(format!("hvq-ffi-qlog-{}", std::process::id()));
    let name = CString::new(folder.to_str().unwrap()).unwrap();
    let mut lines = 0usize;
    let user = ptr::from_mut(&mut lines);
    let mut talk = Talk::new(|transport, _, _| {
        transport.qlog_folder = name.as_ptr();
        // Both at once.
        transport.log = Some(count);
        transport.log_user = user.cast();
    });
    talk.exchange(50);
    assert!(talk.client_said(HVQ_EVENT_CONFIRMED));
    // The server's configuration is freed already, the client's with this.
    drop(talk);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let texts: Vec<_> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let client = texts.iter().zip(&files).find(|(_, file)| file.to_str().unwrap().contains("client"));
    let (client, _) = client.unwrap_or_else(|| panic!("{files:?}"));
    for wanted in ["qlog", "packet_sent", "packet_received", "crypto", "path"] {
        assert!(client.contains(wanted), "{wanted}");
    }
    assert!(client.ends_with(['\n', '}']), "{:?}", client.lines().last());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(lines > 4, "{lines}");
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_of_the_system() {
    let mut transport: hvq_transport_config = crate::pair::c::filled(hvq_transport_config_init);
    transport.qlog_folder = c"/dev/null/logs".as_ptr();
    let mut options: hvq_client_options = crate::pair::c::filled(hvq_client_options_init);
    let protocols = [c"test".as_ptr()];
    (options.alpn, options.alpn_count, options.insecure) = (protocols.as_ptr(), 1, 1);
    options.transport = &transport;
    let mut config = ptr::null_mut();
    // SAFETY: everything that is pointed to is above.
    assert_eq!(unsafe { hvq_client_config_new(&options, &mut config) }, HVQ_ERR_SYSTEM);
}
