//! The links that paths should use, the best first, and why the others are of no use.

use super::budget::Spending;
use super::rules::{Rule, Rules, Use};
use super::status::Reason;
use crate::config::Dscp;
use crate::links::{Link, LinkKind, LinkState};
use crate::path::{LinkAddress, Status};
use crate::{Hints, PathOptions};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Ways over one link that are tried in turn, at most.
const MOST_WAYS: usize = 8;

/// The wishes of the application and the state of the world that they are for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes<'a> {
    /// The links.
    pub(crate) links: &'a [Link],
    /// The rules.
    pub(crate) rules: &'a Rules,
    /// The addresses of the peer, the preferred first.
    pub(crate) remotes: &'a [SocketAddr],
    /// Paths at the same time at most.
    pub(crate) most: usize,
    /// The account of budgets.
    pub(crate) spending: &'a Spending,
    /// The time since 1970 in UTC.
    pub(crate) calendar: Duration,
}

/// The properties that a rule gives to a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    /// The advice to the peer.
    pub(crate) status: Status,
    /// The hints about the channel.
    pub(crate) hints: Hints,
    /// The codepoint.
    pub(crate) dscp: Dscp,
}

/// A local and a remote address that a link has a route between.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Way<'a> {
    /// The address of the link.
    pub(crate) local: IpAddr,
    /// The address of the peer.
    pub(crate) remote: SocketAddr,
    /// The rule that it is used by, unless it is the default.
    pub(crate) rule: Option<&'a Rule>,
}

/// A link that a path should use.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Wanted<'a> {
    /// The link.
    pub(crate) link: &'a Link,
    /// The ways over it, at least one, the preferred first.
    pub(crate) ways: Vec<Way<'a>>,
}

/// The links in two parts.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Assessment<'a> {
    /// Those that a path should use, the best first.
    pub(crate) wanted: Vec<Wanted<'a>>,
    /// The others.
    pub(crate) unused: Vec<(&'a Link, Reason)>,
}

impl Way<'_> {
    /// The properties of a path over it.
    pub(crate) fn settings(&self) -> Settings {
        let Some(rule) = self.rule else {
            return Settings { status: Status::Available, hints: Hints::NONE, dscp: Dscp::DEFAULT };
        };
        let status = if rule.usage() == Use::AsBackup { Status::Backup } else { Status::Available };
        Settings { status, hints: rule.hints(), dscp: rule.dscp() }
    }

    /// The path over it through `link`.
    pub(crate) fn options(&self, link: &Link) -> PathOptions {
        let local = LinkAddress { address: self.local, interface: link.name.clone() };
        let settings = self.settings();
        let path = PathOptions::new(link.name.clone(), local).to(self.remote).with_hints(settings.hints);
        PathOptions { dscp: settings.dscp, ..path }
    }
}

impl Wanted<'_> {
    /// The rule of its preferred way, unless that is the default.
    pub(crate) fn rule(&self) -> Option<String> {
        self.ways.first().and_then(|way| way.rule).map(Rule::to_string)
    }

    /// The order in which links are preferred: those for use before metered and backup ones, then by the metric of the
    /// system, then the older one.
    fn rank(&self) -> impl Ord + use<> {
        let first = self.ways.first();
        let usage = match first.and_then(|way| way.rule).map_or(Use::Freely, Rule::usage) {
            Use::Freely => 0,
            Use::Metered(_) => 1,
            Use::AsBackup => 2,
            Use::Never => 3,
        };
        let metric = first.and_then(|way| self.link.default_metric(way.remote.ip()));
        (usage, metric.unwrap_or(u32::MAX), self.link.index)
    }
}

/// Sorts the links by whether paths should use them.
pub(crate) fn assess<'a>(wishes: &Wishes<'a>) -> Assessment<'a> {
    let mut assessment = Assessment::default();
    for link in wishes.links {
        match ways(link, wishes) {
            Ok(ways) => assessment.wanted.push(Wanted { link, ways }),
            Err(reason) => assessment.unused.push((link, reason)),
        }
    }
    assessment.wanted.sort_by_key(Wanted::rank);
    let most = wishes.most.min(assessment.wanted.len());
    for wanted in assessment.wanted.split_off(most) {
        assessment.unused.push((wanted.link, Reason::Surplus { most: wishes.most }));
    }
    assessment
}

/// The ways over `link`, or why there is none.
fn ways<'a>(link: &'a Link, wishes: &Wishes<'a>) -> Result<Vec<Way<'a>>, Reason> {
    match link.state {
        LinkState::Up => {}
        LinkState::NoCarrier => return Err(Reason::NoCarrier),
        LinkState::Down => return Err(Reason::Down),
    }
    if link.addresses.is_empty() {
        return Err(Reason::NoAddress);
    }
    let mut found: Vec<(bool, Way<'a>)> = Vec::new();
    let mut refused = Reason::NoRoute;
    for &remote in wishes.remotes {
        for address in link.addresses.iter().filter(|address| link.reaches(address, remote.ip())) {
            match permitted(link, address, wishes) {
                Ok(rule) => {
                    let is_neighbour = address.contains(&remote.ip());
                    found.push((!is_neighbour, Way { local: address.addr(), remote, rule }));
                }
                Err(reason) => refused = reason,
            }
        }
    }
    // A peer in the network of the link itself is reached without a gateway.
    found.sort_by_key(|(is_far, _)| *is_far);
    found.truncate(MOST_WAYS);
    if found.is_empty() { Err(refused) } else { Ok(found.into_iter().map(|(_, way)| way).collect()) }
}

/// The rule by which `address` of `link` may be used now; `None` is the default.
fn permitted<'a>(link: &Link, address: &IpNet, wishes: &Wishes<'a>) -> Result<Option<&'a Rule>, Reason> {
    let Some(rule) = wishes.rules.find(link, address) else {
        return if link.kind == LinkKind::Tunnel { Err(Reason::Tunnel) } else { Ok(None) };
    };
    match rule.usage() {
        Use::Never => Err(Reason::Rule(rule.to_string())),
        Use::Metered(Some(budget)) => {
            let spent = wishes.spending.spent(&rule.to_string(), budget, wishes.calendar);
            if spent < budget.bytes() { Ok(Some(rule)) } else { Err(Reason::Spent { budget, spent }) }
        }
        Use::Freely | Use::AsBackup | Use::Metered(None) => Ok(Some(rule)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_manager::fixture::{Shape, remote};

    fn names(assessment: &Assessment<'_>) -> Vec<String> {
        assessment.wanted.iter().map(|wanted| wanted.link.name.clone()).collect()
    }

    fn wishes<'a>(links: &'a [Link], rules: &'a Rules, remotes: &'a [SocketAddr]) -> Wishes<'a> {
        let spending: &'static Spending = Box::leak(Box::default());
        Wishes { links, rules, remotes, most: 4, spending, calendar: Duration::ZERO }
    }

    #[test]
    fn links_come_in_the_order_of_their_use_and_their_metrics() {
        let links = [
            Shape::new(2, "wlan0").metric(600).link(),
            Shape::new(3, "wwan0").metric(50).link(),
            Shape::new(4, "eth0").metric(100).link(),
            Shape::new(5, "usb0").metric(1).link(),
        ];
        let rules: Rules = "usb0=backup\nwwan0=metered".parse().unwrap();
        let remotes = [remote()];
        let found = assess(&wishes(&links, &rules, &remotes));
        assert_eq!(names(&found), ["eth0", "wlan0", "wwan0", "usb0"]);
        let settings: Vec<_> = found.wanted.iter().map(|wanted| wanted.ways[0].settings()).collect();
        assert_eq!((settings[2].hints.price_per_byte, settings[3].status), (Some(1), Status::Backup));
    }

    #[test]
    fn links_that_are_of_no_use_say_why() {
        let none = Rules::default();
        let mut off = Shape::new(2, "off").link();
        off.state = LinkState::Down;
        let mut loose = Shape::new(3, "loose").link();
        loose.state = LinkState::NoCarrier;
        let mut bare = Shape::new(4, "bare").link();
        bare.addresses.clear();
        let mut island = Shape::new(5, "island").link();
        island.routes.clear();
        let mut vpn = Shape::new(6, "vpn").link();
        vpn.kind = LinkKind::Tunnel;
        let links = [off, loose, bare, island, vpn];
        let remotes = [remote()];
        let found = assess(&wishes(&links, &none, &remotes));
        let reasons: Vec<_> = found.unused.iter().map(|(_, reason)| reason.clone()).collect();
        let wanted = [Reason::Down, Reason::NoCarrier, Reason::NoAddress, Reason::NoRoute, Reason::Tunnel];
        assert_eq!((names(&found), reasons), (Vec::new(), wanted.to_vec()));
        let rules: Rules = "vpn=use".parse().unwrap();
        assert_eq!(names(&assess(&wishes(&links, &rules, &remotes))), ["vpn"], "a rule permits a tunnel");
    }

    #[test]
    fn a_budget_that_is_spent_takes_the_link_away_until_the_next_period() {
        let links = [Shape::new(2, "wwan0").link()];
        let rules: Rules = "wwan0=metered,budget=1kB/day".parse().unwrap();
        let (remotes, spending) = ([remote()], Spending::default());
        let rule = rules.iter().next().unwrap().to_string();
        let budget = "1kB/day".parse().unwrap();
        spending.spend(&rule, budget, Duration::ZERO, 1_000);
        let on = |calendar| Wishes { spending: &spending, calendar, ..wishes(&links, &rules, &remotes) };
        let spent = Reason::Spent { budget, spent: 1_000 };
        assert_eq!(assess(&on(Duration::ZERO)).unused, [(&links[0], spent)]);
        assert_eq!(names(&assess(&on(Duration::from_secs(86_400)))), ["wwan0"]);
    }

    #[test]
    fn each_link_has_the_ways_to_the_addresses_of_the_peer_that_it_reaches() {
        let links = [Shape::new(2, "eth0").link(), Shape::new(3, "eth1").link()];
        let (near, none) = (SocketAddr::from(([10, 0, 3, 1], 443)), Rules::default());
        let remotes = [remote(), "[2001:db8::1]:443".parse().unwrap(), near];
        let found = assess(&wishes(&links, &none, &remotes));
        let to = |index: usize| found.wanted[index].ways.iter().map(|way| way.remote).collect::<Vec<_>>();
        assert_eq!(to(0), [remote(), near], "no link has IPv6");
        assert_eq!(to(1), [near, remote()], "a neighbour first");
    }

    #[test]
    fn no_more_links_are_wanted_than_paths_are_permitted() {
        let links: Vec<_> = (2..8).map(|index| Shape::new(index, &format!("eth{index}")).link()).collect();
        let none = Rules::default();
        let remotes = [remote()];
        let found = assess(&wishes(&links, &none, &remotes));
        assert_eq!(names(&found), ["eth2", "eth3", "eth4", "eth5"]);
        assert_eq!(found.unused[1], (&links[5], Reason::Surplus { most: 4 }));
    }
}
