//! The version that a connection speaks (RFC 9368): the one that the client began with, or the one that the server
//! chose.

use crate::Role;
use crate::error::{ErrorCode, TransportError};
use crate::wire::version::Version;
use crate::wire::version_information::{VersionInformation, VersionList};

/// The end that chooses among the versions that both ends speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum VersionChoice {
    /// A server stays with the version that the client began with.
    #[default]
    AsOffered,
    /// A server moves to the first of its own list that the client could speak too (RFC 9368 §2.3).
    OwnPreference,
}

/// The versions that an endpoint speaks, the preferred one first. A client begins with the first unless told otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Versions {
    list: VersionList,
    choice: VersionChoice,
    /// The version that a client begins with, one of `list`.
    first: Version,
}

impl Default for Versions {
    /// Version 1, then 2; a server stays with what the client began with.
    fn default() -> Self {
        let list = VersionList::from_slice(&[Version::V1, Version::V2]);
        Self { list, choice: VersionChoice::AsOffered, first: Version::V1 }
    }
}

impl Versions {
    /// These versions; `None` if there are none, or one comes twice or is not known.
    pub fn new(list: &[Version], choice: VersionChoice) -> Option<Self> {
        let known = list.iter().all(|version| version.is_known());
        let repeated = list
            .iter()
            .enumerate()
            .any(|(index, version)| list.iter().skip(index + 1).any(|other| other == version));
        let first = *list.first()?;
        (known && !repeated).then(|| Self { list: VersionList::from_slice(list), choice, first })
    }

    /// The same, but a client begins with `version`: one that every server answers, while the list tells a server that
    /// chooses by it what the client likes better (RFC 9368 §2.3, §3). `None` if the version is not on the list.
    pub fn beginning_with(self, version: Version) -> Option<Self> {
        self.contains(version).then_some(Self { first: version, ..self })
    }

    /// All of them, the preferred one first.
    pub fn list(&self) -> &[Version] {
        &self.list
    }

    /// The one that a client begins with.
    pub fn first(&self) -> Version {
        self.first
    }

    /// Returns true if `version` is among them.
    pub fn contains(&self, version: Version) -> bool {
        self.list.contains(&version)
    }

    /// The preferred one of those that are `offered`.
    pub fn best_of(&self, offered: &[Version]) -> Option<Version> {
        self.list.iter().copied().find(|version| offered.contains(version))
    }
}

/// Tells whether the version of a connection may still change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The server has not said CRYPTO data yet.
    Open,
    /// It is what it is.
    Settled,
}

/// The reason for a client's first version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// By itself.
    Preference,
    /// A Version Negotiation packet asked for another than its preferred one.
    Negotiated,
}

/// The version of one connection.
#[derive(Clone, Debug)]
pub struct Negotiation {
    versions: Versions,
    original: Version,
    current: Version,
    stage: Stage,
    origin: Origin,
}

impl Negotiation {
    /// A connection that begins with `original`.
    pub fn new(versions: Versions, original: Version) -> Self {
        Self { versions, original, current: original, stage: Stage::Open, origin: Origin::Preference }
    }

    /// The version of the client's first flight, which 0-RTT packets keep (RFC 9369 §4.1).
    pub fn original(&self) -> Version {
        self.original
    }

    /// The version in use.
    pub fn current(&self) -> Version {
        self.current
    }

    /// Returns this endpoint's information about versions. One reserved version, made from `random`, keeps the peer
    /// used to unknown ones (RFC 9368 §3).
    pub fn information(&self, random: Option<u32>) -> VersionInformation {
        let mut available = self.versions.list.clone();
        if !available.contains(&self.current) {
            available.push(self.current);
        }
        available.extend(random.map(Version::reserved));
        VersionInformation { chosen: self.current, available }
    }

    /// Returns true if a server has to see the client's whole ClientHello before it answers.
    pub fn awaits_hello(&self) -> bool {
        self.versions.choice == VersionChoice::OwnPreference && self.stage == Stage::Open
    }

    /// Has a server choose, given what the client says. Returns the new version if it is another.
    pub fn choose(&mut self, client: Option<&VersionInformation>) -> Option<Version> {
        self.stage = Stage::Settled;
        let client = client.filter(|client| client.chosen == self.original)?;
        let best = self.versions.best_of(&client.available)?;
        if best == self.current {
            return None;
        }
        self.current = best;
        Some(best)
    }

    /// Returns true if a client that got a packet of `version` may find that the server moved the connection there.
    pub fn may_become(&self, version: Version) -> bool {
        self.stage == Stage::Open && version != self.current && self.versions.contains(version)
    }

    /// The server moved the connection to `version`.
    pub fn become_version(&mut self, version: Version) {
        self.current = version;
        self.stage = Stage::Settled;
    }

    /// The server said CRYPTO data: the version stays as it is (RFC 9369 §4.1).
    pub fn settle(&mut self) {
        self.stage = Stage::Settled;
    }

    /// The negotiation of a client's second attempt, after the server answered the first with Version Negotiation that
    /// lists `offered` (RFC 9368 §4).
    pub fn retried_with(&self, offered: &[Version]) -> Result<Self, Refusal> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-6.2
        //# A client MUST discard a Version Negotiation packet that lists the QUIC version selected by the
        //# client.
        if self.origin == Origin::Negotiated || offered.contains(&self.original) {
            return Err(Refusal::Ignored);
        }
        let next = self.versions.best_of(offered).ok_or(Refusal::NothingShared)?;
        Ok(Self { origin: Origin::Negotiated, ..Self::new(self.versions.clone(), next) })
    }

    /// Checks what the peer of an endpoint of `role` authenticated about versions (RFC 9368 §4).
    pub fn verify(&self, role: Role, peer: Option<&VersionInformation>) -> Result<(), TransportError> {
        let wrong = |text: &'static str| Err(ErrorCode::VERSION_NEGOTIATION_ERROR.because(text));
        let Some(peer) = peer else {
            return if role == Role::Client
                && (self.origin == Origin::Negotiated || self.current != self.original)
            {
                wrong("the server says nothing about versions though it asked for another")
            } else {
                Ok(())
            };
        };
        if role == Role::Server {
            return if peer.chosen == self.original {
                Ok(())
            } else {
                wrong("the client chose another version than it used")
            };
        }
        if peer.chosen != self.current {
            return wrong("the server chose another version than it used");
        }
        if self.origin == Origin::Negotiated {
            let mut offered = peer.available.clone();
            if offered.is_empty() {
                return wrong("the server speaks no version that it would name");
            }
            offered.push(self.current);
            if self.versions.best_of(&offered) != Some(self.original) {
                return wrong("Version Negotiation hid a better version");
            }
        }
        Ok(())
    }
}

/// The reason for which a Version Negotiation packet leads to no second attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is not believable.
    Ignored,
    /// It offers nothing.
    NothingShared,
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: Version = Version::V1;
    const V2: Version = Version::V2;

    fn versions(list: &[Version]) -> Versions {
        Versions::new(list, VersionChoice::OwnPreference).unwrap()
    }

    fn information(chosen: Version, available: &[Version]) -> VersionInformation {
        VersionInformation { chosen, available: VersionList::from_slice(available) }
    }

    fn code(result: Result<(), TransportError>) -> Option<ErrorCode> {
        result.err().map(|error| error.code)
    }

    const WRONG: Option<ErrorCode> = Some(ErrorCode::VERSION_NEGOTIATION_ERROR);

    #[test]
    fn lists_are_not_empty_known_and_without_repetition() {
        for list in [&[][..], &[V1, V1], &[Version(0x1a2a_3a4a)]] {
            assert_eq!(Versions::new(list, VersionChoice::AsOffered), None);
        }
        assert_eq!(versions(&[V2, V1]).first(), V2);
        assert_eq!(versions(&[V2]).beginning_with(V1), None);
    }

    #[test]
    fn a_client_that_begins_with_another_version_still_says_which_one_it_prefers() {
        // RFC 9368 §3: available versions come in the order of preference.
        let list = versions(&[V2, V1]).beginning_with(V1).unwrap();
        let client = Negotiation::new(list.clone(), list.first());
        let said = client.information(None);
        assert_eq!((said.chosen, &said.available[..]), (V1, &[V2, V1][..]));
        assert!(client.may_become(V2));
    }

    #[test]
    fn a_server_moves_to_its_preferred_version_if_the_client_could_speak_it() {
        let mut server = Negotiation::new(versions(&[V2, V1]), V1);
        assert!(server.awaits_hello());
        assert_eq!(server.choose(Some(&information(V1, &[V1, V2]))), Some(V2));
        assert_eq!((server.original(), server.current()), (V1, V2));
        for client in [None, Some(information(V1, &[V1])), Some(information(V2, &[V2, V1]))] {
            let mut server = Negotiation::new(versions(&[V2, V1]), V1);
            assert_eq!(server.choose(client.as_ref()), None);
            assert!(!server.awaits_hello());
        }
    }

    #[test]
    fn a_server_without_preference_does_not_wait() {
        assert!(!Negotiation::new(Versions::default(), V2).awaits_hello());
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-5.2.1
    //= type=test
    //# If a client receives a packet that uses a different version than it initially selected, it MUST
    //# discard that packet.
    #[test]
    fn a_client_follows_once_and_not_after_crypto_data() {
        let mut client = Negotiation::new(Versions::default(), V1);
        assert!(client.may_become(V2) && !client.may_become(V1) && !client.may_become(Version(9)));
        client.become_version(V2);
        assert!(!client.may_become(V1));
        let mut client = Negotiation::new(Versions::default(), V1);
        client.settle();
        assert!(!client.may_become(V2));
        assert!(!Negotiation::new(versions(&[V1]), V1).may_become(V2));
    }

    #[test]
    fn each_end_checks_that_the_other_chose_what_it_used() {
        // RFC 9368 §4.
        let mut client = Negotiation::new(Versions::default(), V1);
        assert_eq!(code(client.verify(Role::Client, None)), None);
        assert_eq!(code(client.verify(Role::Client, Some(&information(V1, &[])))), None);
        assert_eq!(code(client.verify(Role::Client, Some(&information(V2, &[V1, V2])))), WRONG);
        client.become_version(V2);
        assert_eq!(code(client.verify(Role::Client, Some(&information(V2, &[V1, V2])))), None);
        assert_eq!(code(client.verify(Role::Client, Some(&information(V1, &[V1, V2])))), WRONG);
        assert_eq!(code(client.verify(Role::Client, None)), WRONG);
        let server = Negotiation::new(Versions::default(), V1);
        assert_eq!(code(server.verify(Role::Server, None)), None);
        assert_eq!(code(server.verify(Role::Server, Some(&information(V2, &[V2])))), WRONG);
    }

    #[test]
    fn a_downgrade_by_forged_version_negotiation_is_found_out() {
        // RFC 9368 §4, attacks.md B17: the client prefers 2 and was told that there is only 1.
        let first = Negotiation::new(versions(&[V2, V1]), V2);
        let second = first.retried_with(&[V1]).unwrap();
        assert_eq!((second.original(), second.current()), (V1, V1));
        assert_eq!(code(second.verify(Role::Client, Some(&information(V1, &[V1])))), None);
        assert_eq!(code(second.verify(Role::Client, Some(&information(V1, &[V1, V2])))), WRONG);
        assert_eq!(code(second.verify(Role::Client, Some(&information(V1, &[])))), WRONG);
        assert_eq!(code(second.verify(Role::Client, None)), WRONG);
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-6.2
    //= type=test
    //# A client MUST discard any Version Negotiation packet if it has received and successfully processed any
    //# other packet, including an earlier Version Negotiation packet
    #[test]
    fn version_negotiation_is_believed_once_and_never_about_the_version_in_use() {
        let first = Negotiation::new(versions(&[V2, V1]), V2);
        assert_eq!(first.retried_with(&[V1, V2]).unwrap_err(), Refusal::Ignored);
        assert_eq!(first.retried_with(&[Version(7)]).unwrap_err(), Refusal::NothingShared);
        let second = first.retried_with(&[V1]).unwrap();
        assert_eq!(second.retried_with(&[Version(7)]).unwrap_err(), Refusal::Ignored);
    }
}
