//! Architecture tests: the rules of CONTRIBUTING.md that a compiler does not check, each tried on a bad sample first.

mod attacks;
mod doc_comments;
mod documents;
mod edges;
mod facade;
mod layers;
mod lexer;
mod names;
mod overhead;
mod ownership;
mod paths;
mod rules;
mod sizes;
mod supply;
mod tools;
mod tree;

use std::fmt;

/// A place that breaks a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Finding {
    /// The file, from the root of the repository.
    file: String,
    /// The line, counted from 1; 0 stands for the whole file.
    line: usize,
    /// The problem, and the remedy.
    problem: String,
}

impl Finding {
    fn new(file: &tree::File, line: usize, problem: impl Into<String>) -> Self {
        Self { file: file.path.clone(), line, problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.problem)
    }
}

/// Fails with every finding of `rule` in the repository, one a line.
fn enforce(rule: impl Fn(&tree::File) -> Vec<Finding>) {
    report(tree::files().iter().flat_map(rule).collect());
}

fn report(findings: Vec<Finding>) {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(lines.is_empty(), "{} places break the rule:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn the_walk_sees_the_sources_of_every_crate_and_no_build_results() {
    let files = tree::files();
    for expected in ["Cargo.toml", "Makefile", "scheduler/src/lib.rs", "transport/core/src/lib.rs"] {
        assert!(files.iter().any(|file| file.path == expected), "{expected}");
    }
    assert!(!files.iter().any(|file| file.path.contains("target/") || file.path.starts_with(".git/")));
}

#[test]
fn no_source_file_is_longer_than_800_lines() {
    enforce(rules::length);
}

#[test]
fn unsafe_code_stays_in_the_tls_binding_and_in_the_c_interface() {
    enforce(rules::unsafe_code);
}

#[test]
fn the_transport_names_no_concrete_policy() {
    enforce(rules::policies);
}

/// attacks.md D13.
#[test]
fn keys_that_peers_choose_are_hashed_with_a_secret() {
    enforce(rules::hashes);
}

#[test]
fn a_lint_is_suppressed_with_a_reason_only() {
    enforce(rules::suppressions);
}

#[test]
fn nothing_is_left_for_later() {
    enforce(rules::postponed);
}

#[test]
fn no_file_names_a_place_outside_the_repository() {
    enforce(rules::machine_paths);
}

#[test]
fn the_bytes_around_frames_stand_in_one_place() {
    enforce(overhead::check);
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    enforce(doc_comments::check);
}

#[test]
fn the_connection_stays_small() {
    report(ownership::size(&tree::files()));
}

#[test]
fn nobody_assigns_a_field_of_another_component() {
    enforce(ownership::assignments);
}

#[test]
fn one_name_in_a_crate_means_one_public_type() {
    report(names::twice(&tree::files()));
}

#[test]
fn the_core_exports_what_others_need() {
    report(facade::size(&tree::files()));
}

#[test]
fn the_top_of_the_crate_for_programs_has_what_a_program_holds() {
    report(facade::front(&tree::files()));
}

#[test]
fn modules_of_the_core_use_lower_layers_only() {
    enforce(layers::check);
}

#[test]
fn crates_depend_on_the_crates_below_them_only() {
    report(edges::check(&edges::manifests(&tree::files())));
}

#[test]
fn the_command_line_keeps_arguments_and_glue() {
    report(sizes::command_line(&tree::files()));
}

#[test]
fn tests_start_only_programs_that_their_target_installs() {
    report(tools::check(&tree::files()));
}

#[test]
fn every_attack_has_a_test_that_exists_or_a_reason() {
    report(attacks::check(&tree::files()));
}

#[test]
fn links_of_documents_lead_to_files_and_headings() {
    report(documents::links(&tree::files()));
}

#[test]
fn the_readme_is_a_front_page() {
    enforce(documents::length);
}

#[test]
fn guides_are_tried_word_by_word() {
    report(documents::untried(&tree::files()));
}

#[test]
fn the_readme_has_the_figures_of_the_results() {
    report(documents::figures(&tree::files()));
    report(documents::drawn(&tree::files()));
}

#[test]
fn guides_name_every_policy_and_every_controller() {
    let files = tree::files();
    let algorithms = hvq_transport::congestion::Algorithm::ALL.map(|algorithm| algorithm.name());
    assert_eq!(documents::unnamed(&files, "docs/congestion.md", &algorithms), [""; 0]);
    assert_eq!(documents::unnamed(&files, "docs/scheduling.md", &hvq_scheduler::Policy::NAMES), [""; 0]);
}

/// With HVQ_WRITE_ATTACKS set they are written (`make attacks`).
#[test]
fn the_readme_counts_attacks_as_the_results_and_the_table_do() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results/attacks.md");
    let results = std::fs::read_to_string(path).expect("there is one");
    let written =
        attacks::with_summary(&results, &attacks::summary(&tree::files())).expect("the marks are there");
    if std::env::var_os("HVQ_WRITE_ATTACKS").is_some() {
        std::fs::write(path, written).expect("it can be written");
        return;
    }
    assert_eq!(results, written, "`make attacks` writes the numbers");
}
