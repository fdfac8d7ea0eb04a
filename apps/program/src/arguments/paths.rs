//! Arguments about the paths of a client.

use crate::failure::{Exit, Failure};
use crate::path_choice::{PathChoice, RuleSource};
use crate::transport::check_names;
use clap::Args;
use hvq::PathOptions;
use hvq::path::OptionsError;
use hvq::path_manager::Rule;
use std::path::PathBuf;
use std::str::FromStr;

/// The paths to the peer.
#[derive(Clone, Debug, Args)]
pub struct PathArguments {
    /// A path; may be repeated. The first carries the handshake, or with `hvc` the one that is sooner done, if `delay` of
    /// each is given. `auto`: a path over each network link, as links come and go (the default where several lead there)
    #[arg(long = "path", value_name = "NAME=LOCAL[>REMOTE][,rate=…,delay=…,congestion=…,dscp=…]|auto")]
    paths: Vec<PathArgument>,
    /// For `--path auto`, which it implies: the use of links, such as wlan*=use, kind:cellular=metered,budget=500MB/month,
    /// 10.0.0.0/8=never, usb0=backup; may be repeated, and the first that matches counts
    #[arg(long = "rule", value_name = "CONDITION[,CONDITION…]=ACTION[,key=value…]")]
    rules: Vec<Rule>,
    /// Rules from a file, one a line, after those of --rule; proxy and tunnel read it again on SIGHUP
    #[arg(long = "rules", value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A path, or the wish that paths follow the links.
#[derive(Clone, Debug)]
enum PathArgument {
    Auto,
    Named(Box<PathOptions>),
}

impl FromStr for PathArgument {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        if text == "auto" { Ok(Self::Auto) } else { Ok(Self::Named(Box::new(text.parse()?))) }
    }
}

impl PathArguments {
    /// The paths that were asked for.
    pub fn choice(&self) -> Result<PathChoice, Failure> {
        let named = |path: &PathArgument| match path {
            PathArgument::Auto => None,
            PathArgument::Named(path) => Some((**path).clone()),
        };
        let paths: Vec<PathOptions> = self.paths.iter().filter_map(named).collect();
        let source = RuleSource { given: self.rules.clone(), file: self.file.clone() };
        let asks_for_links = paths.len() < self.paths.len() || !source.is_empty();
        match (paths.first(), asks_for_links) {
            (None, false) => Ok(PathChoice::Several),
            (None, true) => PathChoice::links(source),
            (Some(_), false) => {
                check_names(&paths)?;
                Ok(PathChoice::Named(paths))
            }
            (Some(path), true) => {
                let text = format!(
                    "--path {}: paths that are named do not go with --path auto and rules",
                    path.name
                );
                Err(Failure::new(Exit::Usage, text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        paths: PathArguments,
    }

    fn choice(words: &[&str]) -> Result<PathChoice, Failure> {
        Line::try_parse_from([&["hvq"], words].concat()).unwrap().paths.choice()
    }

    #[test]
    fn paths_are_named_or_follow_the_links_and_rules_ask_for_the_latter() {
        assert!(matches!(choice(&[]), Ok(PathChoice::Several)));
        assert!(
            matches!(choice(&["--path", "a=127.0.0.1"]), Ok(PathChoice::Named(paths)) if paths.len() == 1)
        );
        assert!(matches!(choice(&["--path", "auto"]), Ok(PathChoice::Links(_))));
        assert!(matches!(choice(&["--rule", "wlan*=backup"]), Ok(PathChoice::Links(_))));
        let both = choice(&["--path", "a=127.0.0.1", "--rule", "wlan*=backup"]).unwrap_err();
        assert_eq!(both.exit(), Exit::Usage);
    }

    #[test]
    fn a_file_of_rules_that_is_wrong_is_told_of_with_its_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "wlan*=use\nwwan0=sometimes\n").unwrap();
        let error = choice(&["--rules", file.path().to_str().unwrap()]).unwrap_err();
        assert!(error.line().contains("line 2") && error.line().contains("sometimes"), "{}", error.line());
    }
}
