use super::*;

fn lines(text: &str) -> Vec<Result<Said, String>> {
    let mut reader = BufReader::new(text.as_bytes());
    std::iter::from_fn(|| next(&mut reader)).collect()
}

fn said(text: &str) -> Vec<Said> {
    lines(text).into_iter().map(|line| line.expect("a line")).collect()
}

const PLAYED: &str = "{\"event\":\"arrived\",\"load\":\"requests\",\"at\":[1000000,2000000]}\n\
    {\"event\":\"arrived\",\"load\":\"requests\",\"at\":[3000000]}\n\
    {\"event\":\"acknowledged\",\"link\":\"cell\",\"at\":[7000000]}\n\
    {\"event\":\"played\",\"delivered\":9,\"failures\":1}\n";

#[test]
fn the_lines_of_a_client_are_times_of_this_program() {
    let instant = Instant::now();
    let clock = Clock { instant, reading: Duration::from_millis(11) };
    let observed = clock.observed(said(PLAYED)).unwrap();
    let from = instant - Duration::from_millis(9);
    assert_eq!(observed.requests.longest(from, instant), Some(Duration::from_millis(8)));
    assert_eq!(observed.requests.first_since(from), Some(Duration::ZERO));
    assert_eq!(
        observed.acknowledged_over(Line::Cell).first_since(instant - Duration::from_millis(5)),
        Some(Duration::from_millis(1))
    );
    assert!(observed.acknowledged_over(Line::Wifi).is_empty() && observed.download.is_empty());
    assert_eq!((observed.delivered, observed.failures), (9, 1));
    let now = Clock::now();
    assert!(now.instants(&[now.reading.as_nanos() as u64]).unwrap() == [now.instant], "the clock of both");
}

#[test]
fn lines_that_no_client_says_are_errors_and_none_is_taken_for_another() {
    for (text, says) in [
        ("{\"event\":\"moon\"}\n", "nobody understands"),
        ("{\"event\":\"served\",\"sent\":1,\"moon\":1}\n", "nobody understands"),
        ("{\"event\":\"arrived\",\"load\":\"requests\",\"at\":[-1]}\n", "nobody understands"),
        ("\n", "nobody understands"),
        ("\u{fffd}\n", "nobody understands"),
        ("{\"event\":\"ready\"}", "without an end"),
        (&"x".repeat(LONGEST as usize + 1), "without an end"),
    ] {
        let problem = lines(text)[0].clone().unwrap_err();
        assert!(problem.contains(says), "{problem}");
    }
    let clock = Clock { instant: Instant::now(), reading: Duration::from_millis(11) };
    for (text, says) in [
        ("", "does not say"),
        ("{\"event\":\"ready\"}\n", "ends with Ready"),
        ("{\"event\":\"arrived\",\"load\":\"download\",\"at\":[2,1]}\n", "in order"),
        ("{\"event\":\"arrived\",\"load\":\"download\",\"at\":[12000000]}\n", "in the past"),
        ("{\"event\":\"acknowledged\",\"link\":\"moon\",\"at\":[]}\n", "no link"),
        (&PLAYED.repeat(2), "in order"),
    ] {
        let problem = clock.observed(said(text)).unwrap_err();
        assert!(problem.contains(says), "{text}{problem}");
    }
}

#[test]
fn a_program_that_is_another_is_refused() {
    assert!(check(Path::new("/nonexistent/rivals")).is_err());
    assert!(check(Path::new("true")).unwrap_err().to_string().contains("not the program of rivals"));
}
