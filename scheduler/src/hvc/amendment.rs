//! The amendments of the rule: each has a name and can be switched off, so that experiments show what it earns.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::tuning::BACKGROUND;
use super::{NoPrice, Price};
use crate::{Item, Message, PathSet, PathView, Priority, Sharing};

/// An amendment of the rule: knowledge or care that the bare formula does not have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Amendment {
    /// A path without room counts with the time until it has some.
    Waiting,
    /// A message is compared as a whole, and its tail may take another path.
    Messages,
    /// A stream of unknown length is taken to go on for as long as it already has, until it runs empty.
    Bursts,
    /// A path is not waited for while another has room, unless all that stands or falls with the item crosses it first.
    Patience,
    /// A path on which the item would close the receiver's window to the others is left alone.
    Window,
    /// Data that was told to wait for a path stands in its queue for later questions.
    Reservations,
    /// Urgency scales the reward.
    Urgency,
    /// Background data leaves scarce paths to the foreground.
    Background,
    /// Deadlines scale the reward and pace data on scarce paths.
    Deadlines,
    /// A path that loses packets counts with the time that repetition takes.
    Loss,
    /// A path that costs more has to be worth more.
    Prices,
    /// A byte costs more on a scarce path that others share.
    Sharing,
    /// A connection begins where its keys and its data are soonest.
    FirstPath,
    /// Acknowledgements use the quick path within a budget.
    Acknowledgements,
    /// Bulk borrows what nothing urgent wants of a scarce path.
    Spare,
    /// Lost and late data goes where it arrives first.
    Repair,
    /// Small messages go on every path for a while after one fell silent.
    Doubt,
}

impl Amendment {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Waiting,
        Self::Messages,
        Self::Bursts,
        Self::Patience,
        Self::Window,
        Self::Reservations,
        Self::Urgency,
        Self::Background,
        Self::Deadlines,
        Self::Loss,
        Self::Prices,
        Self::Sharing,
        Self::FirstPath,
        Self::Acknowledgements,
        Self::Spare,
        Self::Repair,
        Self::Doubt,
    ];

    /// Its name, as in `hvc:without=NAME`, and its effect in a few words.
    const fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Waiting => ("waiting", "a path without room counts with the time until it has some"),
            Self::Messages => ("messages", "a message is compared as a whole"),
            Self::Bursts => ("bursts", "a stream of unknown length is taken to go on for as long as it has"),
            Self::Patience => ("patience", "no path is waited for beside one with room that shows more"),
            Self::Window => ("window", "no path holds up what the receiver's window lets others send"),
            Self::Reservations => ("reservations", "data told to wait for a path stands in its queue"),
            Self::Urgency => ("urgency", "urgency scales the reward"),
            Self::Background => ("background", "background data leaves scarce paths to the foreground"),
            Self::Deadlines => ("deadlines", "deadlines scale the reward and pace data on scarce paths"),
            Self::Loss => ("loss", "a path that loses packets counts with their repetition"),
            Self::Prices => ("prices", "a path that costs more has to be worth more"),
            Self::Sharing => ("sharing", "a byte costs more on a scarce path that others share"),
            Self::FirstPath => ("first-path", "a connection begins where its keys and data are soonest"),
            Self::Acknowledgements => ("acknowledgements", "they use the quick path within a budget"),
            Self::Spare => ("spare", "bulk borrows what nothing urgent wants of a scarce path"),
            Self::Repair => ("repair", "lost and late data goes where it arrives first"),
            Self::Doubt => ("doubt", "small messages go on every path for a while after one fell silent"),
        }
    }

    /// Its name, as in `hvc:without=NAME`.
    pub const fn name(self) -> &'static str {
        self.described().0
    }

    /// Its effect in a few words.
    pub const fn effect(self) -> &'static str {
        self.described().1
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The amendments that are in force. Default: all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Amendments(u32);

impl Amendments {
    /// The bare formula.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self((1 << Amendment::ALL.len()) - 1);

    /// All of these but `amendment`.
    #[must_use]
    pub const fn without(self, amendment: Amendment) -> Self {
        Self(self.0 & !amendment.bit())
    }

    /// Returns true if `amendment` is in force.
    pub const fn has(self, amendment: Amendment) -> bool {
        self.0 & amendment.bit() != 0
    }

    /// `item` as the amendments in force see it: without the input of those that are not.
    pub(super) fn of_item(self, item: &Item) -> Item {
        let mut seen = *item;
        if !self.has(Amendment::Background) {
            seen.priority.urgency = seen.priority.urgency.min(BACKGROUND - 1);
        }
        if !self.has(Amendment::Urgency) && seen.priority.urgency < BACKGROUND {
            seen.priority.urgency = Priority::DEFAULT.urgency;
        }
        if !self.has(Amendment::Deadlines) {
            seen.message = seen.message.map(|message| Message { deadline: None, ..message });
        }
        if !self.has(Amendment::Messages) {
            let alone = |message: Message| Message { remaining: item.bytes, ..message };
            seen.message = seen.message.map(alone).filter(|message| message.deadline.is_some());
        }
        seen
    }

    /// `paths` as the amendments in force see them.
    pub(super) fn of_paths(self, paths: &[PathView]) -> Cow<'_, [PathView]> {
        let inputs = [Amendment::Loss, Amendment::Prices, Amendment::Sharing];
        if inputs.into_iter().all(|amendment| self.has(amendment)) {
            return Cow::Borrowed(paths);
        }
        let mut seen = paths.to_vec();
        for path in &mut seen {
            if !self.has(Amendment::Loss) {
                path.loss = crate::PerMille::default();
            }
            if !self.has(Amendment::Prices) {
                path.hints.price_per_byte = None;
            }
            if !self.has(Amendment::Sharing) {
                path.hints.shared = Sharing::Dedicated;
            }
        }
        Cow::Owned(seen)
    }

    /// Those of `set` that may be chosen: without [`Amendment::Waiting`] those with room, if any has.
    pub(super) fn candidates(self, paths: &[PathView], set: PathSet) -> PathSet {
        if self.has(Amendment::Waiting) {
            return set;
        }
        let open: PathSet = set.iter().filter(|&index| paths[index].can_send()).collect();
        if open.is_empty() { set } else { open }
    }
}

impl Default for Amendments {
    fn default() -> Self {
        Self::ALL
    }
}

/// A variant of the rule: the price of scarce paths, and the amendments that are in force.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Variant {
    /// The price of scarce paths.
    pub price: Price,
    /// The amendments in force.
    pub amendments: Amendments,
}

impl fmt::Display for Variant {
    /// Writes the variant in the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = || Amendment::ALL.into_iter().filter(|amendment| !self.amendments.has(*amendment));
        let amended = match self.amendments {
            Amendments::ALL => None,
            Amendments::NONE => Some("core".to_owned()),
            _ => Some(format!("without={}", missing().map(Amendment::name).collect::<Vec<_>>().join("+"))),
        };
        match (amended, self.price == Price::default()) {
            (Some(amended), true) => f.write_str(&amended),
            (Some(amended), false) => write!(f, "{amended},{}", self.price),
            (None, _) => self.price.fmt(f),
        }
    }
}

/// The part of a text that is no part of a variant of the rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoVariant {
    /// No amendment has this name.
    Amendment(String),
    /// Neither a price nor a choice of amendments.
    Other,
}

impl From<NoPrice> for NoVariant {
    fn from(_: NoPrice) -> Self {
        Self::Other
    }
}

impl fmt::Display for NoVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amendment(name) => {
                let names = Amendment::ALL.map(Amendment::name).join(", ");
                write!(f, "hvc has no amendment called {name:?}: choose of {names}")
            }
            Self::Other => f.write_str("hvc takes core, without=NAME+NAME, alpha=NUMBER and price=demand"),
        }
    }
}

impl std::error::Error for NoVariant {}

impl FromStr for Variant {
    type Err = NoVariant;

    /// Reads `core`, `without=NAME+NAME` and a [`Price`], with commas between them.
    fn from_str(text: &str) -> Result<Self, NoVariant> {
        let mut variant = Self::default();
        for part in text.split(',') {
            match (part, part.strip_prefix("without=")) {
                ("core", _) => variant.amendments = Amendments::NONE,
                (_, Some(names)) => {
                    for name in names.split('+') {
                        let named = Amendment::ALL.into_iter().find(|amendment| amendment.name() == name);
                        let named = named.ok_or_else(|| NoVariant::Amendment(name.to_owned()))?;
                        variant.amendments = variant.amendments.without(named);
                    }
                }
                _ => variant.price = part.parse()?,
            }
        }
        Ok(variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Hints, PathId};

    #[test]
    fn variants_are_written_as_they_are_read() {
        for text in ["core", "without=waiting", "without=waiting+spare", "core,alpha=1.5", "price=demand"] {
            assert_eq!(text.parse::<Variant>().map(|variant| variant.to_string()), Ok(text.to_owned()));
        }
        let all = Amendment::ALL.map(Amendment::name).join("+");
        assert_eq!(format!("without={all}").parse(), "core".parse::<Variant>());
        assert_eq!("without=spare".parse(), "alpha=0.75,without=spare".parse::<Variant>());
    }

    #[test]
    fn an_unknown_amendment_is_answered_with_the_known_ones() {
        let error = "without=waiting+hope".parse::<Variant>().expect_err("no amendment").to_string();
        assert!(error.contains("\"hope\""), "{error}");
        assert!(Amendment::ALL.into_iter().all(|known| error.contains(known.name())), "{error}");
        for text in ["", "without", "with=waiting", "core,", "alpha=x"] {
            assert_eq!(text.parse::<Variant>(), Err(NoVariant::Other), "{text}");
        }
        assert_eq!("without=".parse::<Variant>(), Err(NoVariant::Amendment(String::new())));
    }

    #[test]
    fn names_and_bits_are_of_one_amendment_each() {
        let mut none = Amendments::ALL;
        for amendment in Amendment::ALL {
            let named = Amendment::ALL.into_iter().filter(|other| other.name() == amendment.name()).count();
            assert!(named == 1 && none.has(amendment), "{amendment:?}");
            none = none.without(amendment);
            assert!(!none.has(amendment));
        }
        assert_eq!(none, Amendments::NONE);
    }

    #[test]
    fn what_an_amendment_looks_at_is_not_seen_without_it() {
        let message = Some(Message { remaining: 5000, deadline: Some(std::time::Duration::ZERO) });
        let priority = Priority { urgency: 7, ..Priority::DEFAULT };
        let item = Item { message, priority, ..Item::new(Content::Stream { id: 0 }, 1000) };
        assert_eq!(Amendments::ALL.of_item(&item), item);
        let without = |amendment| Amendments::ALL.without(amendment).of_item(&item);
        assert_eq!(without(Amendment::Messages).message.map(|message| message.remaining), Some(1000));
        assert_eq!(without(Amendment::Deadlines).message.and_then(|message| message.deadline), None);
        assert_eq!(without(Amendment::Background).priority.urgency, 5);
        assert_eq!(without(Amendment::Urgency).priority.urgency, 7);
        let bare = Amendments::NONE.of_item(&item);
        assert_eq!((bare.message, bare.priority), (None, Priority::DEFAULT));
        let hints = Hints { price_per_byte: Some(3), shared: Sharing::Endpoint, ..Hints::NONE };
        let paths = [PathView { hints, ..PathView::new(PathId(0)) }];
        assert_eq!(*Amendments::ALL.of_paths(&paths), paths);
        let hints = Amendments::NONE.of_paths(&paths)[0].hints;
        assert_eq!((hints.price_per_byte, hints.shared), (None, Sharing::Dedicated));
    }
}
