#!/usr/bin/env python3
"""Holds the crates for programs to what a release promises: scripts/releases.py [--write PAGE]

The oldest Rust that they and the program permit compiles them. A toolchain that is not to be had is named as such. --write puts the table
between the marks of a page.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from crates import ROOT, metadata, published

MARKS = ("<!-- releases -->", "<!-- /releases -->")
PROGRAM = "hvq-cli"


def say(text):
    print(f"releases: {text}", flush=True)


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, **options)


def last_line(text):
    """The first error of a compiler or a tool, or else the last thing that it said."""
    errors = re.findall(r"^(error.*)$", text, re.M)
    return errors[0] if errors else (text.strip().splitlines() or ["nothing was said"])[-1]


def compiled(version, crates, target):
    """What came of compiling crates with a version of Rust, as a cell of the table."""
    if run("rustup", "toolchain", "install", version, "--profile", "minimal", "--no-self-update").returncode:
        return f"not tried: Rust {version} is not to be had"
    say(f"checking {', '.join(crates)} with Rust {version}")
    words = ["cargo", f"+{version}", "check", "--locked", *(f"--package={crate}" for crate in crates)]
    checked = run(*words, env=dict(os.environ, CARGO_TARGET_DIR=str(target / "oldest"), CARGO_INCREMENTAL="0"))
    return "compiled" if checked.returncode == 0 else f"fails: {last_line(checked.stderr)}"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--write", metavar="PAGE")
    arguments = arguments.parse_args()
    packages = {package["name"]: package for package in metadata("--no-deps")["packages"]}
    crates, target = published(), Path(metadata("--no-deps")["target_directory"])
    of_crates = max(packages[crate]["rust_version"] for crate in crates)
    of_program = packages[PROGRAM]["rust_version"]
    outcomes = {
        f"crates with Rust {of_crates}": compiled(of_crates, crates, target),
        f"program `hvq` with Rust {of_program}": compiled(of_program, [PROGRAM], target),
    }
    rows = ["| check | outcome |", "| --- | --- |", *(f"| {check} | {outcome} |" for check, outcome in outcomes.items())]
    if arguments.write:
        page = ROOT / arguments.write
        before, _, rest = page.read_text().partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
        page.write_text(f"{before}{MARKS[0]}\n\n" + "\n".join(rows) + f"\n\n{MARKS[1]}{after}")
    print("\n".join(rows))
    sys.exit(any(outcome.startswith("fails") for outcome in outcomes.values()))


main()
