use super::*;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// A document and an image that it leads to.
fn description() -> Value {
    let image = json!({
        "id": 1, "domain": 1, "type": "image", "mime": "image/png", "size_bytes": 5000, "req_bytes": 300,
        "method": "GET", "status": 200, "priority": "Low", "initiator": 0, "start_ms": 100.0, "ttfb_ms": 20.5,
        "end_ms": 150.0, "server_wait_ms": null, "before_onload": true,
        "after": {"id": 0, "event": "first_byte", "delay_ms": 10.0}
    });
    let document = json!({
        "id": 0, "domain": 0, "type": "document", "mime": "text/html", "size_bytes": 900, "req_bytes": 200,
        "method": "GET", "status": 200, "priority": "VeryHigh", "initiator": null, "start_ms": 0.0, "ttfb_ms": 90.0,
        "end_ms": 120.0, "server_wait_ms": 70.0, "before_onload": true, "after": null
    });
    json!({
        "schema": SCHEMA, "page_id": "t01", "site": "example.org", "capture": {"onload_ms": 160.0},
        "dchannel_size_scale": 1.5, "objects": [document, image]
    })
}

fn parse(value: &Value) -> Result<Page, PageError> {
    Page::parse("t01.json", &value.to_string())
}

/// The error for the description with `value` at the JSON pointer `place`.
fn error_with(place: &str, value: Value) -> String {
    let mut description = description();
    *description.pointer_mut(place).expect("the place exists") = value;
    parse(&description).expect_err(place).to_string()
}

#[test]
fn a_description_becomes_a_page() {
    let page = parse(&description()).unwrap();
    assert_eq!((page.id.as_str(), page.site.as_str()), ("t01", "example.org"));
    assert_eq!((page.bytes(), page.domains()), (5900, 2));
    assert_eq!((page.recorded_onload, page.paper_size_scale), (Some(Duration::from_millis(160)), Some(1.5)));
    let image = page.object(ObjectId(1)).unwrap();
    assert_eq!(
        (image.kind, image.priority, image.recorded_server_wait),
        (ObjectKind::Image, Priority::Low, Duration::ZERO)
    );
    let trigger = Trigger { object: ObjectId(0), event: Event::FirstByte, delay: Duration::from_millis(10) };
    assert_eq!(image.after, Some(trigger));
    assert_eq!(image.recorded.first_byte, Duration::from_micros(120_500));
    assert_eq!(page.object(ObjectId(2)), None);
}

#[test]
fn without_a_load_event_all_objects_belong_to_the_load() {
    let mut value = description();
    value["objects"][0]["before_onload"] = Value::Null;
    value["objects"][1]["before_onload"] = Value::Null;
    value["capture"]["onload_ms"] = Value::Null;
    let page = parse(&value).unwrap();
    assert!(page.objects.iter().all(|object| object.before_onload));
    assert_eq!(page.recorded_onload, None);
}

#[test]
fn an_error_names_the_file_the_field_and_what_was_found() {
    assert_eq!(
        error_with("/objects/1/size_bytes", json!(-5)),
        "t01.json:1: objects[1].size_bytes: expected a whole number that is not negative, found -5"
    );
    assert_eq!(
        error_with("/objects/1/after/delay_ms", json!(-0.1)),
        "t01.json:1: objects[1].after.delay_ms: expected milliseconds from 0 to one day, found -0.1"
    );
    assert_eq!(
        error_with("/objects/0/priority", json!("Highest")),
        "t01.json:1: objects[0].priority: expected one of VeryHigh, High, Medium, Low, VeryLow, found \"Highest\""
    );
    assert_eq!(
        error_with("/schema", json!("hvc-page/9")),
        "t01.json:1: schema: expected \"hvc-page/1\", found \"hvc-page/9\""
    );
}

#[test]
fn an_object_that_waits_for_one_that_does_not_exist_is_an_error() {
    let expected = "t01.json:1: objects[1].after.id: the page has no object 7";
    assert_eq!(error_with("/objects/1/after/id", json!(7)), expected);
    let expected = "t01.json:1: objects[1].initiator: the page has no object 2";
    assert_eq!(error_with("/objects/1/initiator", json!(2)), expected);
}

#[test]
fn objects_that_wait_for_each_other_are_an_error() {
    let expected = "t01.json:1: objects[1].after.id: waits for itself, directly or through others";
    assert_eq!(error_with("/objects/1/after/id", json!(1)), expected);
    let after = json!({"id": 1, "event": "end", "delay_ms": 0});
    assert!(error_with("/objects/0/after", after).ends_with("waits for itself, directly or through others"));
}

#[test]
fn an_initiator_without_a_trigger_is_an_error() {
    let expected = "t01.json:1: objects[1].after: missing, although the object has an initiator";
    assert_eq!(error_with("/objects/1/after", Value::Null), expected);
}

#[test]
fn ids_count_from_zero_without_gaps() {
    let expected = "t01.json:1: objects[1].id: expected 1 (ids count from 0), found 3";
    assert_eq!(error_with("/objects/1/id", json!(3)), expected);
}

#[test]
fn a_page_that_nothing_belongs_to_is_an_error() {
    let expected = "t01.json:1: objects: none of them belongs to the page load (before_onload)";
    assert_eq!(error_with("/objects", json!([])), expected);
    assert_eq!(error_with("/objects", json!({})), "t01.json:1: objects: expected an array, found an object");
    assert_eq!(
        error_with("/objects/0", json!([])),
        "t01.json:1: objects[0]: expected an object, found an array"
    );
}

#[test]
fn values_out_of_range_are_errors() {
    assert!(error_with("/objects/0/start_ms", json!(1e300)).contains("from 0 to one day"));
    assert!(error_with("/objects/0/start_ms", json!(130.0)).contains("end_ms: is before start_ms"));
    assert!(error_with("/objects/0/status", json!(70_000)).contains("status"));
    assert!(error_with("/dchannel_size_scale", json!(0)).contains("greater than zero"));
    assert!(error_with("/objects/0/before_onload", json!("yes")).contains("true or false"));
}

#[test]
fn a_missing_field_is_an_error() {
    let mut value = description();
    value["objects"][1].as_object_mut().unwrap().remove("req_bytes");
    assert_eq!(parse(&value).unwrap_err().to_string(), "t01.json:1: objects[1].req_bytes: missing");
}

#[test]
fn text_that_is_not_json_is_an_error_with_its_line() {
    let error = Page::parse("broken.json", "{\n  \"schema\": ").unwrap_err().to_string();
    assert!(error.starts_with("broken.json:2: not valid JSON") && error.contains("line 2"), "{error}");
    let error = Page::parse("list.json", "[]").unwrap_err().to_string();
    assert_eq!(error, "list.json:1: top level: expected an object, found an array");
}

#[test]
fn a_file_that_does_not_exist_is_an_error() {
    let error = Page::read("nowhere/p99.json").unwrap_err();
    assert!(matches!(error, PageError::Read { .. }) && error.to_string().starts_with("nowhere/p99.json: "));
}

#[test]
fn every_page_of_the_corpus_is_valid_and_as_its_manifest_says() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/pages");
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let rows = manifest["pages"].as_array().unwrap();
    assert!(rows.len() >= 12);
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let page = Page::read(folder.join(format!("{id}.json"))).unwrap();
        assert_eq!(page.id, id);
        assert_eq!(Some(page.objects.len() as u64), row["objects"].as_u64(), "{id}");
        assert_eq!(Some(page.bytes()), row["bytes"].as_u64(), "{id}");
        let essential = page.objects.iter().filter(|object| object.before_onload).count();
        assert_eq!(Some(essential as u64), row["objects_before_onload"].as_u64(), "{id}");
        assert_eq!(page.paper_size_scale, row["dchannel_size_scale"].as_f64(), "{id}");
    }
}
