//! Pages in a browser.

use super::Part;
use super::bars::{self, Bar};
use super::programs::bytes;
use super::table::Table;
use crate::web::arm::Arm;
use crate::web::{BrowserLoad, Expected};
use hvq_emulation::samples::Mean;

/// The part about `loads`, if there are any, with what virtual time gives for them.
pub(super) fn part(loads: &[BrowserLoad], expected: &[Expected]) -> Option<Part> {
    if loads.is_empty() {
        return None;
    }
    let web = Web { loads, expected };
    let channels = distinct(loads.iter().map(|load| load.channel.as_str()));
    let mut tables: Vec<Table> = channels.iter().map(|channel| web.summary(channel)).collect();
    tables.extend(channels.iter().map(|channel| web.by_page(channel)));
    let drawings: String = channels.iter().map(|channel| web.drawing(channel)).collect();
    Some(Part { title: "Pages in Chromium, served by Nginx", tables, drawings, notes: notes(loads) })
}

fn notes(loads: &[BrowserLoad]) -> Vec<String> {
    let mut notes = vec![
        "Page load time: the end of the load event by Chromium's own clock since the navigation began; each load in a new \
         browser and new namespaces, arms in turn. Gains are means over loads of the same page over the same stretch \
         of eMBB, ± the half width of 95 % intervals (Student's t). Trusted: loads during which the emulator was in time (99 of \
         100 packets within 1 ms, all within 20 ms). No arm looks names up."
            .to_owned(),
        "Virtual time has no TLS certificates to check, no parser, no layout and no scripts to run, begins connections at will \
         where Chromium keeps to its own limits, asks for what a document leads to when all of it is there, and its TCP is \
         the transport's own QUIC behind a greeting, with a CUBIC that does not leave slow start when packets change channels: the \
         kernel's may (HyStart), its Reno has no such thing. Chromium's own work is the same in \
         every arm and makes gains smaller, the more so on a busy machine."
            .to_owned(),
    ];
    let failed = loads.iter().filter_map(|load| load.failure.as_ref().map(|failure| (load, failure)));
    for (load, failure) in failed.take(5) {
        notes.push(format!("Failed: {} over {} by {}: {failure}", load.page, load.channel, load.arm.name()));
    }
    notes
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

struct Web<'a> {
    loads: &'a [BrowserLoad],
    expected: &'a [Expected],
}

impl<'a> Web<'a> {
    fn of(&self, channel: &'a str, arm: Arm) -> impl Iterator<Item = &'a BrowserLoad> {
        self.loads.iter().filter(move |load| load.channel == channel && load.arm == arm)
    }

    fn arms(&self, channel: &'a str) -> impl Iterator<Item = Arm> {
        Arm::ALL.into_iter().filter(move |arm| self.of(channel, *arm).next().is_some())
    }

    /// Returns the gains of loads with `arm` over those over eMBB alone, in per cent.
    fn gains(&self, channel: &'a str, arm: Arm) -> Vec<f64> {
        let gain = |load: &BrowserLoad| {
            let same = |base: &&BrowserLoad| base.page == load.page && base.repetition == load.repetition;
            let base = self.of(channel, Arm::Embb).find(same)?.plt_ms?;
            Some((base - load.plt_ms?) / base * 100.0)
        };
        self.of(channel, arm).filter_map(gain).collect()
    }

    fn expected(&self, channel: &str, arm: Arm) -> Option<Mean> {
        let same = |one: &&Expected| one.channel == channel && one.arm == arm;
        Mean::of(&self.expected.iter().filter(same).filter_map(|one| one.plt_ms).collect::<Vec<f64>>())
    }

    fn summary(&self, channel: &'a str) -> Table {
        let heads = [
            "arm",
            "mean PLT (ms)",
            "gain over eMBB, TCP (%)",
            "on URLLC",
            "of all bytes",
            "loads",
            "trusted",
            "virtual time (ms)",
            "gain there (%)",
        ];
        let mut table = Table::new(format!("eMBB {channel}"), &heads);
        let base = self.expected(channel, Arm::Embb);
        for arm in self.arms(channel) {
            let times: Vec<f64> = self.of(channel, arm).filter_map(|load| load.plt_ms).collect();
            let count = self.of(channel, arm).count();
            let trusted = self.of(channel, arm).filter(|load| load.trusted).count();
            let urllc: u64 = self.of(channel, arm).map(|load| load.urllc_bytes).sum();
            let all: u64 = self.of(channel, arm).map(|load| load.urllc_bytes + load.embb_bytes).sum();
            let there = self.expected(channel, arm);
            let gain = base.zip(there).map(|(base, there)| (base.value - there.value) / base.value * 100.0);
            let mean = |values: &[f64], digits| {
                Mean::of(values).map_or_else(String::new, |mean| mean.written(digits))
            };
            table.rows.push(vec![
                arm.name().to_owned(),
                Mean::of(&times).map_or_else(String::new, |mean| format!("{:.0}", mean.value)),
                if arm == Arm::Embb { String::new() } else { mean(&self.gains(channel, arm), 1) },
                bytes(urllc / times.len().max(1) as u64),
                format!("{:.1} %", urllc as f64 * 100.0 / all.max(1) as f64),
                format!("{} of {count}", times.len()),
                trusted.to_string(),
                there.map_or_else(|| "—".to_owned(), |mean| format!("{:.0}", mean.value)),
                match (arm, gain) {
                    (Arm::Embb, _) => String::new(),
                    (_, gain) => gain.map_or_else(|| "—".to_owned(), |gain| format!("{gain:.1}")),
                },
            ]);
        }
        table
    }

    fn by_page(&self, channel: &'a str) -> Table {
        let pages = distinct(self.loads.iter().map(|load| load.page.as_str()));
        let heads: Vec<&str> = ["arm"].into_iter().chain(pages.iter().copied()).collect();
        let mut table = Table::new(format!("eMBB {channel}: mean page load times in ms"), &heads);
        for arm in self.arms(channel) {
            let of = |page: &&str| {
                let times =
                    self.of(channel, arm).filter(|load| load.page == *page).filter_map(|load| load.plt_ms);
                Mean::of(&times.collect::<Vec<f64>>()).map_or_else(String::new, |mean| mean.written(0))
            };
            table.rows.push([arm.name().to_owned()].into_iter().chain(pages.iter().map(of)).collect());
        }
        table
    }

    fn drawing(&self, channel: &'a str) -> String {
        let bar = |arm: Arm| Bar {
            name: arm.name().to_owned(),
            class: match arm {
                Arm::Embb => "base",
                Arm::GatewayEmbb | Arm::GatewayHvc => "ours",
                _ => "other",
            },
            values: self.of(channel, arm).filter_map(|load| load.plt_ms).collect(),
        };
        let bars: Vec<Bar> = self.arms(channel).map(bar).collect();
        let caption = hvq_lab::report::svg::escape(&format!("eMBB {channel}: page load times in ms"));
        format!(
            "<h3>{caption}</h3>\n<div class=\"wide\">{}</div>\n",
            bars::draw("page load times", "ms", &bars)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(arm: Arm, page: &str, repetition: u32, plt_ms: f64) -> BrowserLoad {
        BrowserLoad {
            page: page.to_owned(),
            channel: "LB-D".to_owned(),
            arm,
            repetition,
            plt_ms: Some(plt_ms),
            protocols: vec!["h2".to_owned()],
            embb_bytes: 900,
            urllc_bytes: 100,
            late_ms: 0.1,
            most_late_ms: 1.0,
            trusted: repetition == 0,
            failure: None,
        }
    }

    #[test]
    fn gains_are_of_the_same_page_and_stretch() {
        let loads = [
            load(Arm::Embb, "a", 0, 1000.0),
            load(Arm::GatewayHvc, "a", 0, 800.0),
            load(Arm::Embb, "a", 1, 2000.0),
            load(Arm::GatewayHvc, "a", 1, 1200.0),
        ];
        let expected = [(Arm::Embb, 900.0), (Arm::GatewayHvc, 450.0)].map(|(arm, plt_ms)| Expected {
            page: "a".to_owned(),
            channel: "LB-D".to_owned(),
            arm,
            repetition: 0,
            plt_ms: Some(plt_ms),
        });
        let part = part(&loads, &expected).unwrap();
        let text = part.tables[0].markdown();
        // 20 and 40 %; the interval is 12.706 × 14.14 / √2.
        let row = "| gateway, hvc | 1000 | 30.0 ± 127.1 | 100 B | 10.0 % | 2 of 2 | 1 | 450 | 50.0 |";
        assert!(text.contains(row), "{text}");
        assert!(part.tables[1].markdown().contains("| eMBB, TCP | 1500 ±"), "{}", part.tables[1].markdown());
        assert!(part.drawings.contains("class=\"bar ours\""));
    }

    #[test]
    fn loads_that_failed_are_told_and_not_counted() {
        let mut lost = load(Arm::Mptcp, "a", 0, 0.0);
        lost.plt_ms = None;
        lost.failure = Some("no browser".to_owned());
        let part = part(&[lost], &[]).unwrap();
        assert!(part.tables[0].markdown().contains("0 of 1"));
        assert!(part.notes.iter().any(|note| note.contains("no browser")), "{:?}", part.notes);
    }
}
