#!/usr/bin/env bash
# Tries small faults of the modules that an attacker reaches, and says which no test notices: scripts/mutants.sh COMMAND...
#
# cargo-mutants, compiled once into the cache, lists the faults; mutants/ compiles all of a crate into one program and asks the
# tests. COMMAND is that program's: run, report, survivors or check, as in `scripts/mutants.sh run --module wire --jobs 1`.
# Exits with 75 if cargo-mutants cannot be had here, with 1 if a mutant survives without a reason in mutants/triage.toml.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=25.3.1
place="${XDG_CACHE_HOME:-$HOME/.cache}/hvq/cargo-mutants-$version"
unavailable=75

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [[ ! -x $place/bin/cargo-mutants ]]; then
    echo "mutants: compiling cargo-mutants $version once (some minutes)" >&2
    # Outside of the repository, so that .cargo/config.toml does not apply.
    (cd "$scratch" && CARGO_TARGET_DIR="$scratch/target" cargo install --quiet --locked --root "$place" "cargo-mutants@$version") ||
        { echo "mutants: cargo-mutants cannot be installed" >&2; exit "$unavailable"; }
fi
PATH="$place/bin:$PATH"
cargo run --quiet --locked --manifest-path mutants/Cargo.toml -- "$@"
