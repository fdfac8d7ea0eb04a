//! The latency spin bit of a path, by which observers measure its round-trip time (RFC 9000 §17.4).

use crate::Role;
use rand::Rng;

/// One path in this many does not spin, wherever the others do (RFC 9000 §17.4).
const ONE_QUIET_IN: u32 = 16;

/// Tells whether observers of the network may measure round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SpinBit {
    /// On all paths but one in sixteen, chosen by chance, so that endpoints that do not spin at all are not rare.
    #[default]
    Mostly,
    /// On no path.
    Never,
}

/// The spin bit of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spin {
    /// It says nothing: the value was drawn by chance and stays (RFC 9000 §17.4 recommends a random one).
    Quiet(bool),
    /// It follows the peer's.
    Spinning(bool),
}

impl Default for Spin {
    fn default() -> Self {
        Self::Quiet(false)
    }
}

impl Spin {
    /// The spin bit of a new path.
    pub fn draw(choice: SpinBit, rng: &mut impl Rng) -> Self {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.4
        //# Implementations MUST allow administrators of clients and servers to disable the spin bit either
        //# globally or on a per-connection basis
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.4
        //# Even when the spin bit is not disabled by the administrator, endpoints MUST disable their use of
        //# the spin bit for a random selection of at least one in every 16 network paths
        if choice == SpinBit::Never || rng.random_range(0..ONE_QUIET_IN) == 0 {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-17.4
            //# An endpoint that does not support this feature MUST disable it, as defined below.
            return Self::Quiet(rng.random());
        }
        Self::Spinning(false)
    }

    /// The bit of the next packet.
    pub fn value(self) -> bool {
        match self {
            Self::Quiet(value) | Self::Spinning(value) => value,
        }
    }

    /// The packet with the largest number so far arrived with the bit `received`: a server reflects it, a client inverts
    /// it.
    pub fn on_newest(&mut self, received: bool, role: Role) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.4
        //# When the spin bit is disabled, endpoints MAY set the spin bit to any value and MUST ignore any
        //# incoming value
        if let Self::Spinning(value) = self {
            *value = received ^ (role == Role::Client);
        }
    }

    /// The path has another address or connection ID, and starts anew (RFC 9000 §17.4).
    pub fn reset(&mut self) {
        if let Self::Spinning(value) = self {
            *value = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn the_client_inverts_and_the_server_reflects_so_that_the_bit_turns_once_a_round_trip() {
        let (mut client, mut server) = (Spin::Spinning(false), Spin::Spinning(false));
        let seen: Vec<bool> = (0..4)
            .map(|_| {
                server.on_newest(client.value(), Role::Server);
                client.on_newest(server.value(), Role::Client);
                client.value()
            })
            .collect();
        assert_eq!(seen, [true, false, true, false]);
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.4
    //= type=test
    //# Even when the spin bit is not disabled by the administrator, endpoints MUST disable their use of the
    //# spin bit for a random selection of at least one in every 16 network paths
    #[test]
    fn about_one_path_in_sixteen_says_nothing() {
        let mut rng = StdRng::seed_from_u64(1);
        let quiet =
            (0..16_000).filter(|_| matches!(Spin::draw(SpinBit::Mostly, &mut rng), Spin::Quiet(_))).count();
        assert!((800..1_200).contains(&quiet), "{quiet}");
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.4
    //= type=test
    //# An endpoint that does not support this feature MUST disable it, as defined below.
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.4
    //= type=test
    //# Implementations MUST allow administrators of clients and servers to disable the spin bit either
    //# globally or on a per-connection basis
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.4
    //= type=test
    //# When the spin bit is disabled, endpoints MAY set the spin bit to any value and MUST ignore any
    //# incoming value
    #[test]
    fn where_it_is_off_no_path_spins_and_what_arrives_changes_nothing() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..100 {
            let mut spin = Spin::draw(SpinBit::Never, &mut rng);
            let before = spin;
            spin.on_newest(!spin.value(), Role::Server);
            spin.reset();
            assert_eq!(spin, before);
        }
    }

    #[test]
    fn a_new_connection_id_starts_with_zero() {
        let mut spin = Spin::Spinning(true);
        spin.reset();
        assert!(!spin.value());
    }
}
