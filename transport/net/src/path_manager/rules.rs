//! Rules that say which links paths may use, and for what: the first that matches counts, as in a firewall.

mod text;

pub use text::{RuleError, RulesError};

use super::budget::Budget;
use crate::Hints;
use crate::config::Dscp;
use crate::links::{Link, LinkKind};
use hvq_transport::scheduler::Metering;
use ipnet::IpNet;

/// The price of a byte on a metered link of which nothing else is known: any price has the policy `hvc` spend bytes there
/// only where they gain time.
const METERED_PRICE: u64 = 1;

/// A condition that a link, with one of its addresses, meets or not. Text forms: `any`, `wlan*`, `kind:cellular`,
/// `10.0.0.0/8`, `ipv6`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Always met.
    Any,
    /// The interface has such a name; `*` stands for any characters, `?` for one.
    Name(String),
    /// The link is of this kind.
    Kind(LinkKind),
    /// The address is in this network.
    Network(IpNet),
    /// The address is one of IPv4.
    Ipv4,
    /// The address is one of IPv6.
    Ipv6,
}

impl Condition {
    /// Returns true if `link` with its address `address` meets the condition.
    pub fn is_met(&self, link: &Link, address: &IpNet) -> bool {
        match self {
            Self::Any => true,
            Self::Name(pattern) => matches(pattern.as_bytes(), link.name.as_bytes()),
            Self::Kind(kind) => link.kind == *kind,
            Self::Network(network) => network.contains(&address.addr()),
            Self::Ipv4 => address.addr().is_ipv4(),
            Self::Ipv6 => address.addr().is_ipv6(),
        }
    }

    /// Returns true if some address of `link` could meet the condition.
    fn could_be_met(&self, link: &Link) -> bool {
        match self {
            Self::Any | Self::Name(_) | Self::Kind(_) => {
                // The address plays no part.
                let none = IpNet::from(std::net::IpAddr::from([0, 0, 0, 0]));
                self.is_met(link, &none)
            }
            Self::Network(_) | Self::Ipv4 | Self::Ipv6 => {
                link.addresses.iter().any(|address| self.is_met(link, address))
            }
        }
    }
}

/// Tells how a link is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Used whenever the scheduler chooses it.
    Freely,
    /// Only while no other path works: the peer is told so, too (PATH_STATUS_BACKUP, RFC 10069 §3.3).
    AsBackup,
    /// At a price for each byte, 1 unless the hints give another, and until the budget of the day or month is spent.
    Metered(Option<Budget>),
    /// Not at all.
    Never,
}

/// A rule. Text form: `CONDITION[,CONDITION…]=ACTION[,key=value…]`, where the action is `use`, `backup`, `metered` or
/// `never` and the keys are those of [`parse_hints`](crate::path::parse_hints), `dscp`, and for `metered` `budget`, as in
/// `kind:cellular,ipv4=metered,budget=500MB/day,price=3`. Spaces around words are permitted.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    conditions: Vec<Condition>,
    usage: Use,
    hints: Hints,
    dscp: Dscp,
}

impl Rule {
    /// A rule for all links, without hints.
    pub const fn new(usage: Use) -> Self {
        Self { conditions: Vec::new(), usage, hints: Hints::NONE, dscp: Dscp::DEFAULT }
    }

    /// Returns the same rule for links that meet `condition`, too. A rule without conditions is for all.
    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Returns the same rule for channels of which `hints` are known.
    #[must_use]
    pub fn with_hints(self, hints: Hints) -> Self {
        Self { hints, ..self }
    }

    /// Returns the same rule with a Differentiated Services codepoint for what is sent (RFC 10069 §5.2).
    #[must_use]
    pub fn with_dscp(self, dscp: Dscp) -> Self {
        Self { dscp, ..self }
    }

    /// Returns true if the rule is for `link` with its address `address`.
    pub fn applies(&self, link: &Link, address: &IpNet) -> bool {
        self.conditions.iter().all(|condition| condition.is_met(link, address))
    }

    /// The use of the links that it is for.
    pub const fn usage(&self) -> Use {
        self.usage
    }

    /// The hints about their channels, the price of a metered one included.
    pub fn hints(&self) -> Hints {
        let metered = matches!(self.usage, Use::Metered(_));
        if !metered {
            return self.hints;
        }
        let implied =
            Hints { price_per_byte: Some(METERED_PRICE), metering: Metering::Metered, ..Hints::NONE };
        self.hints.or(implied)
    }

    /// The codepoint of what is sent on them.
    pub const fn dscp(&self) -> Dscp {
        self.dscp
    }

    /// Returns true if the rule could be for one of `links`.
    fn could_apply(&self, links: &[Link]) -> bool {
        let could = |link: &Link| match self.conditions.iter().any(Condition::is_about_addresses) {
            true => link.addresses.iter().any(|address| self.applies(link, address)),
            false => self.conditions.iter().all(|condition| condition.could_be_met(link)),
        };
        links.iter().any(could)
    }
}

impl Condition {
    fn is_about_addresses(&self) -> bool {
        matches!(self, Self::Network(_) | Self::Ipv4 | Self::Ipv6)
    }
}

/// Rules in order. Text form: one a line; `#` begins a comment.
///
/// A link that no rule is for is used freely, unless it is a tunnel, whose packets leave through another link, or loopback.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// Returns the same rules with one more at the end.
    #[must_use]
    pub fn then(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The rules, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The rule for `link` with its address `address`; `None` if the default counts.
    pub fn find(&self, link: &Link, address: &IpNet) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.applies(link, address))
    }

    /// Rules that are for none of `links`, whatever their state: most likely a name is mistyped.
    pub fn idle<'a>(&'a self, links: &'a [Link]) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(|rule| !rule.could_apply(links))
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self { rules: rules.into_iter().collect() }
    }
}

/// Returns true if `text` is as `pattern` says. It takes time in proportion to the product of their lengths at most.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where the latest star was, and how far the text had come.
    let (mut star, mut at, mut reached) = (None, 0, 0);
    while reached < text.len() {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                star = Some((at, reached));
                at += 1;
            }
            (Some(sign), _) if *sign == b'?' || Some(sign) == text.get(reached) => {
                at += 1;
                reached += 1;
            }
            (_, Some((place, before))) => {
                // The star takes one more.
                star = Some((place, before + 1));
                (at, reached) = (place + 1, before + 1);
            }
            (_, None) => return false,
        }
    }
    pattern.iter().skip(at).all(|sign| *sign == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::LinkState;

    fn link(name: &str, kind: LinkKind, addresses: &[&str]) -> Link {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Link { name: name.to_owned(), index: 1, kind, state: LinkState::Up, addresses, routes: Vec::new() }
    }

    #[test]
    fn a_name_is_matched_as_shells_do() {
        for (pattern, text, wanted) in [
            ("wlan*", "wlan0", true),
            ("wlan*", "wlan", true),
            ("wlan*", "wwan0", false),
            ("*", "eth0", true),
            ("eth?", "eth0", true),
            ("eth?", "eth10", false),
            ("*a*b", "xaxbxb", true),
            ("*a*b", "xaxbxc", false),
            ("", "eth0", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn the_first_rule_that_applies_counts() {
        let rules: Rules = "wlan1=never\nkind:wifi,10.0.0.0/8=backup\nkind:wifi=use\n".parse().unwrap();
        let find = |link: &Link| rules.find(link, &link.addresses[0]).map(Rule::usage);
        assert_eq!(find(&link("wlan1", LinkKind::Wifi, &["10.0.0.1/24"])), Some(Use::Never));
        assert_eq!(find(&link("wlan0", LinkKind::Wifi, &["10.0.0.1/24"])), Some(Use::AsBackup));
        assert_eq!(find(&link("wlan0", LinkKind::Wifi, &["192.0.2.1/24"])), Some(Use::Freely));
        assert_eq!(find(&link("eth0", LinkKind::Ethernet, &["10.0.0.1/24"])), None);
    }

    #[test]
    fn a_rule_that_is_for_no_link_is_told_of_and_one_for_a_link_that_is_down_is_not() {
        let rules: Rules = "wlam0=use\nwlan0=backup\n10.0.0.0/8,kind:wifi=never\nany=use".parse().unwrap();
        let mut down = link("wlan0", LinkKind::Wifi, &[]);
        down.state = LinkState::Down;
        let links = [down, link("eth0", LinkKind::Ethernet, &["10.0.0.1/24"])];
        let idle: Vec<String> = rules.idle(&links).map(Rule::to_string).collect();
        assert_eq!(idle, ["wlam0=use", "10.0.0.0/8,kind:wifi=never"], "the third needs both at one link");
    }

    #[test]
    fn a_metered_link_has_a_price() {
        let price = |text: &str| text.parse::<Rule>().unwrap().hints().price_per_byte;
        assert_eq!(price("wwan0=metered"), Some(METERED_PRICE));
        assert_eq!(price("wwan0=metered,price=9"), Some(9));
        assert_eq!(price("wwan0=use"), None);
    }
}
