#!/usr/bin/env bash
# Builds the benchmark and runs it; arguments are passed on, as in `scripts/bench.sh --quick` or `--json > figures.json`.
#
# Only the result goes to standard output. Use it on a machine that does nothing else: the benchmark says so if it is not.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repository"
echo "bench: building (a few minutes the first time)" >&2
exec cargo run --release --quiet --locked --manifest-path bench/Cargo.toml -- "$@"
