#!/usr/bin/env bash
# Compiles h2load with HTTP/3 once, from Debian's sources, and prints where it is: scripts/h2load.sh BORINGSSL
#
# Debian's own h2load has no HTTP/3. nghttp3, ngtcp2 and nghttp2 come from the package mirror that apt already uses, with
# lists and settings of their own, so that nothing on the system changes.
set -euo pipefail

boringssl=${1:?usage: scripts/h2load.sh BORINGSSL}
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hvq"
suite=bookworm
program="$cache/h2load-$suite-$(basename "$boringssl")/h2load"
if [[ -x $program ]]; then
    echo "$program"
    exit
fi

echo "h2load: compiling it once into $(dirname "$program") (a minute or two)" >&2
mkdir -p "$cache"
scratch=$(mktemp -d "$cache/.h2load.XXXXXXXX")
trap 'rm -rf "$scratch"' EXIT
prefix="$scratch/prefix"
jobs=$(nproc)

fetch_sources() {
    local mirror
    mirror=$(cat /etc/apt/sources.list.d/*.sources 2> /dev/null | sed -n 's/^URIs: *\([^ ]*\).*/\1/p' | head -n 1)
    [[ -n $mirror ]] || mirror=$(awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^http/) { print $i; exit } }' /etc/apt/sources.list)
    mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial" "$scratch/sources"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$scratch/src.list"
    local options=(-o "Dir::Etc::sourcelist=$scratch/src.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$scratch/lists" -o "Dir::Cache=$scratch/cache" -o APT::Sandbox::User=root)
    cd "$scratch/sources"
    apt-get "${options[@]}" update -qq
    apt-get "${options[@]}" source -qq nghttp3 ngtcp2 nghttp2
}

build_nghttp3() {
    cd "$scratch"/sources/nghttp3-*/
    cmake -B build -G Ninja -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_BUILD_TYPE=Release -DENABLE_LIB_ONLY=ON \
        -DENABLE_STATIC_LIB=ON -DENABLE_SHARED_LIB=OFF
    ninja -C build install
}

build_ngtcp2() {
    cd "$scratch"/sources/ngtcp2-*/
    sed -i 's/^add_subdirectory(\(examples\|tests\))/#&/' CMakeLists.txt
    cmake -B build -G Ninja -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_BUILD_TYPE=Release -DENABLE_OPENSSL=OFF \
        -DENABLE_GNUTLS=OFF -DENABLE_BORINGSSL=ON -DBORINGSSL_INCLUDE_DIR="$boringssl/include" \
        "-DBORINGSSL_LIBRARIES=$boringssl/lib/libssl.a;$boringssl/lib/libcrypto.a;stdc++;pthread" \
        -DENABLE_STATIC_LIB=ON -DENABLE_SHARED_LIB=OFF
    ninja -C build install
    ln -sf libngtcp2_static.a "$prefix/lib/libngtcp2.a"
    ln -sf libngtcp2_crypto_boringssl_static.a "$prefix/lib/libngtcp2_crypto_boringssl.a"
    # nghttp2 of the same release asks for 0.13.0; 0.12.1 has all that it uses.
    sed -i 's/^Version:.*/Version: 0.13.0/' "$prefix/lib/pkgconfig/libngtcp2.pc"
}

build_h2load() {
    cd "$scratch"/sources/nghttp2-*/
    autoreconf -i
    PKG_CONFIG_PATH="$prefix/lib/pkgconfig" OPENSSL_CFLAGS="-I$boringssl/include" \
        OPENSSL_LIBS="-L$boringssl/lib -lssl -lcrypto -lstdc++ -lpthread" CFLAGS=-O2 CXXFLAGS=-O2 \
        ./configure --enable-http3 --enable-app --disable-hpack-tools --disable-examples --disable-shared \
        --enable-static --without-mruby --without-neverbleed --without-libbpf --without-jemalloc --without-libxml2 \
        --without-jansson --without-systemd
    # BoringSSL's headers are C++17.
    make -j"$jobs" -C lib CXXFLAGS="-O2 -std=c++17"
    make -j"$jobs" -C third-party CXXFLAGS="-O2 -std=c++17"
    make -j"$jobs" -C src h2load CXXFLAGS="-O2 -std=c++17"
    mkdir -p "$(dirname "$program")"
    strip -o "$program.new" src/h2load
    mv "$program.new" "$program"
}

build() {
    # Each in a shell of its own, so that any failure ends it.
    (fetch_sources) && (build_nghttp3) && (build_ngtcp2) && (build_h2load)
}

if ! build > "$scratch/log" 2>&1; then
    tail -n 30 "$scratch/log" >&2
    echo "h2load: it could not be compiled" >&2
    exit 1
fi
echo "$program"
