//! The ways by which a browser gets to a page.

use hvq_lab::names::by_name;
use hvq_lab::workload::page_load::Deployment;
use serde::{Serialize, Serializer};
use std::str::FromStr;

/// A way by which a browser gets to a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Arm {
    /// HTTP/2 over TCP with CUBIC, eMBB alone: what the others are measured against.
    Embb,
    /// TCP over the kernel's MPTCP, both channels.
    Mptcp,
    /// TCP with DChannel's steerer below.
    Dchannel,
    /// TCP with DChannel's steerer below and BBR in place of CUBIC.
    DchannelBbr,
    /// TCP with DChannel's steerer below and Reno, which has no HyStart: it does not take a change of channel for a
    /// queue.
    DchannelReno,
    /// `hvq proxy` and `hvq gateway` over eMBB alone.
    GatewayEmbb,
    /// `hvq proxy` and `hvq gateway` over both channels with `hvc`.
    GatewayHvc,
    /// The browser's own HTTP/3, eMBB alone.
    Http3,
}

/// The protocol that a browser speaks to servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speech {
    /// HTTP/2 over TLS and TCP.
    Http2,
    /// HTTP/3.
    Http3,
    /// To a proxy, which has one connection to a gateway with this scheduler and so many paths.
    Proxy(&'static str, usize),
}

/// The model of an arm in virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Model {
    /// The deployment: the place where connections end.
    pub deployment: Deployment,
    /// The scheme, as in `hvq lab pages`.
    pub scheme: &'static str,
    /// The controller.
    pub congestion: &'static str,
}

impl Arm {
    /// All of them, the baseline first.
    pub const ALL: [Self; 8] = [
        Self::Embb,
        Self::Mptcp,
        Self::Dchannel,
        Self::DchannelBbr,
        Self::DchannelReno,
        Self::GatewayEmbb,
        Self::GatewayHvc,
        Self::Http3,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embb => "eMBB, TCP",
            Self::Mptcp => "MPTCP",
            Self::Dchannel => "DChannel, TCP CUBIC",
            Self::DchannelBbr => "DChannel, TCP BBR",
            Self::DchannelReno => "DChannel, TCP Reno",
            Self::GatewayEmbb => "gateway, eMBB",
            Self::GatewayHvc => "gateway, hvc",
            Self::Http3 => "eMBB, HTTP/3",
        }
    }

    /// Returns the name by which the arm is asked for.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Embb => "embb",
            Self::Mptcp => "mptcp",
            Self::Dchannel => "dchannel",
            Self::DchannelBbr => "dchannel-bbr",
            Self::DchannelReno => "dchannel-reno",
            Self::GatewayEmbb => "gateway-embb",
            Self::GatewayHvc => "gateway",
            Self::Http3 => "http3",
        }
    }

    /// Its options of `hvq run`, besides the channels.
    pub const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Embb | Self::Http3 => &["--direct", "--tcp", "cubic"],
            Self::Mptcp => &["--mptcp", "--tcp", "cubic"],
            Self::Dchannel => &["--steer", "dchannel", "--tcp", "cubic"],
            Self::DchannelBbr => &["--steer", "dchannel", "--tcp", "bbr"],
            Self::DchannelReno => &["--steer", "dchannel", "--tcp", "reno"],
            Self::GatewayEmbb | Self::GatewayHvc => &["--apart"],
        }
    }

    /// Returns the protocol that the browser speaks to servers.
    pub const fn speech(self) -> Speech {
        match self {
            Self::Embb | Self::Mptcp | Self::Dchannel | Self::DchannelBbr | Self::DchannelReno => {
                Speech::Http2
            }
            Self::GatewayEmbb => Speech::Proxy("single", 1),
            Self::GatewayHvc => Speech::Proxy("hvc", 2),
            Self::Http3 => Speech::Http3,
        }
    }

    /// Returns the model of the arm in virtual time; there is none for MPTCP.
    pub const fn model(self) -> Option<Model> {
        let (deployment, scheme, congestion) = match self {
            Self::Embb => (Deployment::TcpTls, "embb", "cubic"),
            Self::Mptcp => return None,
            Self::Dchannel => (Deployment::TcpTls, "below:dchannel", "cubic"),
            Self::DchannelBbr => (Deployment::TcpTls, "below:dchannel", "bbr"),
            Self::DchannelReno => (Deployment::TcpTls, "below:dchannel", "newreno"),
            Self::GatewayEmbb => (Deployment::Gateway, "embb", "cubic"),
            Self::GatewayHvc => (Deployment::Gateway, "hvc", "cubic"),
            Self::Http3 => (Deployment::Cold, "embb", "cubic"),
        };
        Some(Model { deployment, scheme, congestion })
    }
}

impl FromStr for Arm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name(text, "way to a page", &Self::ALL, Self::key)
    }
}

impl Serialize for Arm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_lab::experiment::pages::Scheme;

    #[test]
    fn what_stands_for_an_arm_is_a_scheme_of_the_lab() {
        for model in Arm::ALL.into_iter().filter_map(Arm::model) {
            assert!(model.scheme.parse::<Scheme>().is_ok(), "{model:?}");
        }
        assert_eq!(Arm::Mptcp.model(), None);
    }

    #[test]
    fn arms_are_asked_for_by_their_keys() {
        assert!(Arm::ALL.into_iter().all(|arm| arm.key().parse() == Ok(arm)));
        assert!("warp".parse::<Arm>().unwrap_err().contains("gateway-embb"));
    }
}
