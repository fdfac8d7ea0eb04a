#!/usr/bin/env bash
# Runs quinn's own examples and tests, from its published crate, over hvq-quinn and prints a table: scripts/quinn.sh [--write FILE]
#
# Cargo fetches the crate. Names of crates are replaced as `substitute` says and nothing else: no line of quinn is kept here.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=0.11.12
suite="$repository/target/quinn-suite"
write=
patience=60

say() { echo "quinn: $*" >&2; }
fail() { echo "quinn: $*" >&2; exit 1; }

while (($# > 0)); do
    case $1 in
    --write) write=${2:?--write needs a file}; shift 2 ;;
    *) fail "unknown argument $1" ;;
    esac
done

manifest() { # the dependency of the suite called quinn, and what quinn's own tests depend on
    cat <<TOML
[workspace]
[package]
name = "quinn-suite"
version = "0.0.0"
edition = "2024"
publish = false
[dependencies]
quinn = $1
anyhow = "1"
bytes = "1"
clap = { version = "4", features = ["derive"] }
crc = "3"
directories-next = "2"
rand = "0.10"
rcgen = "0.14"
tokio = { version = "1", features = ["full"] }
tracing = "0.1"
tracing-futures = { version = "0.2", default-features = false, features = ["std-future"] }
tracing-subscriber = { version = "0.3", features = ["env-filter", "fmt"] }
url = "2"
[profile.dev]
debug = "line-tables-only"
[profile.dev.package."*"]
debug = false
[features]
default = ["rustls-ring"]
rustls-ring = []
TOML
}

substitute() { # the names of crates and of cryptography providers
    perl -0pe '
        s/^use rustls::crypto::ring::default_provider;\n//mg;
        s/^#\[cfg\([^\n]*rustls[^\n]*\)\]\n(?=\n|#\[cfg|use std)//mg;
        s/^#\[cfg\([^\n]*aws-lc-rs[^\n]*\)\]\nuse rustls::[^\n]*\n//mg;
        s/builder_with_provider\(default_provider\(\)\.into\(\)\)\s*\.with_safe_default_protocol_versions\(\)\s*\.unwrap\(\)/builder()/g;
        s/\bcrate::runtime::TokioRuntime/quinn::TokioRuntime/g;
        s/\buse crate::\{Duration, Instant\}/use std::time::{Duration, Instant}/g;
        s/\bcrypto::rustls::QuicClientConfig\}/__CLIENT}/g;
        s/\buse proto::\{RandomConnectionIdGenerator, __CLIENT\}/use quinn::{RandomConnectionIdGenerator, crypto::rustls::QuicClientConfig}/g;
        s/\bproto::/quinn::/g;
        s/(?<![:\w])(?:::)?rustls::(?=\w|\{)/quinn::rustls::/g;
        s/\bcrypto::quinn::rustls::/crypto::rustls::/g;
        s/\buse super::\{/use quinn::{/g;
        s/\bcrate::/quinn::/g;
    ' "$1"
}

mkdir -p "$suite/src"
cd "$suite"
: >src/lib.rs
manifest "\"=$version\"" >Cargo.toml
cp "$repository/Cargo.lock" Cargo.lock
say "fetching quinn $version"
cargo metadata --format-version 1 >metadata.json
source=$(perl -ne 'print $1 if /"manifest_path":"([^"]*\/quinn-'"$version"')\/Cargo.toml"/' metadata.json)
[[ -d $source ]] || fail "cargo did not fetch quinn $version"

rm -rf examples tests
mkdir -p examples/common tests
for file in "$source"/examples/*.rs examples/common/mod.rs; do
    [[ $file == examples/* ]] && file="$source/$file"
    substitute "$file" >"$suite/examples/${file#"$source/examples/"}"
done
substitute "$source/src/tests.rs" >tests/unit.rs
substitute "$source/tests/many_connections.rs" >tests/many_connections.rs
manifest "{ package = \"hvq-quinn\", path = \"$repository/transport/quinn\" }" >Cargo.toml
cp "$repository/Cargo.lock" Cargo.lock

rows=()
passed=0
row() { # name, kind, outcome
    rows+=("| $1 | $2 | $3 |")
    say "$1: $3"
    [[ $3 == passes* ]] && passed=$((passed + 1))
    return 0
}
first_error() { grep -m1 -E "^error(\[|:)" "$1" | sed -E 's/^error(\[[A-Z0-9]+\])?: //; s/\|/\\|/g' || true; }

example() { # name: compiles and runs it, with what it serves and asks for where it needs that
    local name=$1 log="$suite/$1.log"
    if ! cargo build --quiet --example "$name" >"$log" 2>&1; then
        row "$name" example "does not compile: $(first_error "$log")"
        return
    fi
    case $name in
    server | client) return ;;
    esac
    if timeout "$patience" "${CARGO_TARGET_DIR:-target}/debug/examples/$name" >"$log" 2>&1; then
        row "$name" example passes
    else
        row "$name" example "fails: $(grep -m1 panicked -A1 "$log" | tail -1)"
    fi
}

transfer() { # the server serves a file, the client asks for it
    local home server bin="${CARGO_TARGET_DIR:-target}/debug/examples"
    home=$(mktemp -d)
    echo "a file of the server" >"$home/file"
    HOME="$home" XDG_DATA_HOME="$home/data" "$bin/server" "$home" --listen 127.0.0.1:4437 >server.log 2>&1 &
    server=$!
    sleep 1
    if HOME="$home" XDG_DATA_HOME="$home/data" timeout "$patience" "$bin/client" --host localhost "$@" \
        https://127.0.0.1:4437/file >client.log 2>&1 && grep -q "a file of the server" client.log; then
        row "server and client ${*:-over HTTP/0.9}" example passes
    else
        row "server and client ${*:-over HTTP/0.9}" example "fails: $(grep -m1 ERROR client.log || tail -1 client.log)"
    fi
    kill "$server"
    wait "$server" 2>/dev/null || true
    rm -rf "$home"
}

tests() { # file: each of its tests alone, those that quinn leaves out by default too
    local file=$1 log="$suite/$1.log" name names outcome
    if ! cargo test --quiet --no-run --test "$file" >"$log" 2>&1; then
        row "$file" tests "does not compile: $(first_error "$log")"
        return
    fi
    names=$(cargo test --quiet --test "$file" -- --list 2>/dev/null | sed -n 's/: test$//p')
    for name in $names; do
        if timeout "$patience" cargo test --quiet --test "$file" -- --include-ignored --exact "$name" >"$log" 2>&1; then
            outcome=passes
        elif (($? == 124)); then
            outcome="fails: not done after $patience s"
        else
            outcome="fails: $(grep -m1 panicked -A1 "$log" | tail -1)"
        fi
        row "$name" test "$outcome"
    done
}

for name in connection single_socket insecure_connection server client; do
    example "$name"
done
if [[ -x ${CARGO_TARGET_DIR:-target}/debug/examples/server && -x ${CARGO_TARGET_DIR:-target}/debug/examples/client ]]; then
    transfer
    transfer --rebind
fi
tests unit
tests many_connections

table() {
    cat <<MD
# quinn's examples and tests over hvq-quinn

\`make quinn\` fetches quinn $version with cargo, replaces the names of crates in its examples and tests, and runs them over \`hvq-quinn\`: $passed of
${#rows[@]} pass. Replaced are \`quinn\`, \`proto\`, \`crate\` and \`super\` by \`quinn\`, which is \`hvq-quinn\`; \`rustls\` by \`quinn::rustls\`, its shapes over
BoringSSL; and the choice of a cryptography provider by none. Tests that quinn leaves out by default are run too. Not run is \`post_quantum\`, which is about
the providers of rustls.

| name | kind | outcome |
| --- | --- | --- |
MD
    printf '%s\n' "${rows[@]}"
}

if [[ -n $write ]]; then
    table >"$repository/$write"
    say "$passed of ${#rows[@]} pass; wrote $write"
else
    table
fi
