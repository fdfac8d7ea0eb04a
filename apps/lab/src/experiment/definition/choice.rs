//! Experiments by name.

use super::Definition;
use super::builtin::{amendments, builtin, goals, names};
use hvq_emulation::configuration::ConfigError;
use std::path::Path;

/// A list of names that is no list of experiments.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ChoiceError {
    /// Nothing has this name.
    #[error("there is no experiment {0}: no such file, and hvq lab list does not name it")]
    Unknown(String),
    /// A name stands there twice: both would write to one file.
    #[error("{0} stands there twice")]
    Twice(String),
    /// A file makes no sense.
    #[error(transparent)]
    Definition(#[from] ConfigError),
}

impl Definition {
    /// The experiments of these names: of those compiled in, of files, `goals` for those with the goals about channels as they
    /// are, `amendments` for those about the parts of `hvc`, or `all`.
    ///
    /// # Errors
    ///
    /// A name is unknown or stands there twice, or a file makes no sense.
    pub fn chosen(wanted: &[String]) -> Result<Vec<Self>, ChoiceError> {
        let mut chosen: Vec<Self> = Vec::new();
        for name in wanted {
            let names: Vec<&str> = match name.as_str() {
                "all" => names().collect(),
                "goals" => goals().collect(),
                "amendments" => amendments().collect(),
                name => vec![name],
            };
            for name in names {
                let definition = find(name)?;
                if chosen.iter().any(|known| known.name == definition.name) {
                    return Err(ChoiceError::Twice(definition.name));
                }
                chosen.push(definition);
            }
        }
        Ok(chosen)
    }
}

/// The experiment `name`: compiled in, or else a file.
fn find(name: &str) -> Result<Definition, ChoiceError> {
    match builtin(name) {
        Some(definition) => Ok(definition?),
        None if Path::new(name).exists() => Ok(Definition::read(Path::new(name))?),
        None => Err(ChoiceError::Unknown(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_chosen_by_name_each_once() {
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Definition::chosen(&names).map(|chosen| chosen.len()).map_err(|error| error.to_string())
        };
        let all = names().count();
        assert_eq!((chosen(&["all"]), chosen(&["goals"])), (Ok(all), Ok(goals().count())));
        assert_eq!(chosen(&["links", "untold"]), Ok(2));
        assert_eq!(chosen(&["amendments"]), Ok(amendments().count()));
        assert!(chosen(&["links", "goals"]).is_err_and(|error| error.contains("links stands there twice")));
        assert!(chosen(&["nothing"]).is_err_and(|error| error.contains("hvq lab list")));
    }
}
