#!/usr/bin/env bash
# Plays the cases of the QUIC interop runner over a relay: scripts/runner.sh [--only CASE]... [--pair CLIENT:SERVER]...
# [--json] [--write FILE] [--keep FOLDER]; with --aioquic first, makes aioquic's 13 checks instead.
#
# hvq plays against itself, quic-go, aioquic and quinn, both ways. quic-go is a Go module below interop/, aioquic lives in
# a Python environment of its own there, and quinn is built with the peers of make interop.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hvq"
quic_go="$cache/quic-go-peer"
target=${CARGO_TARGET_DIR:-$repository/target}

say() { echo "runner: $*" >&2; }

cd "$repository"
environment=$(scripts/python-peers.sh)
say "building hvq"
cargo build --quiet --release --locked -p hvq-cli -p hvq-live
programs=(--program "hvq=$target/release/hvq-endpoint")
if [[ ${1:-} == --aioquic ]]; then
    shift
    exec "$target/release/hvq-runner" "${programs[@]}" --hvq "$target/release/hvq" \
        --aioquic-checks "$environment/bin/python" "$@"
fi
say "building quic-go"
mkdir -p "$cache"
(cd interop/quic-go && go build -o "$quic_go" .)
programs+=(--program "quic-go=$quic_go,endpoint")
programs+=(--program "aioquic=$environment/bin/python,$repository/apps/live/peers/aioquic_endpoint.py")
say "building quinn"
own_target=${CARGO_TARGET_DIR:-$repository/interop/target}
cargo build --quiet --release --locked --manifest-path interop/Cargo.toml --bin quinn-endpoint
programs+=(--program "quinn=$own_target/release/quinn-endpoint" --one-socket quinn)
exec "$target/release/hvq-runner" "${programs[@]}" "$@"
