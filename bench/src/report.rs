//! What was measured, as a table and as JSON.

use crate::PIPE_DATAGRAM;
use crate::bulk::{Plan, Sample};
use crate::contender::Contender;
use crate::decisions::{Decision, GOAL};
use crate::instructions::Count;
use crate::machine::Machine;
use crate::pipe::Cost;
use crate::spread::Spread;
use serde::Serialize;
use std::fmt;

/// What all ratios refer to.
const BASE: Contender = Contender::Hvq;

/// Everything that a run found out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// Why the figures may be wrong.
    pub warning: Option<String>,
    /// What was transferred.
    pub plan: Plan,
    /// A row for each contender and datagram size.
    pub bulk: Vec<Row>,
    /// What is measured without a network.
    #[serde(flatten)]
    pub costs: Costs,
    /// The transfers behind `bulk`.
    pub samples: Vec<Sample>,
}

/// What was measured without a network.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Costs {
    /// A row for each policy and number of paths.
    pub decisions: Vec<Decision>,
    /// Both ends in one thread, round by round.
    pub pipe: Vec<Cost>,
    /// Instructions for a datagram.
    pub instructions: Vec<Count>,
}

/// One contender with datagrams of one size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Which.
    pub contender: Contender,
    /// The size of full datagrams in bytes.
    pub datagram: u16,
    /// Throughput in Mbit/s.
    pub mbit: Spread,
    /// CPU seconds of both processes for a GiB.
    pub cpu: Spread,
    /// Those of the sender only.
    pub sender_cpu: Spread,
    /// Those of the receiver only.
    pub receiver_cpu: Spread,
    /// Datagrams that the sender sent with each system call.
    pub datagrams_per_call: Spread,
    /// Packets that the sender declared lost.
    pub packets_lost: Spread,
    /// hvq's throughput, on one path, divided by this one's, round by round; `None` if hvq was not measured.
    pub hvq_throughput_ratio: Option<Spread>,
    /// The same for CPU time.
    pub hvq_cpu_ratio: Option<Spread>,
}

impl Report {
    /// Puts together what was measured on `machine`.
    pub fn new(machine: Machine, plan: Plan, samples: Vec<Sample>, costs: Costs) -> Self {
        let mut bulk = Vec::new();
        for &datagram in &plan.datagrams {
            let of_size: Vec<_> = samples.iter().filter(|sample| sample.datagram == datagram).collect();
            bulk.extend(plan.contenders.iter().filter_map(|&contender| Row::new(contender, &of_size)));
        }
        Self { warning: machine.warning(), machine, plan, bulk, costs, samples }
    }
}

impl Row {
    /// The row of `contender` among samples of one datagram size, if it is there.
    fn new(contender: Contender, samples: &[&Sample]) -> Option<Self> {
        let own: Vec<&Sample> =
            samples.iter().copied().filter(|sample| sample.contender == contender).collect();
        let spread = |figure: &dyn Fn(&Sample) -> f64| Spread::of(own.iter().map(|sample| figure(sample)));
        let ratio = |figure: &dyn Fn(&Sample) -> f64| {
            let base = |round| samples.iter().find(|other| other.contender == BASE && other.round == round);
            Spread::of(own.iter().filter_map(|sample| Some(figure(base(sample.round)?) / figure(sample))))
        };
        Some(Self {
            contender,
            datagram: own.first()?.datagram,
            mbit: spread(&Sample::mbit)?,
            cpu: spread(&Sample::cpu)?,
            sender_cpu: spread(&|sample| sample.cpu_of(&sample.sender.usage))?,
            receiver_cpu: spread(&|sample| sample.cpu_of(&sample.receiver.usage))?,
            datagrams_per_call: spread(&Sample::datagrams_per_call)?,
            packets_lost: spread(&|sample| sample.sender.packets_lost as f64)?,
            hvq_throughput_ratio: ratio(&Sample::mbit),
            hvq_cpu_ratio: ratio(&Sample::cpu),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { processor, cores, kernel, versions, .. } = &self.machine;
        writeln!(f, "{processor}, {cores} cores, Linux {kernel}; {}", versions.join(", "))?;
        if let Some(warning) = &self.warning {
            writeln!(f, "caution: {warning}")?;
        }
        for &datagram in &self.plan.datagrams {
            self.bulk_table(f, datagram)?;
        }
        if !self.bulk.is_empty() {
            writeln!(
                f,
                "\nAll: AES-128-GCM, CUBIC, one thread for each side, UDP segmentation offload, loopback."
            )?;
            writeln!(f, "Figures are median (least–greatest); ratios are taken round by round.")?;
        }
        if !self.costs.pipe.is_empty() {
            self.pipe_table(f)?;
        }
        if !self.costs.instructions.is_empty() {
            self.instruction_table(f)?;
        }
        if !self.costs.decisions.is_empty() {
            self.decision_table(f)?;
        }
        Ok(())
    }
}

impl Report {
    fn bulk_table(&self, f: &mut fmt::Formatter<'_>, datagram: u16) -> fmt::Result {
        let mut rows = self.bulk.iter().filter(|row| row.datagram == datagram).peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let (mebibytes, rounds) = (self.plan.bytes >> 20, self.plan.rounds);
        writeln!(f, "\nOne stream of {mebibytes} MiB, {datagram}-byte datagrams, {rounds} rounds in turn")?;
        writeln!(
            f,
            "  {:<20} {:>18} {:>18} {:>11} {:>18} {:>18} {:>9} {:>6}",
            "", "Mbit/s", "CPU s/GiB", "send+recv", "hvq ÷ it: rate", "hvq ÷ it: CPU", "per call", "lost"
        )?;
        for row in rows {
            writeln!(
                f,
                "  {:<20} {:>18} {:>18} {:>11} {:>18} {:>18} {:>9.1} {:>6.0}",
                row.contender.label(),
                format!("{:.0}", row.mbit),
                row.cpu.to_string(),
                format!("{:.2}+{:.2}", row.sender_cpu.median, row.receiver_cpu.median),
                ratio(row.hvq_throughput_ratio),
                ratio(row.hvq_cpu_ratio),
                row.datagrams_per_call.median,
                row.packets_lost.median,
            )?;
        }
        Ok(())
    }

    fn pipe_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nBoth ends in one thread, no sockets, {PIPE_DATAGRAM}-byte datagrams: CPU time")?;
        writeln!(
            f,
            "  {:<20} {:>18} {:>12} {:>22} {:>12}",
            "", "s/GiB", "hvq ÷ it", "µs/full handshake", "hvq ÷ it"
        )?;
        for &contender in &self.plan.contenders {
            let of = |other: Contender| self.costs.pipe.iter().filter(move |cost| cost.contender == other);
            let ratio = |figure: &dyn Fn(&Cost) -> f64| {
                let pairs = of(BASE).zip(of(contender));
                Spread::of(pairs.map(|(base, other)| figure(base) / figure(other)))
                    .map_or_else(|| "—".to_owned(), |spread| format!("{:.2}", spread.median))
            };
            let Some(transfer) = Spread::of(of(contender).map(|cost| cost.transfer)) else { continue };
            let Some(handshake) = Spread::of(of(contender).map(|cost| cost.handshake * 1e6)) else {
                continue;
            };
            writeln!(
                f,
                "  {:<20} {:>18} {:>12} {:>22} {:>12}",
                contender.label(),
                transfer.to_string(),
                ratio(&|cost| cost.transfer),
                format!("{handshake:.0}"),
                ratio(&|cost| cost.handshake),
            )?;
        }
        Ok(())
    }

    fn instruction_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nInstructions for a {PIPE_DATAGRAM}-byte datagram of data, both ends (callgrind)")?;
        writeln!(f, "  {:<20} {:>34} {:>10}", "", "without packet protection and copies", "all")?;
        for count in &self.costs.instructions {
            writeln!(f, "  {:<20} {:>36.0} {:>10.0}", count.contender.label(), count.protocol, count.all)?;
        }
        Ok(())
    }

    fn decision_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nOne scheduling decision, nanoseconds (goal: under {GOAL} with two paths)")?;
        for decision in &self.costs.decisions {
            let verdict = match (decision.paths, decision.nanoseconds.median < GOAL) {
                (2, true) => "goal met",
                (2, false) => "GOAL MISSED",
                _ => "",
            };
            let nanoseconds = format!("{:.1}", decision.nanoseconds);
            writeln!(f, "  {:<12} {} paths {nanoseconds:>22}  {verdict}", decision.policy, decision.paths)?;
        }
        Ok(())
    }
}

fn ratio(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "—".to_owned(), |spread| spread.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Account;
    use crate::meter::Usage;

    fn sample(contender: Contender, round: usize, elapsed: f64) -> Sample {
        let account = Account { usage: Usage { elapsed, user: elapsed, system: 0.0 }, ..Account::default() };
        Sample { contender, round, datagram: 1200, bytes: 1 << 30, sender: account, receiver: account }
    }

    fn plan(contenders: &[Contender]) -> Plan {
        Plan { contenders: contenders.to_vec(), datagrams: vec![1200], bytes: 1 << 30, rounds: 2 }
    }

    #[test]
    fn ratios_compare_transfers_of_the_same_round() {
        let contenders = [Contender::Hvq, Contender::Quinn];
        let samples = vec![
            sample(Contender::Hvq, 0, 2.0),
            sample(Contender::Quinn, 0, 1.0),
            sample(Contender::Hvq, 1, 1.0),
            sample(Contender::Quinn, 1, 2.0),
        ];
        let report = Report::new(Machine::now(), plan(&contenders), samples, Costs::default());
        let quinn = report.bulk[1].hvq_throughput_ratio.unwrap();
        assert_eq!((quinn.min, quinn.max), (0.5, 2.0));
        assert_eq!(report.bulk[1].hvq_cpu_ratio.unwrap().median, 1.25);
        assert_eq!(report.bulk[0].hvq_cpu_ratio.unwrap().max, 1.0);
        let text = report.to_string();
        assert!(text.contains("quinn") && text.contains("1.25 (0.50–2.00)"), "{text}");
    }

    #[test]
    fn without_hvq_there_are_no_ratios() {
        let samples = vec![sample(Contender::Quiche, 0, 1.0)];
        let report = Report::new(Machine::now(), plan(&[Contender::Quiche]), samples, Costs::default());
        assert_eq!(report.bulk.len(), 1);
        assert_eq!(report.bulk[0].hvq_cpu_ratio, None);
        assert!(report.to_string().contains('—'));
    }
}
