//! Arguments about what observers of the network see of a connection.

use clap::Args;
use hvq::TransportConfig;
use hvq::config::{Greasing, Rotation, SpinBit};
use std::time::Duration;

/// A switch: on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Switch {
    /// It is.
    On,
    /// It is not.
    Off,
}

impl Switch {
    /// Reads `on` or `off`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err("choose from on, off".to_owned()),
        }
    }
}

/// The privacy of connections: the traits that observers of the network see.
#[derive(Clone, Debug, Args)]
pub(super) struct PrivacyArguments {
    /// Let observers measure round-trip times, on all paths but one in sixteen: on or off
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = Switch::parse, hide_default_value = true)]
    spin_bit: Switch,
    /// Vary what means nothing, reserved versions and parameters and the QUIC bit, so that nobody relies on it: on or off
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = Switch::parse, hide_default_value = true)]
    greasing: Switch,
    /// Change the connection ID of a path after so many packets
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    rotate_packets: Option<u64>,
    /// Change the connection ID of a path that carries data after this time
    #[arg(long, value_name = "TIME", value_parser = crate::duration::positive)]
    rotate_every: Option<Duration>,
    /// Change the connection ID of a path with the first packet after so long a silence
    #[arg(long, value_name = "TIME", value_parser = crate::duration::positive)]
    rotate_idle: Option<Duration>,
}

impl PrivacyArguments {
    /// `config`, with what these arguments ask for.
    pub(super) fn apply(&self, mut config: TransportConfig) -> TransportConfig {
        config
            .set_spin_bit(match self.spin_bit {
                Switch::On => SpinBit::Mostly,
                Switch::Off => SpinBit::Never,
            })
            .set_greasing(match self.greasing {
                Switch::On => Greasing::On,
                Switch::Off => Greasing::Off,
            })
            .set_rotation(Rotation {
                packets: self.rotate_packets,
                time: self.rotate_every,
                idle: self.rotate_idle,
            });
        config
    }
}
