#!/usr/bin/env bash
# Checks what is taken from elsewhere, and lists it: scripts/supply-chain.sh FOLDER
#
# `cargo deny` holds all dependencies against deny.toml: licences, sources, bans, and advisories where their database can be
# had. Nested workspaces are what hvq is compared with, in which the bans and the style of versions do not count.
# `cargo cyclonedx` writes a list of all parts (SBOM, CycloneDX 1.5) for the program and the C library to FOLDER. Both tools
# are compiled once, into the cache. Exits with 75 if they cannot be had here, with 1 if something is not allowed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:?usage: scripts/supply-chain.sh FOLDER}
deny_version=0.20.2
cyclonedx_version=0.5.9
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hvq"
unavailable=75
status=0

say() { echo "supply-chain: $*"; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Compiles a tool of this version unless it is there, and adds it to PATH.
tool() {
    local name=$1 version=$2
    local place="$cache/$name-$version"
    if [[ ! -x $place/bin/$name ]]; then
        say "compiling $name $version once (some minutes)"
        # Outside of the repository, so that .cargo/config.toml does not apply.
        (cd "$scratch" && CARGO_TARGET_DIR="$scratch/target" cargo install --quiet --locked --root "$place" "$name@$version") ||
            { say "$name cannot be installed" >&2; exit "$unavailable"; }
    fi
    PATH="$place/bin:$PATH"
}

# check MANIFEST CHECK...: holds a workspace against deny.toml.
check() {
    local manifest=$1
    shift
    say "$manifest: $*"
    cargo deny --config "$PWD/deny.toml" --log-level error --manifest-path "$manifest" --locked check --hide-inclusion-graph "$@" ||
        status=1
}

# Advisories need their database, which is fetched.
check_advisories() {
    if ! cargo deny --config "$PWD/deny.toml" --log-level error fetch db > "$scratch/log" 2>&1; then
        say "advisories are not checked: their database cannot be fetched here"
        return
    fi
    local manifest
    for manifest in "$@"; do
        check "$manifest" advisories
    done
}

# Lists what a package is made of.
list() {
    local package=$1
    cargo cyclonedx --quiet --format json --spec-version 1.5 --override-filename hvq-sbom --manifest-path "$package/Cargo.toml"
    mv "$package/hvq-sbom.json" "$folder/$(basename "$package").cdx.json"
    # One is written for each member of the workspace.
    find . -name hvq-sbom.json -not -path './target/*' -delete
    say "wrote $folder/$(basename "$package").cdx.json"
}

tool cargo-deny "$deny_version"
tool cargo-cyclonedx "$cyclonedx_version"
check Cargo.toml bans licenses sources
for manifest in interop/Cargo.toml bench/Cargo.toml mutants/Cargo.toml; do
    check "$manifest" licenses sources
done
check_advisories Cargo.toml interop/Cargo.toml bench/Cargo.toml mutants/Cargo.toml
mkdir -p "$folder"
list apps/cli
list ffi
exit "$status"
