use super::*;
use http::HeaderValue;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE};
use std::fs;

fn site() -> (tempfile::TempDir, Files) {
    let outside = tempfile::tempdir().unwrap();
    let root = outside.path().join("root");
    fs::create_dir_all(root.join("folder")).unwrap();
    fs::create_dir_all(root.join("empty")).unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fs::write(root.join("hello.txt"), "hello world").unwrap();
    fs::write(root.join("a b.bin"), [0; 5]).unwrap();
    fs::write(root.join("folder/index.html"), "<p>index").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(outside.path().join("secret"), root.join("link")).unwrap();
    let site = Files::new(&root, Files::FRESH).unwrap();
    (outside, site)
}

fn request(method: &str, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("https://host{path}")).body(()).unwrap()
}

fn answer_of(site: &Files, request: &Request<()>) -> Answer {
    answer(request, |path| site.answer(path, request))
}

async fn fetch(site: &Files, request: &Request<()>) -> (u16, http::HeaderMap, Vec<u8>) {
    let mut answer = answer_of(site, request);
    let mut body = Vec::new();
    while let Some(chunk) = answer.body.next().await.unwrap() {
        body.extend_from_slice(&chunk);
    }
    (answer.head.status().as_u16(), answer.head.headers().clone(), body)
}

#[tokio::test]
async fn a_file_comes_with_its_type_and_length() {
    let (_folder, site) = site();
    let (status, headers, body) = fetch(&site, &request("GET", "/hello.txt?query=ignored")).await;
    assert_eq!((status, body.as_slice()), (200, &b"hello world"[..]));
    assert_eq!(headers[CONTENT_LENGTH], "11");
    assert_eq!(headers[CONTENT_TYPE], "text/plain; charset=utf-8");
    let (status, headers, _) = fetch(&site, &request("GET", "/a%20b.bin")).await;
    assert_eq!(
        (status, &headers[CONTENT_TYPE]),
        (200, &HeaderValue::from_static("application/octet-stream"))
    );
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let (_folder, site) = site();
    let (status, headers, body) = fetch(&site, &request("HEAD", "/hello.txt")).await;
    assert_eq!((status, body.len()), (200, 0));
    assert_eq!(headers[CONTENT_LENGTH], "11");
}

#[tokio::test]
async fn a_folder_is_its_index_behind_a_slash() {
    let (_folder, site) = site();
    let (status, headers, _) = fetch(&site, &request("GET", "/folder")).await;
    assert_eq!((status, &headers[LOCATION]), (301, &HeaderValue::from_static("/folder/")));
    let (status, headers, body) = fetch(&site, &request("GET", "/folder/")).await;
    assert_eq!((status, body.as_slice()), (200, &b"<p>index"[..]));
    assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
    assert_eq!(fetch(&site, &request("GET", "/empty/")).await.0, 404);
}

#[tokio::test]
async fn nothing_outside_of_the_root_is_reached() {
    let (_folder, site) = site();
    for path in [
        "/../secret",
        "/%2e%2e/secret",
        "/folder/../../secret",
        "/..%2fsecret",
        "/folder/..%2f..%2fsecret",
        "/link",
        "//etc/passwd",
        "/hello.txt/",
        "/nothing",
    ] {
        let (status, _, body) = fetch(&site, &request("GET", path)).await;
        assert_eq!(status, 404, "{path}");
        assert_eq!(body, b"404 Not Found\n");
    }
    for path in ["/%00", "/a%5cb", "/%ff"] {
        assert_eq!(fetch(&site, &request("GET", path)).await.0, 400, "{path}");
    }
}

#[tokio::test]
async fn ranges_are_served_or_refused() {
    let (_folder, site) = site();
    let ranged = |method, range: &str| {
        let mut request = request(method, "/hello.txt");
        request.headers_mut().insert(RANGE, HeaderValue::from_str(range).unwrap());
        request
    };
    let (status, headers, body) = fetch(&site, &ranged("GET", "bytes=6-")).await;
    assert_eq!((status, body.as_slice()), (206, &b"world"[..]));
    assert_eq!(headers[CONTENT_RANGE], "bytes 6-10/11");
    let (status, headers, _) = fetch(&site, &ranged("GET", "bytes=11-")).await;
    assert_eq!((status, &headers[CONTENT_RANGE]), (416, &HeaderValue::from_static("bytes */11")));
    assert_eq!(fetch(&site, &ranged("HEAD", "bytes=6-")).await.0, 200, "ranges are for GET");
}

#[tokio::test]
async fn a_file_of_several_chunks_is_served_in_order_and_by_range() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..200_000u32).map(|at| (at / 251) as u8).collect();
    fs::write(folder.path().join("large"), &content).unwrap();
    let site = Files::new(folder.path(), Files::FRESH).unwrap();
    let (status, headers, body) = fetch(&site, &request("GET", "/large")).await;
    assert_eq!((status, &headers[CONTENT_LENGTH]), (200, &HeaderValue::from_static("200000")));
    assert_eq!(body, content);
    let mut ranged = request("GET", "/large");
    ranged.headers_mut().insert(RANGE, HeaderValue::from_static("bytes=65000-131999"));
    let (status, _, body) = fetch(&site, &ranged).await;
    assert_eq!((status, body.as_slice()), (206, &content[65_000..132_000]));
}

#[cfg(unix)]
#[test]
fn what_is_neither_file_nor_folder_is_not_waited_for() {
    let (folder, site) = site();
    let pipe = folder.path().join("root/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(answer_of(&site, &request("GET", "/pipe")).head.status(), 404);
}

#[tokio::test]
async fn other_methods_are_told_which_are_allowed() {
    let (_folder, site) = site();
    let (status, headers, _) = fetch(&site, &request("DELETE", "/hello.txt")).await;
    assert_eq!((status, &headers[ALLOW]), (405, &HeaderValue::from_static("GET, HEAD")));
}

#[test]
fn a_root_that_is_no_folder_is_refused() {
    assert!(Files::new(std::path::Path::new("/nonexistent"), Files::FRESH).is_err());
}
