use super::*;

const GOOD: &str = r#"name = "a"
title = "A"
source = "Table 1"
schemes = ["embb", "ideal", "hvc"]

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
    for (from, to) in [
        ("Table 1", "Table 2"),
        ("18.9", "19"),
        ("\"embb\", \"ideal\", \"hvc\"", "\"hvc\", \"embb\", \"ideal\", \"min-rtt\""),
    ] {
        assert_eq!(digest(from, to), good, "{to}");
    }
    for (from, to) in [
        ("p05", "p07"),
        ("rate=200mbit", "rate=20mbit"),
        ("[page]", "seed = 2\n[page]"),
        ("[page]", "half = \"training\"\n[page]"),
    ] {
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
        ("scheme = \"hvc\"\nalong", "scheme = \"ecf\"\nalong", "x.toml:14: published.scheme: ", "not among"),
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
fn a_number_of_pages_is_of_the_half_and_takes_its_factor_on_waits() {
    let read = |page: &str, half: &str| {
        let text =
            GOOD.replace("pages = [\"p05\"]", page).replace("[page]", &format!("half = \"{half}\"\n[page]"));
        let workload = Definition::parse("x.toml", &text).expect("it is well-formed").workload;
        let Workload::Page(PageWorkload { pages, waits, .. }) = workload else { panic!("pages are loaded") };
        (pages.iter().map(|page| page.id.clone()).collect::<Vec<_>>(), waits)
    };
    let training = Half::Training.pages().into_iter().take(3).map(|page| page.id).collect();
    assert_eq!(read("pages = 3", "training"), (training, 1.0));
    let (held_out, waits) = read("pages = 3", "held-out");
    assert_eq!((held_out.len(), waits), (3, Half::HeldOut.wait_scale()));
    assert_eq!(read("pages = [\"p05\"]", "held-out"), (vec!["p05".to_owned()], 1.0));
    assert_eq!(read("pages = 3\nwaits = 0.5", "held-out").1, 0.5);
}

#[test]
fn what_makes_no_sense_is_refused_in_its_place() {
    let page = "[page]\npages = [\"p05\"]";
    let cases = [
        ("[\"embb\", \"ideal\", \"hvc\"]", "[]", "x.toml:4: schemes: ", "at least one"),
        ("\"hvc\"]", "\"embb\"]", "x.toml:4: schemes: ", "embb stands there twice"),
        ("title = \"A\"", "title = 5", "x.toml:2: title: ", "expected a string"),
        ("title = \"A\"", "title = \"A\"\nseed = -1", "x.toml:3: seed: ", "expected u64"),
        ("title = \"A\"", "title = \"A\"\nstretches = 0", "x.toml:3: stretches: ", "from 1 to 1000"),
        ("title = \"A\"", "title = \"A\"\nstretches = 1.5", "x.toml:3: stretches: ", "expected u32"),
        ("[page]", "half = \"both\"\n[page]", "x.toml:6: half: ", "training or held-out"),
        ("[\"0\", \"1%\"]", "[]", "x.toml:11: matrix.loss: ", "at least one value"),
        ("[\"0\", \"1%\"]", "[\"0\", \"0\"]", "x.toml:11: matrix.loss: ", "twice"),
        ("[\"0\", \"1%\"]", "[\"-1%\"]", "x.toml:11: matrix.loss: ", "-1%"),
        ("[\"0\", \"1%\"]", "\"0\"", "x.toml:11: matrix.loss: ", "expected a sequence"),
        ("loss = [", "size = [\"1KB\", \"2KB\"]\nloss = [", "x.toml:11: matrix.size: ", "changes nothing"),
        ("loss = [", "size = [\"-1KB\"]\nloss = [", "x.toml:11: matrix.size: ", "-1KB"),
        (
            "loss = [",
            "urllc = [{ is = \"urllc\" }]\nloss = [",
            "x.toml:11: matrix.urllc: ",
            "missing field `label`",
        ),
        ("loss = [", "belief = [\"maybe\"]\nloss = [", "x.toml:11: matrix.belief: ", "is no belief"),
        ("loss = [", "controller = [\"tahoe\"]\nloss = [", "x.toml:11: matrix.controller: ", "tahoe"),
        ("rate=200mbit", "rate=file:nowhere.csv", "x.toml:10: matrix.embb: ", "nowhere.csv: cannot read it"),
        (page, "", "x.toml:1: name: ", "one workload is needed"),
        ("[page]", "[download]\n[page]", "x.toml:1: name: ", "one workload is needed"),
        ("[page]", "[page]\nthink = -1.0", "x.toml:7: page.think: ", "from 0 to 10"),
        (page, "[page]\npages = []", "x.toml:7: page.pages: ", "at least one page"),
        (page, "[page]\npages = [\"object:big\"]", "x.toml:7: page.pages: ", "no number of bytes"),
        (page, "[flow]\nseconds = 0", "x.toml:7: flow.seconds: ", "from 1 to 600"),
        (page, "[flow]\nminutes = 5", "x.toml:7: flow.minutes: ", "unknown field"),
        ("number = 2", "number = -2", "x.toml:19: goals.number: ", "expected u32"),
        ("number = 2\n", "", "x.toml:18: goals: ", "missing field `number`"),
        ("measure = \"gap\"", "measure = \"speed\"", "x.toml:21: goals.of: ", "\"speed\" is no measure"),
        ("\"ideal\", ", "", "x.toml:21: goals.of: ", "is measured against ideal"),
        ("[\"embb\", ", "[", "x.toml:21: goals.of: ", "is measured against embb"),
        (
            "{ measure = \"gap\", scheme = \"embb\", times = 1.25 }",
            "nan",
            "x.toml:22: goals.at_least: ",
            "NaN",
        ),
        ("rate=200mbit", "up.rate=mahimahi:nowhere", "x.toml:10: matrix.embb: ", "nowhere: cannot read it"),
        ("values = {", "values = { \"MM-S\" = \"much\" } #", "x.toml:16: published.values", "expected"),
    ];
    for (from, to, place, reason) in cases {
        let said = problem(from, to);
        assert!(said.starts_with(place) && said.contains(reason), "{from} → {to}: {said}");
    }
    let flow =
        GOOD.replace(page, "[flow]\nseconds = 5").replace("\"ideal\", \"hvc\"", "\"min-rtt\", \"hvc\"");
    let flow = flow.replace("\"gap\"", "\"gain\"");
    let said = Definition::parse("x.toml", &flow).expect_err("only three ways are known").to_string();
    assert!(said.starts_with("x.toml:4: schemes: min-rtt cannot be used here"), "{said}");
}

#[test]
fn files_that_an_experiment_names_are_read_at_once_and_told_with_their_lines() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    };
    let trace = write("rate.csv", "time_ms,down_mbps,up_mbps\n0,5,5\n1000,many,5\n");
    let said = problem("rate=200mbit", &format!("rate=file:{trace}"));
    let place = format!("x.toml:10: matrix.embb: {trace}:3: ");
    assert!(said.starts_with(&place) && said.contains("many"), "{said}");
    let object = |id: u32, after: u32| {
        format!(
            "{{\"id\": {id}, \"domain\": 0, \"type\": \"image\", \"mime\": \"\", \"size_bytes\": 1, \"req_bytes\": 1, \
             \"method\": \"GET\", \"status\": 200, \"priority\": \"Low\", \"start_ms\": 0, \"ttfb_ms\": 0, \
             \"end_ms\": 0, \"after\": {{\"id\": {after}, \"event\": \"end\", \"delay_ms\": 0}}}}"
        )
    };
    let objects = format!("{},\n{}", object(0, 1), object(1, 0));
    let text = format!(
        "{{\"schema\": \"hvc-page/1\", \"page_id\": \"x\", \"site\": \"x\",\n\"objects\": [\n{objects}]}}"
    );
    let page = write("page.json", &text);
    let said = problem("\"p05\"", &format!("\"{page}\""));
    let place = format!("x.toml:7: page.pages: {page}:3: objects[0].after.id: waits for itself");
    assert!(said.starts_with(&place), "{said}");
    // What is in a trace is part of what results follow from.
    let digest = |rate: u32| {
        let trace = write("rate.csv", &format!("time_ms,down_mbps,up_mbps\n0,{rate},5\n"));
        let text = GOOD.replacen("rate=200mbit", &format!("rate=file:{trace}"), 1);
        Definition::parse("x.toml", &text).expect("it is well-formed").digest
    };
    assert_ne!(digest(5), digest(6));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Definition::read(std::path::Path::new("/nowhere/x.toml")).expect_err("it is not there");
    assert!(error.to_string().starts_with("/nowhere/x.toml: "), "{error}");
}
