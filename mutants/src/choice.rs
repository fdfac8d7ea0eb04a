//! The choice of the mutants to try, and of the effort, on the command line.

use crate::catalogue::{Key, Mutant};
use crate::modules::Module;
use crate::results::{Outcome, Results};
use crate::triage::Triage;
use clap::Args;

/// The arguments of a run.
#[derive(Args, Default, Debug)]
pub struct Choice {
    /// Modules: wire, crypto, path, …; all unless named.
    #[arg(long, value_delimiter = ',')]
    pub module: Vec<String>,
    /// Parts of the names of files.
    #[arg(long, value_delimiter = ',')]
    pub file: Vec<String>,
    /// One part of several of the mutants, as in 1/4.
    #[arg(long, value_parser = shard)]
    pub shard: Option<(usize, usize)>,
    /// Tries again what is known and about code that has not changed.
    #[arg(long)]
    pub again: bool,
    /// Takes the last build of each crate and what was recorded of its tests, whatever has changed since.
    #[arg(long)]
    pub reuse: bool,
    /// Tries again what survived before without a reason, and nothing else.
    #[arg(long)]
    pub only_survivors: bool,
    /// Processes at a time.
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
    /// Seconds that the tests of a mutant may take, as measured without one.
    #[arg(long, default_value_t = 60)]
    pub budget: u64,
    /// Minutes after which no further mutant is begun; the next run goes on.
    #[arg(long)]
    pub minutes: Option<u64>,
    /// Parts of the names of tests: asks no others.
    #[arg(long, value_delimiter = ',')]
    pub tests: Vec<String>,
    /// Asks the tests of other crates, too.
    #[arg(long)]
    pub deep: bool,
    /// Prints what became of each mutant as JSON.
    #[arg(long)]
    pub json: bool,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(part, all)| Some((part.parse().ok()?, all.parse().ok()?)));
    parts.filter(|(part, all)| (1..=*all).contains(part)).ok_or_else(|| "not as in 1/4".into())
}

impl Choice {
    /// Returns true if a module is named, or none.
    pub fn names(&self, module: &Module) -> bool {
        self.module.is_empty() || self.module.iter().any(|name| name == module.name)
    }

    /// Returns true if a test is to be asked.
    pub fn asks(&self, test: &str) -> bool {
        self.tests.is_empty() || self.tests.iter().any(|part| test.contains(part.as_str()))
    }

    /// Returns true if a mutant, the one with this index, is in the modules, files and part that are named.
    pub fn covers(&self, key: &Key, index: usize) -> bool {
        let in_module = Module::of(&key.file).is_some_and(|module| self.names(module));
        let in_file = self.file.is_empty() || self.file.iter().any(|part| key.file.contains(part.as_str()));
        in_module && in_file && self.shard.is_none_or(|(part, all)| index % all == part - 1)
    }

    /// Returns true if a mutant, the one with this index, is to be tried.
    pub fn wants(&self, mutant: &Mutant, index: usize, results: &Results, triage: &Triage) -> bool {
        let key = &mutant.key;
        let known = results.get(key);
        let due = if self.only_survivors {
            known.is_some_and(Outcome::survives) && triage.reason(key).is_none()
        } else {
            self.again || known.is_none()
        };
        due && self.covers(key, index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Genre;

    #[test]
    fn what_is_known_is_not_tried_again_unless_that_is_asked_for() {
        let key = |ordinal| Key {
            file: "transport/core/src/wire/a.rs".into(),
            mutation: "replace < with > in f".into(),
            line: "a < b".into(),
            ordinal,
        };
        let mutant = |number| Mutant {
            number,
            key: key(number as usize),
            genre: Genre::FnValue,
            start: 0,
            replacement: String::new(),
        };
        let mutants = [0, 1, 2].map(mutant);
        let mut results = Results::default();
        results.begin(0, mutants.each_ref().map(|mutant| &mutant.key));
        results.put(&key(0), Outcome::Caught);
        results.put(&key(1), Outcome::Unfinished);
        let chosen = |choice: Choice| {
            let wants = |it: &Mutant| choice.wants(it, it.number as usize, &results, &Triage::default());
            mutants.iter().filter(|mutant| wants(mutant)).map(|mutant| mutant.number).collect::<Vec<_>>()
        };
        assert_eq!(chosen(Choice::default()), [2]);
        assert_eq!(chosen(Choice { only_survivors: true, ..Choice::default() }), [1]);
        assert_eq!(chosen(Choice { again: true, ..Choice::default() }), [0, 1, 2]);
        assert_eq!(chosen(Choice { again: true, shard: Some((2, 2)), ..Choice::default() }), [1]);
        assert!(chosen(Choice { module: vec!["path".into()], ..Choice::default() }).is_empty());
    }
}
