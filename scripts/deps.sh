#!/usr/bin/env bash
# Makes sure that a target has its tools: scripts/deps.sh base|test|demo|video|live|chaos|interop|firefox|runner|bench|ffi|mutants|rules|fresh|dist|platforms|semver ...
#
# scripts/tools.txt lists the tools of each target. Missing Debian packages are installed when that needs no password;
# otherwise one message names them all.
set -euo pipefail

minimum_rust=1.91
list="$(dirname "${BASH_SOURCE[0]}")/tools.txt"
missing=()

say() { echo "deps: $*"; }
fail() { echo "deps: $*" >&2; exit 1; }
has() { PATH="$PATH:/usr/sbin:/usr/local/sbin:/sbin" type -P "$1" > /dev/null; }

has_header() { [[ -e /usr/include/$1 ]] || compgen -G "/usr/include/*/$1" > /dev/null; }

# What bindgen loads: libclang.so or libclang-14.so.14, but not the C++ library libclang-cpp.so.14 that comes with clang.
has_library() {
    local folder
    for folder in ${LIBCLANG_PATH:-} /usr/lib/llvm-*/lib /usr/lib/*-linux-gnu /usr/lib /usr/lib64 /usr/local/lib; do
        [[ -n $(compgen -G "$folder/$1[.-]*so*" | grep -v "/$1-cpp") ]] && return 0
    done
    return 1
}

# satisfied CHECK: whether the check of a line of the list (kind:name) succeeds.
satisfied() {
    local name=${1#*:}
    case $1 in
    program:*) has "$name" ;;
    header:*) has_header "$name" ;;
    library:*) has_library "$name" ;;
    python:*) has python3 && python3 -c "import $name" 2> /dev/null ;;
    *) fail "$list: '$1' is no check" ;;
    esac
}

check_rust() {
    if ! has cargo; then
        [[ -x $HOME/.cargo/bin/cargo ]] && fail "cargo is in $HOME/.cargo/bin, which is not on PATH: . \"$HOME/.cargo/env\""
        fail "cargo is missing: install a Rust toolchain of at least $minimum_rust (https://rustup.rs) and run again"
    fi
    local version
    version=$(cargo --version | awk '{ print $2 }')
    if [[ $(printf '%s\n' "$minimum_rust" "$version" | sort -V | head -n 1) != "$minimum_rust" ]]; then
        fail "cargo $version is too old: at least $minimum_rust is needed (rustup update stable)"
    fi
}

# rustfmt and clippy come with the usual profile of rustup, not with its minimal one.
check_lint_tools() {
    cargo fmt --version > /dev/null 2>&1 && cargo clippy --version > /dev/null 2>&1 && return
    has rustup || fail "cargo fmt or cargo clippy is missing: install rustfmt and clippy for this toolchain"
    say "adding rustfmt and clippy to the toolchain"
    rustup --quiet component add rustfmt clippy
}

# groups TARGET: the target and all that it includes.
groups() {
    echo "$1"
    local word target others other
    while read -r word target others; do
        [[ $word == include && $target == "$1" ]] || continue
        for other in $others; do groups "$other"; done
    done < "$list"
}

# check TARGET: adds the packages of its tools that are not there to `missing`.
check() {
    local wanted target package checks one
    grep -q "^\(include  *\)\?$1 " "$list" ||
        fail "unknown target '$1'; known: base test demo video live chaos interop firefox runner bench ffi mutants rules fresh dist platforms semver"
    wanted=" $(groups "$1" | sort -u | tr '\n' ' ') "
    while read -r target package checks; do
        [[ $target != '' && $target != '#'* && $target != include && $wanted == *" $target "* ]] || continue
        for one in $checks; do
            satisfied "$one" || missing+=("$package")
        done
    done < "$list"
    [[ $1 == fresh ]] || check_rust
    case $1 in
    test) check_lint_tools ;;
    demo)
        has chromium || has google-chrome || has firefox ||
            say "no browser found: the demo writes its report all the same, open it elsewhere"
        ;;
    esac
}

install_missing() {
    local as_root=()
    if ((EUID != 0)); then
        as_root=(sudo -n)
        if ! has sudo || ! sudo -n true 2> /dev/null; then
            fail "please install these packages and run again: ${missing[*]}"
        fi
    fi
    has apt-get || fail "please install what these Debian packages hold and run again: ${missing[*]}"
    say "installing ${missing[*]}"
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends)
    "${install[@]}" "${missing[@]}" > /dev/null 2>&1 && return
    say "refreshing the package lists first"
    "${as_root[@]}" apt-get update -qq > /dev/null || say "the package lists could not be refreshed"
    "${install[@]}" "${missing[@]}" > /dev/null || fail "apt-get could not install: ${missing[*]}"
}

(($# > 0)) || set -- base
for target in "$@"; do
    check "$target"
done
if ((${#missing[@]} > 0)); then
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    install_missing
    missing=()
    for target in "$@"; do
        check "$target"
    done
    ((${#missing[@]} == 0)) || fail "still missing after the installation: ${missing[*]}"
fi
