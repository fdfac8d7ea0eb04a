#!/usr/bin/env bash
# Builds hvq and the program of its rivals (bench/rivals) and measures failover; arguments are passed on, as in
# `scripts/failover.sh --trials 4`. Where the rivals cannot be built hvq is measured alone, and the tables say so.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repository"
cargo build --release -p hvq-cli
rivals=()
if cargo build --release --locked --manifest-path bench/Cargo.toml -p hvq-rivals; then
    rivals=(--rivals "${CARGO_TARGET_DIR:-bench/target}/release/hvq-rivals")
else
    echo "failover: the rivals cannot be built, for the reason above: hvq is measured alone" >&2
fi
exec "${CARGO_TARGET_DIR:-target}/release/hvq" lab failover "${rivals[@]}" "$@"
