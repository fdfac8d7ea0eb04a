//! HTTPS records (RFC 9460): at which names and ports a host offers a protocol.

use hickory_resolver::proto::rr::rdata::svcb::{SvcParamKey, SvcParamValue};
use hickory_resolver::proto::rr::rdata::{A, AAAA, SVCB};
use hickory_resolver::proto::rr::{Name, RData, Record};
use ring::rand::{SecureRandom, SystemRandom};
use std::net::IpAddr;

/// Services of one host that are looked up at most.
const MOST_SERVICES: usize = 4;
/// Addresses that one record may name at most.
const MOST_HINTS: usize = 8;

/// The HTTPS records of a name, as far as they concern one protocol.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Answer {
    /// No record is of use.
    Nothing,
    /// The records stand at this name (RFC 9460 §2.4.2).
    Alias(Name),
    /// The services that offer the protocol, in the order in which to try them; one at least.
    Services(Vec<Service>),
}

/// A service that offers the protocol (RFC 9460 §2.4.3).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Service {
    priority: u16,
    /// The name whose addresses it has.
    pub(super) target: Name,
    /// The port, if it is not that of the host.
    pub(super) port: Option<u16>,
    /// Addresses that the target probably has.
    pub(super) hints: Vec<IpAddr>,
}

/// Reads what an answer says about `protocol`, an identifier of ALPN.
pub(super) fn read(answers: &[Record], protocol: &str) -> Answer {
    let records = answers.iter().filter_map(|record| match &record.data {
        RData::HTTPS(https) => Some((&record.name, &https.0)),
        _ => None,
    });
    let mut services = Vec::new();
    for (owner, record) in records {
        if record.svc_priority == 0 {
            let exists = !record.target_name.is_root();
            return if exists { Answer::Alias(record.target_name.clone()) } else { Answer::Nothing };
        }
        services.extend(service(owner, record, protocol));
    }
    if services.is_empty() {
        return Answer::Nothing;
    }
    shuffle(&mut services);
    services.sort_by_key(|service| service.priority);
    services.truncate(MOST_SERVICES);
    Answer::Services(services)
}

/// The service of `record`, if it offers the protocol and asks for nothing that is not understood (RFC 9460 §8).
fn service(owner: &Name, record: &SVCB, protocol: &str) -> Option<Service> {
    let target = if record.target_name.is_root() { owner } else { &record.target_name };
    let mut service =
        Service { priority: record.svc_priority, target: target.clone(), port: None, hints: Vec::new() };
    let mut offered = false;
    for (_, value) in &record.svc_params {
        match value {
            SvcParamValue::Mandatory(keys) if !keys.0.iter().all(is_understood) => return None,
            SvcParamValue::Alpn(protocols) => offered = protocols.0.iter().any(|other| other == protocol),
            SvcParamValue::Port(0) => return None,
            SvcParamValue::Port(port) => service.port = Some(*port),
            SvcParamValue::Ipv4Hint(hint) => {
                service.hints.extend(hint.0.iter().take(MOST_HINTS).map(|A(address)| IpAddr::from(*address)));
            }
            SvcParamValue::Ipv6Hint(hint) => {
                service
                    .hints
                    .extend(hint.0.iter().take(MOST_HINTS).map(|AAAA(address)| IpAddr::from(*address)));
            }
            _ => {}
        }
    }
    offered.then_some(service)
}

const fn is_understood(key: &SvcParamKey) -> bool {
    matches!(
        key,
        SvcParamKey::Alpn
            | SvcParamKey::NoDefaultAlpn
            | SvcParamKey::Port
            | SvcParamKey::Ipv4Hint
            | SvcParamKey::Ipv6Hint
    )
}

/// Puts services into a random order: those of one priority share the load (RFC 9460 §2.4.1).
fn shuffle(services: &mut [Service]) {
    let random = SystemRandom::new();
    for last in (1..services.len()).rev() {
        let mut bytes = [0; 8];
        if random.fill(&mut bytes).is_err() {
            return;
        }
        let pick = u64::from_ne_bytes(bytes) % (last as u64 + 1);
        services.swap(last, usize::try_from(pick).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_resolver::proto::rr::rdata::HTTPS;
    use hickory_resolver::proto::rr::rdata::svcb::{Alpn, EchConfigList, IpHint, Mandatory};

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn record(priority: u16, target: &str, values: Vec<SvcParamValue>) -> Record {
        let key = |value: &SvcParamValue| match value {
            SvcParamValue::Mandatory(_) => SvcParamKey::Mandatory,
            SvcParamValue::Alpn(_) => SvcParamKey::Alpn,
            SvcParamValue::Port(_) => SvcParamKey::Port,
            SvcParamValue::Ipv4Hint(_) => SvcParamKey::Ipv4Hint,
            _ => SvcParamKey::EchConfigList,
        };
        let params = values.into_iter().map(|value| (key(&value), value)).collect();
        let data = RData::HTTPS(HTTPS(SVCB::new(priority, name(target), params)));
        Record::from_rdata(name("www.example."), 60, data)
    }

    fn alpn(protocols: &[&str]) -> SvcParamValue {
        SvcParamValue::Alpn(Alpn(protocols.iter().map(|&text| text.to_owned()).collect()))
    }

    fn targets(answer: Answer) -> Vec<String> {
        let Answer::Services(services) = answer else { panic!("{answer:?} are no services") };
        services.iter().map(|service| format!("{} {:?}", service.target, service.port)).collect()
    }

    #[test]
    fn services_with_the_protocol_stand_by_priority_and_a_dot_is_the_owner() {
        let records = [
            record(3, "c.example.", vec![alpn(&["h3"])]),
            record(1, "a.example.", vec![alpn(&["h2"])]),
            record(2, ".", vec![alpn(&["h2", "h3"]), SvcParamValue::Port(8443)]),
            record(4, "d.example.", vec![]),
            record(5, "e.example.", vec![alpn(&["h3"]), SvcParamValue::Port(0)]),
        ];
        assert_eq!(targets(read(&records, "h3")), ["www.example. Some(8443)", "c.example. None"]);
        assert_eq!(targets(read(&records, "h2")), ["a.example. None", "www.example. Some(8443)"]);
        assert_eq!(read(&records, "moq"), Answer::Nothing);
        assert_eq!(read(&[], "h3"), Answer::Nothing);
    }

    #[test]
    fn an_alias_counts_more_than_services_and_a_dot_is_no_service() {
        let service = record(1, ".", vec![alpn(&["h3"])]);
        let alias = record(0, "pool.example.", vec![]);
        assert_eq!(read(&[service.clone(), alias], "h3"), Answer::Alias(name("pool.example.")));
        assert_eq!(read(&[record(0, ".", vec![]), service], "h3"), Answer::Nothing);
    }

    #[test]
    fn a_record_that_asks_for_what_is_not_understood_is_none() {
        let mandatory = |key| SvcParamValue::Mandatory(Mandatory(vec![key]));
        let asks = |key| read(&[record(1, ".", vec![mandatory(key), alpn(&["h3"])])], "h3");
        assert_eq!(asks(SvcParamKey::EchConfigList), Answer::Nothing);
        assert_eq!(asks(SvcParamKey::Key(4000)), Answer::Nothing);
        assert_eq!(targets(asks(SvcParamKey::Port)).len(), 1);
        let offers = vec![alpn(&["h3"]), SvcParamValue::EchConfigList(EchConfigList(vec![1]))];
        assert_eq!(targets(read(&[record(1, ".", offers)], "h3")).len(), 1, "an offer is no demand");
    }

    #[test]
    fn hints_and_services_are_bounded() {
        let hints = SvcParamValue::Ipv4Hint(IpHint((0..=255).map(|last| A::new(192, 0, 2, last)).collect()));
        let many: Vec<Record> =
            (1..=300).map(|priority| record(priority, ".", vec![alpn(&["h3"]), hints.clone()])).collect();
        let Answer::Services(services) = read(&many, "h3") else { panic!("no services") };
        assert_eq!((services.len(), services[0].hints.len()), (MOST_SERVICES, MOST_HINTS));
    }

    #[test]
    fn services_of_one_priority_take_turns() {
        let records = ["a.example.", "b.example."].map(|target| record(1, target, vec![alpn(&["h3"])]));
        let first = || targets(read(&records, "h3")).swap_remove(0);
        let firsts: std::collections::BTreeSet<String> = (0..64).map(|_| first()).collect();
        assert_eq!(firsts.len(), 2, "{firsts:?}");
    }
}
