//! The experiments that are compiled in.

use super::Definition;
use hvq_emulation::configuration::ConfigError;

macro_rules! texts {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),+]
    };
}

/// In the order of the report: the papers' figures and tables, then our own.
const TEXTS: &[(&str, &str)] = texts![
    "nsdi-figure-3",
    "validity-walking",
    "nsdi-table-2",
    "nsdi-table-3",
    "nsdi-table-4",
    "nsdi-table-5",
    "nsdi-figure-5",
    "nsdi-figure-6",
    "nsdi-figure-7",
    "nsdi-figure-8a",
    "nsdi-figure-8b",
    "nsdi-figure-8c",
    "nsdi-figure-9",
    "nsdi-figure-10",
    "nsdi-table-6",
    "nsdi-figure-11",
    "hotmobile-figure-3",
    "hotmobile-figure-5a",
    "hotmobile-figure-5b",
    "hotmobile-figure-5c",
    "hotmobile-table-2",
    "hotnets-figure-1",
    "hotnets-table-1",
    "hotnets-figure-2",
    "goal-3-priorities",
    "goal-6-bulk",
    "goal-7-beliefs",
    "price",
    "price-training",
    "request-response",
    "revisited",
    "revisited-downloads",
    "mobility",
];

/// The goals about channels as they are: nothing told, two ordinary links, told, wrong or shared, a foreign sender, video.
const GOALS: &[(&str, &str)] = texts![
    "untold",
    "links",
    "links-upload",
    "links-pages",
    "links-requests",
    "told",
    "told-deployments",
    "told-domains",
    "wrong",
    "taken",
    "foreign",
    "viewer",
];

/// The amendments of `hvc`, one after the other switched off: what each earns by workload.
const AMENDMENTS: &[(&str, &str)] = texts![
    "amendments-pages",
    "amendments-deployments",
    "amendments-links",
    "amendments-downloads",
    "amendments-urgency",
];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().chain(GOALS).chain(AMENDMENTS).map(|(name, _)| *name)
}

/// The names of those with the goals about channels as they are.
pub fn goals() -> impl Iterator<Item = &'static str> {
    GOALS.iter().map(|(name, _)| *name)
}

/// The names of those with `hvc` without one amendment after the other.
pub fn amendments() -> impl Iterator<Item = &'static str> {
    AMENDMENTS.iter().map(|(name, _)| *name)
}

/// The experiment `name`, if it is compiled in.
pub fn builtin(name: &str) -> Option<Result<Definition, ConfigError>> {
    let (_, text) = TEXTS.iter().chain(GOALS).chain(AMENDMENTS).find(|(known, _)| *known == name)?;
    Some(Definition::parse(&format!("{name}.toml"), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_well_formed_and_bears_the_name_of_its_file() {
        for name in names() {
            let definition = builtin(name).expect("it is compiled in");
            let definition = definition.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(definition.name, name);
        }
        assert!(builtin("nothing").is_none());
    }

    #[test]
    fn every_file_of_an_experiment_is_compiled_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");
        for entry in std::fs::read_dir(folder).expect("the folder is part of the crate") {
            let path = entry.expect("the folder can be read").path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            assert!(names().any(|name| name == stem), "{}", path.display());
        }
    }
}
