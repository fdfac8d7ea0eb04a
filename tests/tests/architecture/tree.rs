//! The text files of the repository.

use std::fs;
use std::path::Path;

/// Folders that hold no sources, besides those that `.gitignore` names.
const SKIPPED: [&str; 4] = [".git", "target", "node_modules", ".venv"];

/// A text file.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// From the root of the repository, with `/` between folders.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

impl File {
    /// A file that exists in a test only.
    pub(crate) fn sample(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns true if it is Rust source.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns true if all of it is test code, which may know more than the code under test.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
            || self.path.contains("/src/proofs/")
    }
}

/// All text files of the repository, in the order of their paths; what `.gitignore` names is left out.
pub(crate) fn files() -> Vec<File> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let ignored: Vec<&str> = ignored.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut files = Vec::new();
    walk(root, "", &ignored, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(folder: &Path, place: &str, ignored: &[&str], files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).expect("the repository can be read") {
        let entry = entry.expect("the repository can be read");
        // No name in the repository is anything but text.
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if place.is_empty() { name.clone() } else { format!("{place}/{name}") };
        let kind = entry.file_type().expect("the repository can be read");
        if SKIPPED.contains(&name.as_str()) || is_ignored(&path, &name, ignored) {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), &path, ignored, files);
        } else if kind.is_file() {
            // What is not UTF-8 is not text.
            if let Ok(text) = fs::read_to_string(entry.path()) {
                files.push(File { path, text });
            }
        }
    }
}

/// The part of gitignore's language that the file here uses: `/path`, `path/in/a/folder`, `name/`, `name`, `*.ending`.
fn is_ignored(path: &str, name: &str, ignored: &[&str]) -> bool {
    ignored.iter().map(|pattern| pattern.trim_end_matches('/')).any(|pattern| {
        match pattern.strip_prefix('*') {
            Some(ending) => name.ends_with(ending),
            None => pattern.trim_start_matches('/') == path || pattern == name,
        }
    })
}

#[test]
fn ignored_names_and_paths_are_recognised() {
    let ignored = ["/.boringssl", "interop/target", "*.pyc", "__pycache__/"];
    for (path, expected) in [
        (".boringssl", true),
        ("deep/.boringssl", false),
        ("interop/target", true),
        ("scripts/plot.pyc", true),
        ("scripts/__pycache__", true),
        ("scripts/plot.py", false),
    ] {
        let name = path.rsplit('/').next().expect("a split has a last part");
        assert_eq!(is_ignored(path, name, &ignored), expected, "{path}");
    }
}
