use super::*;

#[test]
fn the_report_fetches_nothing() {
    let html = html(&sample::results());
    for outside in ["http://", "https://", "//cdn", "src=", "href=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn the_report_has_a_drawing_for_each_load_and_channel_and_every_table() {
    let html = html(&sample::results());
    assert_eq!(html.matches("waterfall of").count(), 4);
    assert_eq!(html.matches("bytes over eMBB").count(), 4);
    assert_eq!(html.matches("not used").count(), 2, "eMBB alone has no URLLC");
    for part in ["30.0 % faster", "30.0 %", "10.0 %", "path_ack", "1000 ms", "failed", "How it was measured"]
    {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn names_of_sites_cannot_become_markup() {
    let html = html(&sample::results());
    assert!(!html.contains("<b>&<") && html.contains("&lt;b&gt;&amp;"));
}

#[test]
fn elements_are_closed() {
    let html = html(&sample::results());
    for element in ["svg", "section", "div", "table", "tr", "td", "title", "h3", "button"] {
        let opened =
            html.matches(&format!("<{element}>")).count() + html.matches(&format!("<{element} ")).count();
        assert_eq!(opened, html.matches(&format!("</{element}>")).count(), "{element}");
    }
}

#[test]
fn a_report_without_any_load_is_still_a_page() {
    let mut results = sample::results();
    results.loads.clear();
    assert!(html(&results).ends_with("</html>\n"));
}
