//! Rules as people write them.

use super::{Condition, Rule, Rules, Use};
use crate::Hints;
use crate::links::{LinkKind, UnknownLinkKind};
use crate::options::{OptionsError, parse_hints, split_dscp};
use crate::path::Sharing;
use crate::path_manager::budget::{Budget, BudgetError};
use hvq_transport::scheduler::Metering;
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Bytes of an interface's name at most (IFNAMSIZ of Linux, without the final zero).
const NAME_LIMIT: usize = 15;

/// The reason for which a text is no rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RuleError {
    /// There is no `=`.
    #[error("{0:?} is no rule: expected CONDITION[,CONDITION…]=ACTION[,key=value…], such as wlan*=backup")]
    NoAction(String),
    /// A condition that cannot be.
    #[error(
        "{0:?} is no condition: expected any, the name of an interface such as wlan*, kind:wifi, a network such as \
         10.0.0.0/8, ipv4 or ipv6"
    )]
    Condition(String),
    /// A kind of link that there is not.
    #[error(transparent)]
    Kind(#[from] UnknownLinkKind),
    /// An action that there is not.
    #[error("unknown action {0:?}: choose from use, backup, metered, never")]
    Action(String),
    /// A value of a hint or codepoint.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A budget.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A budget of what is not metered.
    #[error("only metered has a budget")]
    NotMetered,
    /// Properties of what is not used.
    #[error("never has no properties, but {0:?} was given")]
    Unused(String),
}

/// The first line of a text that is no rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {error}")]
pub struct RulesError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The error in it.
    pub error: RuleError,
}

impl FromStr for Rules {
    type Err = RulesError;

    fn from_str(text: &str) -> Result<Self, RulesError> {
        let mut rules = Self::default();
        for (index, line) in text.lines().enumerate() {
            let rule = line.split_once('#').map_or(line, |(rule, _comment)| rule).trim();
            if !rule.is_empty() {
                let failed = |error| RulesError { line: index + 1, error };
                rules = rules.then(rule.parse().map_err(failed)?);
            }
        }
        Ok(rules)
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let missing = || RuleError::NoAction(text.to_owned());
        let (conditions, rest) = text.split_once('=').ok_or_else(missing)?;
        let (action, properties) = rest.split_once(',').unwrap_or((rest, ""));
        let conditions =
            conditions.split(',').map(|text| text.trim().parse()).collect::<Result<Vec<_>, _>>()?;
        let properties: Vec<&str> =
            properties.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        let (budgets, rest): (Vec<&str>, Vec<&str>) =
            properties.iter().partition(|pair| pair.starts_with("budget="));
        let usage = usage(action.trim(), &budgets)?;
        if let (Use::Never, Some(first)) = (usage, rest.first()) {
            return Err(RuleError::Unused((*first).to_owned()));
        }
        let (dscp, rest) = split_dscp(&rest.join(","))?;
        Ok(Self { conditions, usage, hints: parse_hints(&rest)?, dscp })
    }
}

fn usage(action: &str, budgets: &[&str]) -> Result<Use, RuleError> {
    let usage = match action {
        "use" => Use::Freely,
        "backup" => Use::AsBackup,
        "never" => Use::Never,
        "metered" => {
            let mut budgets = budgets.iter().filter_map(|pair| pair.strip_prefix("budget="));
            let budget = budgets.next().map(Budget::from_str).transpose()?;
            if budgets.next().is_some() {
                return Err(OptionsError::Repeated("budget".to_owned()).into());
            }
            return Ok(Use::Metered(budget));
        }
        _ => return Err(RuleError::Action(action.to_owned())),
    };
    if budgets.is_empty() { Ok(usage) } else { Err(RuleError::NotMetered) }
}

impl FromStr for Condition {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        if let Some(kind) = text.strip_prefix("kind:") {
            return Ok(Self::Kind(kind.parse::<LinkKind>()?));
        }
        match text {
            "any" => return Ok(Self::Any),
            "ipv4" => return Ok(Self::Ipv4),
            "ipv6" => return Ok(Self::Ipv6),
            _ => {}
        }
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Self::Network(network.trunc()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Network(address.into()));
        }
        // What looks like an address is a mistyped one.
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'[' | b']');
        let is_name = (1..=NAME_LIMIT).contains(&text.len())
            && text.bytes().all(plain)
            && text.bytes().any(|byte| byte.is_ascii_alphabetic() || byte == b'*');
        if is_name { Ok(Self::Name(text.to_owned())) } else { Err(RuleError::Condition(text.to_owned())) }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Name(pattern) => f.write_str(pattern),
            Self::Kind(kind) => write!(f, "kind:{kind}"),
            Self::Network(network) => network.fmt(f),
            Self::Ipv4 => f.write_str("ipv4"),
            Self::Ipv6 => f.write_str("ipv6"),
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Freely => f.write_str("use"),
            Self::AsBackup => f.write_str("backup"),
            Self::Metered(None) => f.write_str("metered"),
            Self::Metered(Some(budget)) => write!(f, "metered,budget={budget}"),
            Self::Never => f.write_str("never"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.conditions.is_empty() {
            f.write_str("any")?;
        }
        for (index, condition) in self.conditions.iter().enumerate() {
            write!(f, "{}{condition}", if index == 0 { "" } else { "," })?;
        }
        write!(f, "={}", self.usage)?;
        hints(&self.hints, f)?;
        if self.dscp.value() > 0 {
            write!(f, ",dscp={}", self.dscp.value())?;
        }
        Ok(())
    }
}

/// Writes what is known about a channel as [`parse_hints`] reads it.
fn hints(hints: &Hints, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(rate) = hints.rate {
        write!(f, ",rate={}bit", rate.bits_per_second())?;
    }
    if let Some(rate) = hints.rate_back {
        write!(f, ",down={}bit", rate.bits_per_second())?;
    }
    if let Some(delay) = hints.delay {
        write!(f, ",delay={}us", delay.as_nanos() as f64 / 1e3)?;
    }
    if let Some(loss) = hints.loss {
        write!(f, ",loss={}%", f64::from(loss.get()) / 10.0)?;
    }
    if let Some(price) = hints.price_per_byte {
        write!(f, ",price={price}")?;
    }
    f.write_str(match hints.shared {
        Sharing::Unknown => "",
        Sharing::Shared => ",shared=yes",
        Sharing::Endpoint => ",shared=endpoint",
        Sharing::Dedicated => ",shared=no",
    })?;
    f.write_str(match hints.metering {
        Metering::Unknown => "",
        Metering::Metered => ",metered=yes",
        Metering::Unmetered => ",metered=no",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bandwidth;
    use std::time::Duration;

    #[test]
    fn a_rule_is_read_with_everything_that_it_may_have_and_printed_back() {
        for text in [
            "wlan*=use",
            "any=backup",
            "kind:cellular,ipv4=metered,budget=500MB/day,price=3",
            "kind:cellular=metered",
            "10.0.0.0/8=never",
            "2001:db8::/32=use,rate=2000000bit,down=8000000bit,delay=2500us,loss=0.5%,shared=no,metered=no,dscp=46",
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        let rule: Rule = " wlan0 , ipv6 = use , rate=2mbit , delay=2.5ms ".parse().unwrap();
        assert_eq!(rule.hints().rate, Some(Bandwidth::from_mbit(2)));
        assert_eq!(rule.hints().delay, Some(Duration::from_micros(2500)));
        assert_eq!("192.0.2.1=never".parse::<Rule>().unwrap().to_string(), "192.0.2.1/32=never");
        assert_eq!("10.1.2.3/8=never".parse::<Rule>().unwrap().to_string(), "10.0.0.0/8=never");
    }

    #[test]
    fn a_rule_that_is_built_is_the_one_that_is_read() {
        let built = Rule::new(Use::Metered("1GB/month".parse().ok()))
            .when(Condition::Kind(LinkKind::Cellular))
            .with_hints(Hints { price_per_byte: Some(2), ..Hints::NONE });
        assert_eq!("kind:cellular=metered,budget=1GB/month,price=2".parse(), Ok(built));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Rule>().unwrap_err().to_string();
        assert!(error("wlan0").contains("such as wlan*=backup"));
        assert!(error("wlan0=sometimes").contains("use, backup, metered, never"));
        assert!(error("kind:wired=use").contains("ethernet, wifi"));
        assert!(error("10.0.0.300/8=use").contains("is no condition"));
        assert!(error("10.0.0.0/64=use").contains("is no condition"));
        assert!(error("=use").contains("is no condition"));
        assert!(error("an-interface-name*=use").contains("is no condition"));
        assert_eq!(error("wlan0=use,budget=1MB/day"), "only metered has a budget");
        assert!(error("wlan0=never,price=3").contains("price=3"));
        assert!(error("wwan0=metered,budget=0MB/day").contains("0MB/day"));
        assert!(error("wwan0=metered,budget=1MB/day,budget=2MB/day").contains("twice"));
        assert!(error("wlan0=use,colour=red").contains("colour"));
        assert!(error("wlan0=use,dscp=64").contains("0 to 63"));
    }

    #[test]
    fn a_file_has_a_rule_a_line_with_comments_and_errors_name_the_line() {
        let rules: Rules = "# home\n\nwlan*=use # fast\n  any=never\n".parse().unwrap();
        assert_eq!(rules.iter().map(Rule::to_string).collect::<Vec<_>>(), ["wlan*=use", "any=never"]);
        let error = "wlan*=use\n\nwhat".parse::<Rules>().unwrap_err();
        assert_eq!(error.line, 3);
    }
}
