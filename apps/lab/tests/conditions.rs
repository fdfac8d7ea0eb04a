//! The conditions that experiments set: what is believed, what stands where, and what others send.

use hvq_lab::experiment::campaign::{Record, Scope, tasks};
use hvq_lab::experiment::definition::Definition;
use std::collections::BTreeMap;

/// The runs of an experiment over two channels, of which `what` says workload, schemes and matrix.
fn runs(what: &str) -> Vec<Record> {
    runs_of(what, 1)
}

/// The records of the experiment `what`, with `stretches` of each run.
fn runs_of(what: &str, stretches: u32) -> Vec<Record> {
    let text = format!("name = \"x\"\ntitle = \"x\"\nsource = \"none\"\nstretches = {stretches}\n{what}");
    let definition = Definition::parse("x.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let run = |task: &hvq_lab::experiment::campaign::Task| {
        task.run(&definition).expect("the traces are compiled in")
    };
    let records: Vec<Record> = tasks(&definition, Scope::Whole).iter().map(run).collect();
    assert!(records.iter().all(|record| record.failure.is_none()), "{records:?}");
    records
}

/// The mean of the values of `name`, by scheme and the labels of the cell.
fn values(records: &[Record], name: &str) -> BTreeMap<String, f64> {
    let key = |record: &Record| {
        let labels: Vec<&str> = record.key.cell.values().map(String::as_str).collect();
        format!("{} {}", record.key.scheme, labels.join(" ")).trim_end().to_owned()
    };
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for record in records {
        all.entry(key(record)).or_default().push(record.values[name]);
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    all.into_iter().map(|(key, values)| (key, mean(values))).collect()
}

#[test]
fn two_alike_channels_of_which_nothing_is_told_may_change_places() {
    let alike = "rtt=40ms,rate=50mbit";
    let records = runs(&format!(
        "schemes = [\"hvc\", \"min-rtt\"]\n[download]\n[matrix]\nbelief = [\"none\"]\norder = [\"given\", \"exchanged\"]\n\
         embb = [\"{alike}\"]\nurllc = [\"{alike}\"]\nsize = [\"2MB\"]"
    ));
    let (times, embb, urllc) =
        (values(&records, "time_ms"), values(&records, "embb_bytes"), values(&records, "urllc_bytes"));
    for scheme in ["hvc", "min-rtt"] {
        let (given, exchanged) = (format!("{scheme} given"), format!("{scheme} exchanged"));
        assert_eq!(times[&given], times[&exchanged], "{scheme}");
        assert_eq!((embb[&given], urllc[&given]), (urllc[&exchanged], embb[&exchanged]), "{scheme}");
        assert!(embb[&given] > 100_000.0 && urllc[&given] > 100_000.0, "{scheme} uses both");
    }
}

#[test]
fn a_belief_reaches_the_ends_that_it_is_of() {
    let records = runs(
        "schemes = [\"hvc\", \"min-rtt\", \"told:min-rtt\"]\n[download]\n[matrix]\nsize = [\"300KB\"]\n\
         belief = [\"none\", \"both\", \"urllc-rate/5\"]",
    );
    let times = values(&records, "time_ms");
    assert_ne!(times["hvc none"], times["hvc both"]);
    assert_ne!(times["hvc urllc-rate/5"], times["hvc both"]);
    assert_eq!(times["min-rtt none"], times["min-rtt both"]);
    assert_eq!(times["told:min-rtt none"], times["min-rtt none"]);
    assert_ne!(times["told:min-rtt both"], times["min-rtt both"]);
}

#[test]
fn a_server_of_somebody_else_places_by_its_own_policy_and_knows_nothing() {
    let records = runs(
        "schemes = [\"hvc\", \"foreign:min-rtt\", \"foreign:round-robin\"]\n[download]\n[matrix]\n\
         belief = [\"none\", \"client\"]\nsize = [\"1MB\"]",
    );
    let urllc = values(&records, "urllc_bytes");
    println!("{urllc:?}");
    assert!(urllc["foreign:round-robin none"] > 2.0 * urllc["hvc none"], "{urllc:?}");
    assert!(urllc["foreign:min-rtt none"] > 2.0 * urllc["hvc none"], "{urllc:?}");
    assert_ne!(urllc["foreign:min-rtt none"], urllc["foreign:round-robin none"]);
    // A client that knows the channel has it spare that.
    for foreign in ["foreign:min-rtt", "foreign:round-robin"] {
        assert!(urllc[&format!("{foreign} client")] < 0.6 * urllc[&format!("{foreign} none")], "{urllc:?}");
    }
}

#[test]
fn a_policy_that_others_published_has_no_bound_of_ours_unless_that_is_said() {
    let records = runs(
        "schemes = [\"hvc\", \"bound:hvc\", \"min-rtt\", \"bound:min-rtt\"]\n[download]\n[matrix]\n\
         belief = [\"none\"]\nsize = [\"1MB\"]",
    );
    let (times, urllc) = (values(&records, "time_ms"), values(&records, "urllc_bytes"));
    println!("{times:?}, {urllc:?}");
    assert_eq!(times["hvc"], times["bound:hvc"]);
    // Unbound its window on URLLC grows until it loses packets there.
    assert!(urllc["min-rtt"] > 1.5 * urllc["bound:min-rtt"], "{urllc:?}");
    assert!(times["min-rtt"] > times["bound:min-rtt"], "{times:?}");
}

#[test]
fn others_take_half_of_urllc_and_are_not_counted() {
    let records = runs(
        "schemes = [\"embb\", \"urllc\", \"below:dchannel\"]\n[download]\n[matrix]\nsize = [\"500KB\"]\n\
         background = [\"0\", \"urllc:50%\"]",
    );
    let (times, urllc) = (values(&records, "time_ms"), values(&records, "urllc_bytes"));
    assert_eq!(times["embb 0"], times["embb urllc:50%"]);
    let slower = times["urllc urllc:50%"] / times["urllc 0"];
    assert!((1.7..2.6).contains(&slower), "{times:?}");
    let counted = urllc["urllc urllc:50%"] / urllc["urllc 0"];
    assert!((0.95..1.1).contains(&counted), "{urllc:?}");
    assert_ne!(times["below:dchannel urllc:50%"], times["below:dchannel 0"]);
}

#[test]
fn an_upload_takes_the_rate_up() {
    let records = runs(
        "schemes = [\"embb\", \"hvc\"]\n[upload]\n[matrix]\nsize = [\"1MB\"]\n\
         embb = [\"rtt=40ms,up.rate=8mbit,down.rate=100mbit\"]",
    );
    let times = values(&records, "time_ms");
    assert!((1_000.0..1_500.0).contains(&times["embb"]), "{times:?}");
    assert!(times["hvc"] < times["embb"], "{times:?}");
    let last = values(&records, "progress_20_ms");
    assert!(last["embb"] < times["embb"] && last["embb"] > 0.9 * times["embb"], "{last:?}");
}

#[test]
fn a_load_without_end_makes_small_requests_wait() {
    // The load is at another place of its sawtooth in each run.
    let records = runs_of(
        "schemes = [\"embb\"]\n[interaction]\n[matrix]\ninteraction = [\"20x20KB\"]\n\
         embb = [\"rtt=40ms,rate=20mbit,queue=100kb\"]\nbackground = [\"0\", \"download\", \"upload\"]",
        8,
    );
    let times = values(&records, "exchange_ms");
    assert!(times["embb download"] > 1.5 * times["embb 0"], "{times:?}");
    assert!(times["embb upload"] > 1.2 * times["embb 0"], "{times:?}");
    let slow = values(&records, "exchange_p95_ms");
    assert!(slow["embb download"] > 1.5 * slow["embb 0"], "{slow:?}");
}

#[test]
fn several_connections_to_a_gateway_share_a_page() {
    let records = runs(
        "schemes = [\"below:dchannel\", \"below:dchannel:flows=6\"]\n[page]\npages = [\"p25\"]\n[matrix]\n\
         embb = [\"rtt=100ms,rate=200mbit\"]",
    );
    let times = values(&records, "plt_ms");
    assert_ne!(times["below:dchannel:flows=6"], times["below:dchannel"]);
}

#[test]
fn a_page_of_many_hosts_has_a_connection_to_each() {
    let records = runs(
        "schemes = [\"embb\", \"hvc\"]\n[page]\npages = [\"p05\"]\nhosts = 120\n[matrix]\n\
         deployment = [\"cold\", \"resumed\"]",
    );
    let times = values(&records, "plt_ms");
    assert!(times["embb resumed"] < times["embb cold"], "{times:?}");
}
