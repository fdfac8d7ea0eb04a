use super::*;

fn config(path: impl Into<std::path::PathBuf>) -> LogConfig {
    LogConfig { file: Some(path.into()), format: Format::Common }
}

#[test]
fn a_place_for_the_log_is_checked_without_making_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    AccessLog::check(&config(&file)).unwrap();
    AccessLog::check(&config("-")).unwrap();
    AccessLog::check(&config("access.log")).unwrap();
    AccessLog::check(&LogConfig { file: None, format: Format::Json }).unwrap();
    assert!(!file.exists());
    for wrong in [folder.path().to_owned(), folder.path().join("missing/access.log")] {
        AccessLog::check(&config(wrong)).unwrap_err();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn lines_that_a_full_disk_does_not_take_are_counted() {
    let log = AccessLog::open(&config("/dev/full")).unwrap();
    for _ in 0..3 {
        // More than is buffered.
        log.orders.as_ref().unwrap().send(Order::Write("x".repeat(100_000))).unwrap();
    }
    log.finish().await;
    assert_eq!(log.dropped(), 3);
}
