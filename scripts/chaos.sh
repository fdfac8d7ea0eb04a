#!/usr/bin/env bash
# Takes interfaces away under a stream of requests: scripts/chaos.sh HVQ [ARGUMENT...]
#
# Compiles the C examples with the library of this tree; without a compiler for them, `hvq proxy` and `hvq gateway` are tried
# alone, and that is said. HVQ_PROFILE is the profile of the library (dev).
set -euo pipefail

hvq=$1
shift
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

examples() {
    local name
    HVQ_PROFILE=${HVQ_PROFILE:-dev} "$root/ffi/install/install.sh" "$place/prefix" > "$place/install.log" 2>&1 ||
        { cat "$place/install.log" >&2; return 1; }
    mkdir "$place/examples"
    for name in echo requests; do
        # shellcheck disable=SC2046 # options are words
        gcc -std=c11 -O1 -o "$place/examples/$name" "$root/ffi/examples/$name.c" \
            $(PKG_CONFIG_PATH=$place/prefix/lib/pkgconfig pkg-config --static --cflags --libs hvq |
                sed 's/-lhvq /-l:libhvq.a /') || return 1
    done
}

program=()
if examples; then program+=(--examples "$place/examples"); else echo "chaos: the C examples do not compile" >&2; fi
"$hvq" lab chaos "${program[@]}" "$@"
