#!/usr/bin/env bash
# Builds the C library and installs it: ffi/install/install.sh PREFIX (`make install PREFIX=…`).
#
# DESTDIR is put in front of all places, for packagers. HVQ_PROFILE=dev builds faster and runs slower.
set -euo pipefail

prefix=${1:?usage: install.sh PREFIX}
[[ $prefix == /* ]] || prefix=$PWD/$prefix
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"

cargo=${CARGO:-cargo}
profile=${HVQ_PROFILE:-release}
folder=$profile
[[ $profile == dev ]] && folder=debug
target=${CARGO_TARGET_DIR:-target}
version=$(awk -F '"' '/^version = / { print $2; exit }' Cargo.toml)
abi=${version%%.*}

echo "install: building (a few minutes the first time)"
# The compiler names the libraries that the archive needs from the system.
notes=$($cargo rustc -q --locked -p hvq-ffi --lib --profile "$profile" --crate-type staticlib -- --print native-static-libs 2>&1) ||
    { echo "$notes" >&2; exit 1; }
private=$(sed -n 's/^note: native-static-libs: //p' <<< "$notes" | tail -n 1)
private=${private:--lstdc++ -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc}
# Once each, in order: those named later are needed by those named first.
private=$(tr ' ' '\n' <<< "$private" | awk 'NF && !seen[$0]++' | paste -sd ' ')
archive=$target/$folder/libhvq_ffi.a

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
# The exported names have versions, and nothing else is visible: a program may bring a BoringSSL or OpenSSL of its own.
# shellcheck disable=SC2086 # a list of options
"${CC:-cc}" -shared -o "$build/libhvq.so" -Wl,-soname,"libhvq.so.$abi" -Wl,--version-script="$here/hvq.map" \
    -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--no-undefined \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive $private

fill() {
    sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" -e "s|@ABI@|$abi|g" -e "s|@PRIVATE@|$private|g" \
        -e "s|@CMAKE_PRIVATE@|${private// /;}|g" "$1"
}
fill "$here/hvq.pc.in" > "$build/hvq.pc"
fill "$here/hvq-config.cmake.in" > "$build/hvq-config.cmake"
fill "$here/hvq-config-version.cmake.in" > "$build/hvq-config-version.cmake"

place=${DESTDIR:-}$prefix
install -d "$place/include" "$place/lib/pkgconfig" "$place/lib/cmake/hvq"
install -m 644 ffi/include/hvq.h "$place/include/hvq.h"
install -m 644 "$archive" "$place/lib/libhvq.a"
install -m 755 "$build/libhvq.so" "$place/lib/libhvq.so.$version"
ln -sf "libhvq.so.$version" "$place/lib/libhvq.so.$abi"
ln -sf "libhvq.so.$abi" "$place/lib/libhvq.so"
install -m 644 "$build/hvq.pc" "$place/lib/pkgconfig/hvq.pc"
install -m 644 "$build"/hvq-config*.cmake "$place/lib/cmake/hvq/"
echo "install: libhvq $version is in $place"
