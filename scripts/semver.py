#!/usr/bin/env python3
"""Compares the interfaces of the crates for programs with those of an earlier revision: scripts/semver.py [REVISION]

REVISION is the last tag unless it is given. cargo-semver-checks, compiled once into the cache, reads what rustdoc says of both, with all
features of a crate and the dependencies of each revision's lock file. A breaking change counts as named if code spans below Changed or
Removed of the first release in CHANGELOG.md have its name: of a method also that of its type, of a field or variant that of its type alone.
That a type is no longer UnwindSafe is not counted. Exits with 75 if cargo-semver-checks cannot be had here, with 1 if a breaking change is not named.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from crates import ROOT, metadata, published

VERSION = "0.51.0"
UNAVAILABLE = 75
CHANGELOG = "CHANGELOG.md"
RUSTDOC = "-Z unstable-options --output-format=json --document-private-items --document-hidden-items --cap-lints=allow"
# Words of a finding that are not names of what changed.
KINDS = {"associated", "attribute", "constant", "derive", "enum", "feature", "field", "file", "function", "helper", "macro", "method", "mod", "of",
         "proc", "static", "struct", "supertrait", "trait", "type", "union", "variant"}
# What follows from private fields, and matters to nobody who does not catch panics.
IGNORED = re.compile(r"no longer (Ref)?UnwindSafe")


def say(text):
    print(f"semver: {text}", file=sys.stderr, flush=True)


def fail(text, status=2):
    say(text)
    sys.exit(status)


def run(*command, cwd=ROOT, **options):
    return subprocess.run(command, cwd=cwd, text=True, capture_output=True, **options)


def tool():
    """The program cargo-semver-checks, compiled outside of the repository, whose settings do not apply to it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hvq" / f"cargo-semver-checks-{VERSION}"
    program = cache / "bin" / "cargo-semver-checks"
    if not program.exists():
        say(f"compiling cargo-semver-checks {VERSION} once (some minutes)")
        with tempfile.TemporaryDirectory() as scratch:
            # It is compiled to be used a few times.
            settings = ["--config", "profile.release.lto=false", "--config", "profile.release.codegen-units=16"]
            words = ["cargo", "install", "--quiet", "--locked", *settings, "--root", str(cache), f"cargo-semver-checks@{VERSION}"]
            installed = run(*words, cwd=scratch, env=dict(os.environ, CARGO_TARGET_DIR=f"{scratch}/target"))
        if installed.returncode:
            fail(f"cargo-semver-checks cannot be installed: {installed.stderr.strip()}", UNAVAILABLE)
    return program


def baseline(words):
    """The revision to compare with and its commit."""
    if len(words) > 1:
        fail("one revision at most: scripts/semver.py [REVISION]")
    revision = words[0] if words else run("git", "describe", "--tags", "--abbrev=0").stdout.strip()
    if not revision:
        fail('there is no tag to compare with: name a revision, as in make semver ARGS="HEAD~50"')
    commit = run("git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").stdout.strip()
    if not commit:
        fail(f"'{revision}' is no revision of this repository")
    return revision, commit


def check_out(commit, folder):
    """Puts the files of a commit into a folder, with a link to the BoringSSL of its lock file."""
    if not folder.exists():
        unfinished = folder.with_name(folder.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", unfinished], input=archive.stdout, check=True)
        unfinished.rename(folder)
    if run(str(folder / "scripts" / "boringssl.sh"), cwd=folder).returncode:
        fail("the BoringSSL of the revision cannot be compiled")


def crates_of(folder):
    """The crates for programs of a revision, with the names of their libraries."""
    packages = metadata("--no-deps", "--manifest-path", str(folder / "Cargo.toml"))["packages"]
    kinds = {"lib", "rlib", "cdylib", "staticlib"}
    return {package["name"]: target["name"] for package in packages if package["publish"] is None
            for target in package["targets"] if kinds & set(target["kind"])}


def describe(folder, name, place):
    """Has rustdoc describe the crates for programs of the revision in a folder; the files of JSON, by crate."""
    crates = crates_of(folder)
    say(f"describing {len(crates)} crates of {name}")
    shared = place / "target"
    environment = dict(os.environ, CARGO_TARGET_DIR=str(shared), RUSTC_BOOTSTRAP="1", RUSTDOCFLAGS=RUSTDOC, CARGO_INCREMENTAL="0",
                       BORING_BSSL_PATH=str((folder / ".boringssl").resolve()))
    chosen = [f"--package={crate}" for crate in crates]
    # Only what comes from elsewhere is shared: cargo takes crates of two checkouts for the same.
    run("cargo", "clean", "--quiet", "--locked", *chosen, cwd=folder, env=environment, check=True)
    described = run("cargo", "doc", "--quiet", "--locked", "--no-deps", "--lib", "--all-features", *chosen, cwd=folder, env=environment)
    if described.returncode:
        errors = re.findall(r"^error.*(?:\n.+)*", described.stderr, re.M)
        fail(f"{name} cannot be described:\n{errors[0] if errors else described.stderr.strip()}", 1)
    files = {}
    for crate, library in crates.items():
        # The next revision overwrites what cargo wrote.
        files[crate] = place / f"{name}-{crate}.json"
        shutil.copy(shared / "doc" / f"{library.replace('-', '_')}.json", files[crate])
    return files


def changelog():
    """The names in code spans below Changed and Removed of the first release in the changelog."""
    release = re.split(r"^## ", (ROOT / CHANGELOG).read_text(), flags=re.M)[1]
    sections = [section for section in re.split(r"^### ", release, flags=re.M) if section.startswith(("Changed", "Removed"))]
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", "".join(sections)))))


def words(finding):
    """The names in a finding, such as `struct a::B, previously in file …`, but for that of the file."""
    subject = re.split(r", | in | \(| -> | \d| now | became | gained | changed | takes | requires | is no | no longer | has | cannot ", finding)[0]
    return [word for word in re.findall(r"\w+", subject) if word not in KINDS]


def names(finding):
    """The names by which a changelog tells of a finding."""
    found = words(finding)
    if finding.startswith(("field ", "variant ")):
        owner = re.search(r" of (?:struct|variant|enum|union) (\w+)", finding)
        return {owner[1] if owner else found[0]}
    return set(found[-2:]) if len(found) > 1 and found[-2][0].isupper() else set(found[-1:])


def compare(program, old, new, log):
    """The checks that passed, as a cell of the table, and the breaking changes, each behind the check that found it."""
    checked = run(str(program), "semver-checks", "--color", "never", "--release-type", "minor", "--baseline-rustdoc", str(old),
                  "--current-rustdoc", str(new))
    log.write_text(checked.stdout + checked.stderr)
    counts = re.search(r"(\d+) checks: (\d+) pass(?:, (\d+) fail)?", checked.stderr)
    if not counts:
        fail(f"cargo-semver-checks fails:\n{checked.stderr.strip()}", 1)
    findings = {}
    for part in re.split(r"^--- failure ", checked.stdout, flags=re.M)[1:]:
        check = part.split(":")[0]
        listed = part.partition("Failed in:\n")[2].split("\n\n")[0]
        for line in listed.splitlines():
            if line.startswith("  ") and not IGNORED.search(line):
                # Two checks may find one change: a field that is gone is hidden, too.
                findings.setdefault(frozenset(words(line.strip())), (check, line.strip()))
    return f"{counts[2]} of {int(counts[2]) + int(counts[3] or 0)}", list(findings.values())


def main():
    program = tool()
    revision, commit = baseline(sys.argv[1:])
    place = Path(metadata("--no-deps")["target_directory"]) / "semver"
    folder = place / f"baseline-{commit[:12]}"
    check_out(commit, folder)
    old, new = describe(folder, commit[:12], place), describe(ROOT, "here", place)
    known = changelog()
    rows = [f"| crate, since {revision} | checks passed | breaking changes | not in {CHANGELOG} |", "| --- | ---: | ---: | ---: |"]
    missing = 0
    for crate in published():
        if crate not in old:
            rows.append(f"| {crate} | new | | |")
            continue
        passed, findings = compare(program, old[crate], new[crate], place / f"{crate}.log")
        untold = [finding for _, finding in findings if not names(finding) <= known]
        missing += len(untold)
        for check, finding in findings:
            print(f"{crate}: {check}: {finding}{f' [not in {CHANGELOG}]' if finding in untold else ''}")
        rows.append(f"| {crate} | {passed} | {len(findings)} | {len(untold)} |")
    for crate in sorted(set(old) - set(published())):
        rows.append(f"| {crate} | removed | | |")
    print("\n".join(rows))
    say(f"all that cargo-semver-checks said is in {place}")
    sys.exit(missing > 0)


main()
