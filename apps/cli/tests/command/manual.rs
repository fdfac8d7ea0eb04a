//! Completions and pages of the manual, as a shell and man read them.

use crate::support::{code, run};
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn bash_completes_commands_with_the_script_that_is_printed() {
    let output = run(["completions", "bash"]);
    assert_eq!(code(&output), 0);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("hvq.bash");
    fs::write(&script, &output.stdout).unwrap();
    let ask = format!(
        "source {}; COMP_WORDS=(hvq ga); COMP_CWORD=1; _hvq hvq ga hvq; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let output = Command::new("bash").args(["--norc", "-c", &ask]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "gateway\n", "{output:?}");
}

#[test]
fn a_shell_that_is_unknown_is_a_wrong_argument() {
    assert_eq!(code(&run(["completions", "command.com"])), 2);
}

#[test]
fn each_command_has_a_page_with_its_flags_and_what_is_hidden_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("man/man1");
    assert_eq!(code(&run(["manual".as_ref(), place.as_os_str()])), 0);
    let page = |name: &str| fs::read_to_string(place.join(name));
    assert!(page("hvq.1").unwrap().contains("hvq\\-gateway(1)"));
    assert!(page("hvq-get.1").unwrap().contains("\\-\\-scheduler"));
    assert!(page("hvq-lab-run.1").unwrap().contains("\\-\\-shard"));
    assert!(page("hvq-inside.1").is_err());
    assert!(page("hvq-help.1").is_err());
}

#[test]
fn pages_that_cannot_be_written_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(code(&run(["manual".as_ref(), file.as_os_str()])), 1);
}
