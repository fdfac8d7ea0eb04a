//! Hints about the channel of a path, one by one.

use super::PathOptions;
use crate::Bandwidth;
use crate::path::Sharing;
use hvq_transport::connection::Dscp;
use hvq_transport::scheduler::{Metering, PerMille};
use std::time::Duration;

impl PathOptions {
    /// Returns the same path over a channel that carries `rate` from here. By default nothing is known of it.
    #[must_use]
    pub fn rate(mut self, rate: Bandwidth) -> Self {
        self.hints.rate = Some(rate);
        self
    }

    /// Returns the same path over a channel that carries `rate` to here, which the peer is told. By default nothing is known of
    /// it.
    #[must_use]
    pub fn rate_back(mut self, rate: Bandwidth) -> Self {
        self.hints.rate_back = Some(rate);
        self
    }

    /// Returns the same path over a channel that takes `delay`, one way. By default nothing is known of it.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.hints.delay = Some(delay);
        self
    }

    /// Returns the same path over a channel that loses this share of packets. By default nothing is known of it.
    #[must_use]
    pub fn loss(mut self, loss: PerMille) -> Self {
        self.hints.loss = Some(loss);
        self
    }

    /// Returns the same path over a channel on which a byte costs `price`, in the unit of the other paths. By default it has no
    /// price of its own.
    #[must_use]
    pub fn price_per_byte(mut self, price: u64) -> Self {
        self.hints.price_per_byte = Some(price);
        self
    }

    /// Returns the same path over a channel that is shared with others in this way. By default nothing is known of it.
    #[must_use]
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.hints.shared = sharing;
        self
    }

    /// Returns the same path over a channel whose owner pays for what it carries, or does not. By default nothing is known of it.
    #[must_use]
    pub fn metering(mut self, metering: Metering) -> Self {
        self.hints.metering = metering;
        self
    }

    /// Returns the same path with packets that are marked with this codepoint (RFC 2474, RFC 10069 §5.2). Default: 0.
    #[must_use]
    pub fn dscp(mut self, codepoint: Dscp) -> Self {
        self.dscp = codepoint;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn typed_options_say_what_the_text_form_says() {
        let text = "urllc=10.1.0.2>192.0.2.1:443,rate=2mbit,down=3mbit,delay=2.5ms,loss=0.5%,price=3,shared=endpoint,metered=yes,dscp=46";
        let typed = PathOptions::new("urllc", IpAddr::from(Ipv4Addr::new(10, 1, 0, 2)))
            .to(([192, 0, 2, 1], 443).into())
            .rate(Bandwidth::from_mbit(2))
            .rate_back(Bandwidth::from_mbit(3))
            .delay(Duration::from_micros(2_500))
            .loss(PerMille::new(5))
            .price_per_byte(3)
            .sharing(Sharing::Endpoint)
            .metering(Metering::Metered)
            .dscp(Dscp::new(46).unwrap());
        assert_eq!(text.parse::<PathOptions>().unwrap(), typed);
    }
}
