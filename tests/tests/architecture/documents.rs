//! The documents: links lead somewhere, the README is short, and its figures are those of the results.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::Finding;
use super::tree::File;

/// The front page.
const README: &str = "README.md";
/// The most lines that it may have.
const MOST_LINES: usize = 150;
/// The heading of its table of figures.
const FIGURES: &str = "## Results";
/// The folder of the pages of results, seen from the front page.
const RESULTS: &str = "docs/results/";
/// The folder of guides, which newcomers follow step by step.
const GUIDES: &str = "docs/guides/";
/// The program that runs the commands of a guide.
const GUIDE_RUNNER: &str = "scripts/guide.py";
/// A drawing of results, and the page that has its figures.
const DRAWING: [&str; 2] = ["docs/pictures/result.svg", "docs/results/report.md"];
/// Texts of others, with links that are meant for other places.
const FOREIGN: &str = "data/specifications/draft-";

/// A link or a picture in a document.
struct Link<'a> {
    line: usize,
    /// The target as it is written, without the anchor; empty for the document itself.
    target: &'a str,
    anchor: Option<&'a str>,
}

/// Relative links to files that do not exist, and to headings that no document has.
pub(crate) fn links(files: &[File]) -> Vec<Finding> {
    let documents: Vec<&File> =
        files.iter().filter(|file| file.path.ends_with(".md") && !file.path.starts_with(FOREIGN)).collect();
    let anchors: HashMap<&str, HashSet<String>> =
        documents.iter().map(|file| (file.path.as_str(), anchors(&file.text))).collect();
    let mut findings = Vec::new();
    for file in documents {
        for link in links_of(&file.text) {
            let path = resolve(&file.path, link.target);
            let problem = match (anchors.get(path.as_str()), link.anchor) {
                (Some(known), Some(anchor)) if !known.contains(anchor) => {
                    format!("{path} has no heading #{anchor}")
                }
                (Some(_), _) => continue,
                (None, _) if exists(&path, files) => continue,
                (None, _) => format!("there is no {path}"),
            };
            findings.push(Finding::new(file, link.line, problem));
        }
    }
    findings
}

/// A README that is longer than a front page, or a guide that is.
pub(crate) fn length(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().count();
    if !(file.path == README || file.path.starts_with(GUIDES)) || lines <= MOST_LINES {
        return Vec::new();
    }
    vec![Finding::new(file, 0, format!("{lines} lines, where {MOST_LINES} are permitted: docs/ has room"))]
}

/// Guides whose commands no test runs, whose Rust no test compiles, or that have neither.
pub(crate) fn untried(files: &[File]) -> Vec<Finding> {
    let tried = |page: &str, by: &str| {
        let runs =
            |file: &File| !file.path.ends_with(".md") && file.text.contains(by) && file.text.contains(page);
        files.iter().any(|file| !file.path.contains("architecture/") && runs(file))
    };
    let mut findings = Vec::new();
    for guide in files.iter().filter(|file| file.path.starts_with(GUIDES)) {
        let page = guide.path.trim_start_matches(GUIDES);
        let has = |kind: &str| guide.text.contains(&format!("\n```{kind}"));
        if has("sh\n") && !tried(page, GUIDE_RUNNER) {
            findings.push(Finding::new(guide, 0, format!("no test has {GUIDE_RUNNER} run its commands")));
        }
        if has("rust") && !tried(&format!("include_str!(\"../../../{}\")", guide.path), "cfg(doctest)") {
            findings.push(Finding::new(guide, 0, "its Rust is in the documentation of no crate"));
        }
        if !has("sh\n") && !has("rust") {
            findings.push(Finding::new(guide, 0, "it has nothing that a test could run"));
        }
    }
    findings
}

/// Figures of the README's table of results that the page linked in the same row does not have.
pub(crate) fn figures(files: &[File]) -> Vec<Finding> {
    let Some(readme) = files.iter().find(|file| file.path == README) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut rows = 0;
    let lines = readme.text.lines().enumerate().skip_while(|(_, line)| *line != FIGURES).skip(1);
    for (index, line) in lines.take_while(|(_, line)| !line.starts_with("## ")) {
        let targets: Vec<&str> = links_in(line).filter(|target| target.starts_with(RESULTS)).collect();
        let pages =
            || files.iter().filter(|file| targets.iter().any(|target| without_anchor(target) == file.path));
        if !line.starts_with('|') || targets.is_empty() {
            continue;
        }
        rows += 1;
        for figure in numbers(&without_targets(line)) {
            if !pages().any(|page| numbers(&page.text).contains(&figure)) {
                findings.push(Finding::new(
                    readme,
                    index + 1,
                    format!("{figure} is not in {}", targets.join(", ")),
                ));
            }
        }
    }
    if rows == 0 {
        findings.push(Finding::new(readme, 0, format!("there is no table of figures below {FIGURES}")));
    }
    findings
}

/// Figures in the texts of the drawing that its page does not have.
pub(crate) fn drawn(files: &[File]) -> Vec<Finding> {
    let [drawing, page] = DRAWING.map(|path| files.iter().find(|file| file.path == path));
    let (Some(drawing), Some(page)) = (drawing, page) else {
        return vec![Finding::new(&File::sample(DRAWING[0], ""), 0, "the drawing or its page is not there")];
    };
    let known = numbers(&page.text);
    let texts =
        drawing.text.split("<text").skip(1).filter_map(|rest| rest.split_once('>')?.1.split_once("</text>"));
    let drawn: HashSet<String> = texts.flat_map(|(text, _)| numbers(text)).collect();
    let strange = drawn.into_iter().filter(|figure| !known.contains(figure));
    strange.map(|figure| Finding::new(drawing, 0, format!("{figure} is not in {}", page.path))).collect()
}

/// Names that a guide does not have in backquotes.
pub(crate) fn unnamed<'a>(files: &[File], guide: &str, names: &[&'a str]) -> Vec<&'a str> {
    let text = files.iter().find(|file| file.path == guide).map_or("", |file| &file.text);
    let quoted: HashSet<&str> =
        text.split('`').skip(1).step_by(2).map(|name| name.split('[').next().unwrap_or(name)).collect();
    names.iter().copied().filter(|name| !quoted.contains(name)).collect()
}

/// The links of a document outside of code, with their lines.
fn links_of(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (line, content) in prose(text) {
        for target in links_in(content) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (target, anchor) = match target.split_once('#') {
                Some((target, anchor)) => (target, Some(anchor)),
                None => (target, None),
            };
            links.push(Link { line, target, anchor });
        }
    }
    links
}

/// The lines outside of fenced code, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// The targets of `[text](target)`, `src="target"` and `srcset="target"` in a line, those inside of backquotes left out.
fn links_in(line: &str) -> impl Iterator<Item = &str> {
    let outside = line.split('`').step_by(2);
    outside.flat_map(|part| {
        [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"')].into_iter().flat_map(move |(before, end)| {
            part.split(before).skip(1).filter_map(move |rest| rest.split_once(end).map(|(target, _)| target))
        })
    })
}

/// The line without the targets of its links.
fn without_targets(line: &str) -> String {
    let mut text = String::new();
    for (index, part) in line.split("](").enumerate() {
        text += if index == 0 { part } else { part.split_once(')').map_or(part, |(_, rest)| rest) };
    }
    text
}

fn without_anchor(target: &str) -> &str {
    target.split('#').next().unwrap_or(target)
}

/// The numbers of a text; those that are part of a name, such as `HTTP/3` or `p95`, are left out.
fn numbers(text: &str) -> HashSet<String> {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '.' | ',' | '/' | '_' | '-');
    text.split(|c| !inside(c))
        .map(|word| word.trim_matches(['.', ',', '/', '-']))
        .flat_map(|word| {
            word.split('/').filter(|part| part.len() == word.len() || !word.starts_with(char::is_alphabetic))
        })
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|word| word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',')))
        .map(str::to_owned)
        .collect()
}

/// The names by which headings of a document are linked: small letters, digits, and hyphens for spaces.
fn anchors(text: &str) -> HashSet<String> {
    let mut known = HashSet::new();
    for (_, line) in prose(text) {
        let Some(title) = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        else {
            continue;
        };
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String =
            kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let repeated = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(repeated).find(|name| !known.contains(name));
        known.extend(free);
    }
    known
}

/// The path from the root that `target` means in the document at `path`.
fn resolve(path: &str, target: &str) -> String {
    if target.is_empty() {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Returns true if `path` is a file or a folder of the repository, a picture too.
fn exists(path: &str, files: &[File]) -> bool {
    let folder = format!("{path}/");
    files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
        || Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path).is_file()
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let text = "# One: two\n[a](b.md) [c](missing.md#x) `[d](code.md)`\n```\n[e](fenced.md)\n```\n\
                [f](#one-two) [g](#three) [h](b.md#in-b) [i](b.md#not) [j](https://a.b/c) <img src=\"no.svg\">\n\
                [k](../x.rs) [l](..) [m](../folder)\n";
    let files = [
        File::sample("docs/a.md", text),
        File::sample("docs/b.md", "## In `b`\n"),
        File::sample("x.rs", ""),
        File::sample("folder/file", ""),
    ];
    let problems: Vec<String> = links(&files).into_iter().map(|finding| finding.to_string()).collect();
    assert_eq!(
        problems,
        [
            "docs/a.md:2: there is no docs/missing.md",
            "docs/a.md:6: docs/a.md has no heading #three",
            "docs/a.md:6: docs/b.md has no heading #not",
            "docs/a.md:6: there is no docs/no.svg",
            "docs/a.md:7: there is no ",
        ]
    );
}

#[test]
fn headings_of_one_name_are_numbered() {
    let known = anchors("# A b\n## A b\n```\n# code\n```\n#no heading\n");
    assert_eq!(known, HashSet::from(["a-b", "a-b-1"].map(str::to_owned)));
}

#[test]
fn a_long_readme_is_found() {
    let readme = |lines: usize| File::sample(README, &"x\n".repeat(lines));
    assert!(length(&readme(MOST_LINES)).is_empty());
    assert_eq!(length(&readme(MOST_LINES + 1)).len(), 1);
    assert_eq!(length(&File::sample("docs/guides/x.md", &"x\n".repeat(MOST_LINES + 1))).len(), 1);
    assert!(length(&File::sample("docs/rust.md", &"x\n".repeat(900))).is_empty());
}

#[test]
fn guides_that_nothing_tries_are_found() {
    let guide = |text: &str| File::sample("docs/guides/a.md", text);
    let runner = File::sample("x/tests/y.rs", "scripts/guide.py … a.md");
    let crate_root = File::sample("x/src/lib.rs", "cfg(doctest) include_str!(\"../../../docs/guides/a.md\")");
    let (sh, rust) = ("a\n```sh\ntrue\n```\n", "a\n```rust,no_run\nfn a() {}\n```\n");
    assert!(untried(&[guide(sh), runner.clone()]).is_empty());
    assert!(untried(&[guide(rust), crate_root.clone()]).is_empty());
    assert_eq!(untried(&[guide(sh), crate_root]).len(), 1);
    assert_eq!(untried(&[guide(rust), runner.clone()]).len(), 1);
    assert_eq!(untried(&[guide("words"), runner]).len(), 1);
}

#[test]
fn figures_that_the_results_do_not_have_are_found() {
    let page = File::sample("docs/results/x.md", "| 1,234 | 5.6 % | 7/8 |");
    let readme = |row: &str| {
        File::sample(README, &format!("## Results\n\n{row}\n\n## More\n| 99 | [x](docs/results/x.md) |"))
    };
    let found = |row: &str| figures(&[readme(row), page.clone()]).len();
    assert_eq!(found("| 1,234 of 5.6 %, p95, HTTP/3 and 8 | [x](docs/results/x.md#part9) |"), 0);
    assert_eq!(found("| 1,235 of 5.7 % | [x](docs/results/x.md) |"), 2);
    assert_eq!(found("| 1 | [y](docs/rust.md) |"), 1, "no row leads to results");
}

#[test]
fn figures_of_a_drawing_that_its_page_does_not_have_are_found() {
    let page = File::sample(DRAWING[1], "| 44 % | 52 % |");
    let drawing =
        |text: &str| File::sample(DRAWING[0], &format!("<rect x=\"7\"/><text x=\"9\">{text}</text>"));
    assert!(drawn(&[drawing("44 %"), page.clone()]).is_empty());
    assert_eq!(drawn(&[drawing("45 %"), page]).len(), 1);
    assert_eq!(drawn(&[]).len(), 1);
}

#[test]
fn names_that_a_guide_leaves_out_are_found() {
    let guide = [File::sample("docs/x.md", "| `a`, `b[:N]` | c |")];
    assert_eq!(unnamed(&guide, "docs/x.md", &["a", "b", "c"]), ["c"]);
}
