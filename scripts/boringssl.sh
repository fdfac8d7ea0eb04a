#!/usr/bin/env bash
# Compiles BoringSSL once, in the version that Cargo.lock names, and links it as .boringssl for every workspace here.
#
# The build comes from the boring-sys crate, in a scratch crate outside the repository, so that .cargo/config.toml
# (which points at the result) does not apply. It lands in the cache under its final name in one rename.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=$(awk '$0 == "name = \"boring-sys\"" { getline; gsub(/"/, "", $3); print $3; exit }' "$repository/Cargo.lock")
if [[ -z $version ]]; then
    echo "boringssl: Cargo.lock names no version of boring-sys" >&2
    exit 1
fi

cache="${XDG_CACHE_HOME:-$HOME/.cache}/hvq"
prefix="$cache/boringssl-$version"
scratch=

is_complete() {
    [[ -s $prefix/lib/libssl.a && -s $prefix/lib/libcrypto.a && -s $prefix/include/openssl/ssl.h ]]
}

link() {
    local link="$repository/.boringssl"
    if [[ -e $link && ! -L $link ]]; then
        echo "boringssl: $link exists and is not a link; move it away and run again" >&2
        exit 1
    fi
    [[ $(readlink "$link" || true) == "$prefix" ]] || ln -sfn "$prefix" "$link"
}

write_scratch_crate() {
    mkdir -p "$scratch/crate/src"
    cat > "$scratch/crate/Cargo.toml" <<TOML
[package]
name = "boringssl-once"
version = "0.0.0"
edition = "2021"

[dependencies]
boring-sys = "=$version"

[workspace]
TOML
    echo > "$scratch/crate/src/lib.rs"
    # The same versions of the build tools as in the repository: nothing else is downloaded.
    cp "$repository/Cargo.lock" "$scratch/crate/Cargo.lock"
}

# Waits for the build $1 and says every ten seconds how far it is.
report_progress() {
    local pid=$1 tick=0
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        tick=$((tick + 1))
        if ((tick % 10 == 0)); then
            local objects
            objects=$(find "$scratch/target" -name '*.o' 2>/dev/null | wc -l)
            echo "boringssl: ${tick} s, $objects object files"
        fi
    done
}

build() {
    scratch=$(mktemp -d)
    staging=$(mktemp -d "$cache/.boringssl-$version.XXXXXXXX")
    # shellcheck disable=SC2064 # expanded now: both names are final.
    trap "rm -rf '$scratch' '$staging'" EXIT
    write_scratch_crate
    echo "boringssl: compiling version $version once into $prefix (two to four minutes on two cores)"
    local status=0
    (
        cd "$scratch/crate"
        unset BORING_BSSL_PATH BORING_BSSL_INCLUDE_PATH BORING_BSSL_SOURCE_PATH CARGO_BUILD_TARGET
        export BORING_BSSL_INSTALL_DIR="$staging" CARGO_TARGET_DIR="$scratch/target"
        exec cargo build --release --quiet
    ) > "$scratch/log" 2>&1 9>&- &
    local pid=$!
    report_progress "$pid"
    wait "$pid" || status=$?
    if ((status != 0)); then
        echo "boringssl: the build failed; its last lines:" >&2
        tail -n 40 "$scratch/log" >&2
        exit 1
    fi
    chmod 755 "$staging"
    rm -rf "$prefix"
    mv -T "$staging" "$prefix"
    is_complete || { echo "boringssl: the build left no libraries in $prefix" >&2; exit 1; }
    echo "boringssl: done"
}

mkdir -p "$cache"
if ! is_complete; then
    # One build at a time; whoever waited finds it done.
    exec 9> "$cache/boringssl-$version.lock"
    flock --nonblock 9 || { echo "boringssl: waiting for another build of it"; flock 9; }
    is_complete || build
fi
link
