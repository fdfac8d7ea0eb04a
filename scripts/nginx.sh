#!/usr/bin/env bash
# Compiles nginx with HTTP/2 and HTTP/3 once, and prints where it is: scripts/nginx.sh BORINGSSL
#
# The source of nginx 1.28.3 comes from a crate that carries it.
set -euo pipefail

boringssl=${1:?usage: scripts/nginx.sh BORINGSSL}
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hvq"
crate=1.28.5
program="$cache/nginx-$crate-h2-$(basename "$boringssl")/nginx"
if [[ -x $program ]]; then
    echo "$program"
    exit
fi
[[ -s $boringssl/lib/libssl.a ]] || { echo "nginx: there is no BoringSSL at $boringssl: scripts/boringssl.sh" >&2; exit 1; }

echo "nginx: compiling it once into $(dirname "$program") (half a minute)" >&2
mkdir -p "$cache"
# In the cache, so that the result gets its name in one rename.
scratch=$(mktemp -d "$cache/.nginx.XXXXXXXX")
trap 'rm -rf "$scratch"' EXIT

# Prints the folder of the nginx-src crate. Its own build is not used: that would download libraries.
source_folder() {
    mkdir -p "$scratch/crate/src"
    cat > "$scratch/crate/Cargo.toml" << TOML
[package]
name = "nginx-once"
version = "0.0.0"
edition = "2021"

[dependencies]
nginx-src = "=$crate"

[workspace]
TOML
    echo > "$scratch/crate/src/lib.rs"
    cargo fetch --quiet --manifest-path "$scratch/crate/Cargo.toml"
    cargo metadata --quiet --format-version 1 --manifest-path "$scratch/crate/Cargo.toml" | python3 -c '
import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(next(os.path.dirname(p["manifest_path"]) for p in packages if p["name"] == "nginx-src"))'
}

compile() (
    cd "$scratch/nginx"
    chmod -R u+w .
    sh auto/configure --with-http_ssl_module --with-http_v2_module --with-http_v3_module \
        --with-cc-opt="-O2 -I$boringssl/include" \
        --with-ld-opt="-L$boringssl/lib -lssl -lcrypto -lstdc++ -lpthread" &&
        make -j"$(nproc)"
)

source=$(source_folder)
cp -r "$source/nginx" "$scratch/nginx"
if ! compile > "$scratch/log" 2>&1; then
    tail -n 30 "$scratch/log" >&2
    echo "nginx: it could not be compiled" >&2
    exit 1
fi
mkdir -p "$(dirname "$program")"
mv "$scratch/nginx/objs/nginx" "$program"
echo "$program"
