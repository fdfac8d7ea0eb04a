#!/usr/bin/env bash
# Exchanges data with other implementations and prints a table: scripts/interop.sh [--only ROW]... [--json] [--list]
#
# noq, quiche, quinn and s2n-quic are built into the runner; nginx and h2load are compiled once and cached like BoringSSL,
# which they use; quic-go is a Go module below interop/; aioquic and libcurl get a Python environment of their own there;
# h3spec is a program from a Maven artifact. What only rows need that are not asked for is left out.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hvq"
boringssl=$(readlink -f "${BORING_BSSL_PATH:-$repository/.boringssl}")
# The crate that carries the source of nginx 1.28.3.
nginx_crate=1.28.5
nginx="$cache/nginx-$nginx_crate-$(basename "$boringssl")/nginx"
environment="$repository/interop/.venv"
quic_go="$cache/quic-go-peer"
# Later versions of the plugin carry a broken h3spec.
h3spec_plugin=0.0.5.Final
h3spec="$cache/h3spec-$h3spec_plugin/h3spec"
scratch=

say() { echo "interop: $*" >&2; }
fail() { echo "interop: $*" >&2; exit 1; }

# Whether row $1 is among those that the arguments of the script ask for.
wanted() {
    local row=$1 only=() argument
    shift
    while (($# > 0)); do
        argument=$1
        shift
        case $argument in
        --only) only+=("${1:-}") ;;
        --only=*) only+=("${argument#--only=}") ;;
        esac
    done
    ((${#only[@]} == 0)) || [[ " ${only[*]} " == *" $row "* ]]
}

# Prints the folder of the nginx-src crate. Its own build is not used: that would download libraries.
nginx_source() {
    mkdir -p "$scratch/crate/src"
    cat > "$scratch/crate/Cargo.toml" << TOML
[package]
name = "nginx-once"
version = "0.0.0"
edition = "2021"

[dependencies]
nginx-src = "=$nginx_crate"

[workspace]
TOML
    echo > "$scratch/crate/src/lib.rs"
    cargo fetch --quiet --manifest-path "$scratch/crate/Cargo.toml"
    cargo metadata --quiet --format-version 1 --manifest-path "$scratch/crate/Cargo.toml" | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(next(os.path.dirname(p["manifest_path"]) for p in packages if p["name"] == "nginx-src"))'
}

build_nginx() {
    [[ -x $nginx ]] && return
    [[ -s $boringssl/lib/libssl.a ]] || fail "there is no BoringSSL at $boringssl: run make interop, not this script"
    say "compiling nginx once into $(dirname "$nginx") (half a minute)"
    mkdir -p "$cache"
    # In the cache, so that the result gets its name in one rename.
    scratch=$(mktemp -d "$cache/.nginx.XXXXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    local source
    source=$(nginx_source)
    cp -r "$source/nginx" "$scratch/nginx"
    if ! compile_nginx > "$scratch/log" 2>&1; then
        tail -n 30 "$scratch/log" >&2
        fail "nginx could not be compiled"
    fi
    mkdir -p "$(dirname "$nginx")"
    mv "$scratch/nginx/objs/nginx" "$nginx"
    rm -rf "$scratch"
    trap - EXIT
}

compile_nginx() (
    cd "$scratch/nginx"
    chmod -R u+w .
    sh auto/configure --with-http_ssl_module --with-http_v3_module \
        --with-cc-opt="-O2 -I$boringssl/include" \
        --with-ld-opt="-L$boringssl/lib -lssl -lcrypto -lstdc++ -lpthread" &&
        make -j"$(nproc)"
)

# quic-go's client and server, from the module in interop/quic-go.
build_quic_go() {
    say "building quic-go"
    (cd "$repository/interop/quic-go" && go build -o "$quic_go" .)
}

# h3spec is inside the jar of a Maven plugin.
unpack_h3spec() {
    [[ -x $h3spec ]] && return
    say "fetching h3spec"
    mkdir -p "$cache"
    scratch=$(mktemp -d "$cache/.h3spec.XXXXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    local plugin=netty-incubator-h3spec-maven-plugin
    (cd "$scratch" && mvn -q dependency:copy "-Dartifact=io.netty.incubator:$plugin:$h3spec_plugin:jar" \
        "-DoutputDirectory=$scratch" && python3 -m zipfile -e "$plugin-$h3spec_plugin.jar" jar) >&2
    install -D -m 755 "$scratch/jar/h3spec/h3spec-linux-x86_64" "$h3spec"
    rm -rf "$scratch"
    trap - EXIT
}

cd "$repository"
for argument in "$@"; do
    # These run nothing.
    case $argument in
    --list | --help | -h | --version) only_asks=yes ;;
    esac
done
if [[ -z ${only_asks:-} ]]; then
    if wanted nginx "$@"; then build_nginx; fi
    if wanted aioquic "$@" || wanted libcurl "$@"; then environment=$("$repository/scripts/python-peers.sh"); fi
    if wanted quic-go-server "$@" || wanted quic-go-client "$@" || wanted quic-go-client-v2 "$@"; then build_quic_go; fi
    if wanted h2load "$@"; then h2load=$("$repository/scripts/h2load.sh" "$boringssl"); fi
    if wanted h3spec "$@"; then unpack_h3spec; fi
    say "building hvq"
    cargo build --quiet --release -p hvq-cli
fi
target=${CARGO_TARGET_DIR:-$repository/target}
say "building the runner and the peers"
own_target=${CARGO_TARGET_DIR:-$repository/interop/target}
cargo build --quiet --release --locked --manifest-path interop/Cargo.toml
"$own_target/release/hvq-interop" --hvq "$target/release/hvq" --nginx "$nginx" --python "$environment/bin/python" \
    --quic-go "$quic_go" --h2load "${h2load:-h2load}" --h3spec "$h3spec" "$@"
