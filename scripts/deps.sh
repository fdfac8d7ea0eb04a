#!/usr/bin/env bash
# Makes sure that a target has its tools: scripts/deps.sh base|test|demo|video|live|interop|runner|bench|ffi|rules ...
#
# Missing Debian packages are installed when that needs no password; otherwise one message names them all.
set -euo pipefail

minimum_rust=1.90
missing=()

say() { echo "deps: $*"; }
fail() { echo "deps: $*" >&2; exit 1; }
has() { command -v "$1" > /dev/null 2>&1; }

# need PACKAGE CHECK...: PACKAGE is missing unless CHECK succeeds.
need() {
    local package=$1
    shift
    "$@" || missing+=("$package")
}

has_compiler() { has gcc && has g++ && has make; }

# What bindgen loads: libclang.so or libclang-14.so.14, but not the C++ library libclang-cpp.so.14 that comes with clang.
has_libclang() {
    local folder
    for folder in ${LIBCLANG_PATH:-} /usr/lib/llvm-*/lib /usr/lib/*-linux-gnu /usr/lib /usr/lib64 /usr/local/lib; do
        [[ -n $(compgen -G "$folder/libclang[.-]*so*" | grep -v /libclang-cpp) ]] && return 0
    done
    return 1
}

has_nginx() { [[ -x /usr/sbin/nginx ]] || has nginx; }
has_dnsmasq() { [[ -x /usr/sbin/dnsmasq ]] || has dnsmasq; }
has_header() { [[ -e /usr/include/$1 ]] || compgen -G "/usr/include/*/$1" > /dev/null; }
has_venv() { has python3 && python3 -c 'import ensurepip, venv' 2> /dev/null; }

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

check() {
    case $1 in
    base)
        check_rust
        need build-essential has_compiler
        need cmake has cmake
        need libclang-dev has_libclang
        need pkg-config has pkg-config
        need libvpx-dev has_header vpx/vpx_encoder.h
        ;;
    test)
        check base
        check_lint_tools
        need nginx-light has_nginx
        need curl has curl
        need wget has wget
        need chromium has chromium
        ;;
    # What nginx and h2load with HTTP/3 are compiled with.
    compiled)
        need libpcre2-dev has_header pcre2.h
        need zlib1g-dev has_header zlib.h
        need ninja-build has ninja
        need autoconf has autoreconf
        need automake has automake
        need libtool has libtoolize
        need libev-dev has_header ev.h
        need libc-ares-dev has_header ares.h
        need dpkg-dev has dpkg-source
        ;;
    live)
        check base
        need python3 has python3
        check compiled
        need iproute2 has ip
        need chromium has chromium
        need mptcpize has mptcpize
        need iperf3 has iperf3
        need dnsmasq-base has_dnsmasq
        need curl has curl
        need wget has wget
        ;;
    demo)
        check base
        has chromium || has google-chrome || has firefox ||
            say "no browser found: the demo writes its report all the same, open it elsewhere"
        ;;
    video)
        check base
        need ffmpeg has ffmpeg
        need python3 has python3
        ;;
    interop)
        check base
        need python3 has python3
        need python3-venv has_venv
        need golang-go has go
        need maven has mvn
        need chromium has chromium
        check compiled
        ;;
    runner)
        check base
        need python3 has python3
        need python3-venv has_venv
        need golang-go has go
        ;;
    bench)
        check base
        need valgrind has valgrind
        ;;
    ffi)
        check base
        need libnghttp3-dev has_header nghttp3/nghttp3.h
        need libpcre2-dev has_header pcre2.h
        need zlib1g-dev has_header zlib.h
        need openssl has openssl
        need python3 has python3
        need valgrind has valgrind
        ;;
    rules)
        check_rust
        need build-essential has_compiler
        need python3 has python3
        ;;
    *) fail "unknown target '$1'; known: base test demo video live interop runner bench ffi rules" ;;
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
