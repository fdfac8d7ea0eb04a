#!/usr/bin/env python3
"""Type-checks the crates for programs on other platforms: scripts/platforms.py [--write PAGE] [TARGET…]

For each target the compiler gets the target's own standard library (rustup), and C code and bindings the headers that zig ships. A
target whose standard library is not to be had is named as such. --write puts the table between the marks of a page.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from crates import ROOT, metadata, published

CRATES = published()
ZIG = "0.17.1"
MARKS = ("<!-- platforms -->", "<!-- /platforms -->")
MUSL = ["generic-musl", "any-linux-any"]
# Name, Rust's target, zig's target, zig's folders of headers, and a remark.
TARGETS = [
    ("Linux, musl, x86-64", "x86_64-unknown-linux-musl", "x86_64-linux-musl", ["x86_64-linux-musl", "x86-linux-any", *MUSL], ""),
    ("Linux, musl, aarch64", "aarch64-unknown-linux-musl", "aarch64-linux-musl", ["aarch64-linux-musl", "aarch64-linux-any", *MUSL], ""),
    ("Linux, musl, armv7", "armv7-unknown-linux-musleabihf", "arm-linux-musleabihf", ["arm-linux-musl", "arm-linux-any", *MUSL], ""),
    ("Windows, x86-64", "x86_64-pc-windows-gnu", "x86_64-windows-gnu", ["any-windows-any"], ""),
    ("macOS, aarch64", "aarch64-apple-darwin", "aarch64-macos", ["any-darwin-any"], ""),
    ("iOS, aarch64", "aarch64-apple-ios", "aarch64-ios", ["any-darwin-any"], "C headers of macOS"),
    ("Android, aarch64", "aarch64-linux-android", "aarch64-linux-musl", ["aarch64-linux-musl", "aarch64-linux-any", *MUSL],
     "C headers of musl: bionic's come with the NDK alone"),
]


def say(text):
    print(f"platforms: {text}", flush=True)


def run(command, **options):
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, **options)


def zig():
    """The program zig, from its Python package, installed once outside of the repository."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hvq" / f"zig-{ZIG}"
    if not list(cache.glob("lib/python3*/site-packages/ziglang/zig")):
        say(f"installing zig {ZIG} once")
        subprocess.run([sys.executable, "-m", "venv", cache], check=True)
        subprocess.run([cache / "bin/pip", "install", "--quiet", f"ziglang=={ZIG}"], check=True)
    return next(cache.glob("lib/python3*/site-packages/ziglang/zig"))


def compiler(program, target, folder):
    """Scripts that compile C for a target and archive it."""
    scripts = {"CC": f"cc -target {target}", "CXX": f"c++ -target {target}", "AR": "ar"}
    for name, words in scripts.items():
        script = folder / f"{target}-{name.lower()}"
        # Rust's name of the target, which others hand on, means nothing to zig.
        script.write_text(f'#!/bin/bash\nfor word; do shift; [[ $word == --target=* ]] || set -- "$@" "$word"; done\n'
                          f'exec "{program}" {words} "$@"\n')
        script.chmod(0o755)
        scripts[name] = script
    return scripts


def check(target, zig_target, headers):
    """What came of a target, as a cell of the table."""
    added = run(["rustup", "target", "add", target])
    if added.returncode:
        return "not tried: its standard library is not to be had"
    program = zig()
    folder = Path(metadata("--no-deps")["target_directory"]) / "platforms"
    folder.mkdir(parents=True, exist_ok=True)
    name = target.replace("-", "_")
    include = " ".join(f"-isystem {program.parent}/lib/libc/include/{header}" for header in headers)
    # The compiler's own headers, which its library does not find for every target.
    own = sorted(Path("/usr/lib").glob("llvm-*/lib/clang/*/include/stddef.h"))
    include += f" -resource-dir {own[-1].parent.parent}" if own else ""
    environment = dict(os.environ, CARGO_TARGET_DIR=str(folder), CARGO_INCREMENTAL="0")
    if "apple" in target:
        # An older clang takes every environment for that of the kernel.
        include += ' "-D__is_target_environment(x)=0"'
    environment[f"BINDGEN_EXTRA_CLANG_ARGS_{name}"] = include
    # Without an NDK the bindings are made with the headers named here.
    environment.setdefault("ANDROID_NDK_HOME", str(folder))
    for variable, script in compiler(program, zig_target, folder).items():
        environment[f"{variable}_{name}"] = str(script)
    words = ["cargo", "check", "--target", target, *(f"--package={one}" for one in CRATES)]
    checked = run(words, env=environment)
    if checked.returncode == 0:
        warnings = len(re.findall(r"^warning: `hvq", checked.stderr, re.M))
        return "type-checked" + (", with warnings" if warnings else "")
    (folder / f"{target}.log").write_text(checked.stderr)
    errors = re.findall(r"^(error.*)$", checked.stderr, re.M)
    say(f"{target}: {errors[0] if errors else checked.stderr[-500:]} (all of it is in {folder.name}/{target}.log)")
    return f"fails: {errors[0].removeprefix('error: ') if errors else 'see the log'}"


def main():
    words = sys.argv[1:]
    page = None
    if words[:1] == ["--write"]:
        page, words = ROOT / words[1], words[2:]
    rows = ["| platform | target | state | remark |", "| --- | --- | --- | --- |",
            "| Linux, glibc, x86-64 | x86_64-unknown-linux-gnu | compiled and run: `make test` | |"]
    failed = False
    for name, target, zig_target, headers, remark in TARGETS:
        if words and target not in words:
            rows.append(f"| {name} | {target} | not tried | {remark} |")
            continue
        say(f"checking {target}")
        state = check(target, zig_target, headers)
        say(f"{target}: {state}")
        failed |= state.startswith("fails")
        rows.append(f"| {name} | {target} | {state} | {remark} |")
    table = "\n".join(rows)
    if page:
        before, _, rest = page.read_text().partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
        page.write_text(f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{after}")
    print(table)
    sys.exit(failed)


main()
