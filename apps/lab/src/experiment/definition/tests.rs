use super::*;

const GOOD: &str = r#"name = "a"
title = "A"
source = "Table 1"
schemes = ["embb", "hvc"]

[page]
pages = ["p05"]

[matrix]
embb = ["MM-S", { label = "20 ms", is = "rtt=20ms,rate=200mbit" }]
loss = ["0", "1%"]

[[published]]
scheme = "hvc"
along = "embb"
values = { "MM-S" = 20, "20 ms" = 18.9 }

[[goals]]
number = 2
says = "half of it"
of = { measure = "gap", scheme = "hvc", at = { loss = "1%" } }
at_least = { measure = "gap", scheme = "embb", times = 1.25 }
"#;

fn problem(from: &str, to: &str) -> String {
    let text = GOOD.replacen(from, to, 1);
    assert_ne!(text, GOOD, "{from}");
    Definition::parse("x.toml", &text).expect_err(to).to_string()
}

#[test]
fn a_file_says_what_is_run_and_what_is_wanted() {
    let read = Definition::parse("x.toml", GOOD).expect("it is well-formed");
    assert_eq!((read.stretches, read.seed, read.workload.measured()), (5, 1, "plt_ms"));
    assert_eq!(read.matrix.varied(), [Axis::Embb, Axis::Loss]);
    let cells = read.matrix.cells();
    let described: Vec<String> = cells.iter().map(|cell| read.matrix.describe(*cell, &[])).collect();
    assert_eq!(described, ["MM-S, 0", "MM-S, 1%", "20 ms, 0", "20 ms, 1%"]);
    assert_eq!(read.matrix.describe(cells[3], &[Axis::Loss]), "20 ms");
    assert!(matches!(&read.goals[0].wanted, Wanted::AtLeast(of, Bound::Of(bound))
        if of.measure == Measure::Gap && bound.times == 1.25));
}

#[test]
fn the_digest_follows_what_is_run_and_not_what_is_said_about_it() {
    let digest = |from: &str, to: &str| {
        let text = GOOD.replacen(from, to, 1);
        Definition::parse("x.toml", &text).expect("it is well-formed").digest
    };
    let good = digest("", "");
    for (from, to) in
        [("Table 1", "Table 2"), ("18.9", "19"), ("\"embb\", \"hvc\"", "\"hvc\", \"embb\", \"ideal\"")]
    {
        assert_eq!(digest(from, to), good, "{to}");
    }
    for (from, to) in [("p05", "p07"), ("rate=200mbit", "rate=20mbit"), ("[page]", "seed = 2\n[page]")] {
        assert_ne!(digest(from, to), good, "{to}");
    }
}

#[test]
fn errors_name_the_file_the_line_and_the_field() {
    let cases = [
        ("\"hvc\"]", "\"warp\"]", "x.toml:4: schemes: ", "warp"),
        ("name = \"a\"", "name = \"A b\"", "x.toml:1: name: ", "lower-case"),
        ("title = \"A\"\n", "", "x.toml:1: ", "missing field `title`"),
        ("[page]", "[pages]", "x.toml:6: pages: ", "unknown field `pages`"),
        ("\"p05\"", "\"p99\"", "x.toml:7: page.pages: ", "p99"),
        ("[\"p05\"]", "1000", "x.toml:7: page.pages: ", "pages are compiled in"),
        ("rate=200mbit", "rate=fast", "x.toml:10: matrix.embb: ", "rate=fast"),
        ("[\"0\", \"1%\"]", "[\"200%\"]", "x.toml:11: matrix.loss: ", "200%"),
        (
            "scheme = \"hvc\"\nalong",
            "scheme = \"ideal\"\nalong",
            "x.toml:14: published.scheme: ",
            "not among",
        ),
        ("along = \"embb\"", "along = \"moon\"", "x.toml:15: published.along: ", "moon"),
        ("\"20 ms\" = 18.9", "\"90 ms\" = 18.9", "x.toml:16: published.values: ", "there are MM-S, 20 ms"),
        ("loss = \"1%\" }", "loss = \"2%\" }", "x.toml:21: goals.of: ", "\"2%\" is no value of loss"),
        ("at_least", "at_larger", "x.toml:22: goals.at_larger: ", "unknown field"),
        ("times = 1.25", "times = \"a\"", "x.toml:22: goals.at_least: ", "expected"),
        ("number = 2", "number = 2\nnear_published = 3", "x.toml:18: goals", "a goal has"),
        ("schemes =", "schemes : ", "x.toml:4: ", "expected"),
    ];
    for (from, to, place, reason) in cases {
        let said = problem(from, to);
        assert!(said.starts_with(place) && said.contains(reason), "{from} → {to}: {said}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Definition::read(std::path::Path::new("/nowhere/x.toml")).expect_err("it is not there");
    assert!(error.to_string().starts_with("/nowhere/x.toml: "), "{error}");
}
