#!/usr/bin/env bash
# Random calls of the C library under AddressSanitizer: ffi/fuzz/run.sh FIRST SECONDS (`make ffi-fuzz`).
#
# With a nightly toolchain the library itself is checked too, not only what it does to the memory of the program.
set -euo pipefail

first=${1:-1}
seconds=${2:-3600}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-$root/target}

if cargo +nightly --version > /dev/null 2>&1 && [[ -z ${HVQ_STABLE:-} ]]; then
    echo "ffi-fuzz: building the library with AddressSanitizer (nightly)"
    RUSTFLAGS=-Zsanitizer=address $cargo +nightly build -q -p hvq-ffi --target x86_64-unknown-linux-gnu
    archive=$target/x86_64-unknown-linux-gnu/debug/libhvq_ffi.a
else
    echo "ffi-fuzz: no nightly toolchain: only what the library does to the program's memory is checked"
    $cargo build -q -p hvq-ffi
    archive=$target/debug/libhvq_ffi.a
fi
"${CC:-gcc}" -std=c11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover -Iffi/include -o "$place/calls" \
    ffi/fuzz/calls.c "$archive" -lstdc++ -lpthread -ldl -lm
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$place/key.pem" -out "$place/cert.pem" -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost 2> /dev/null
"$place/calls" "$place/cert.pem" "$place/key.pem" ffi/fuzz/corpus/*
"$place/calls" "$place/cert.pem" "$place/key.pem" seconds "$first" "$seconds"
