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
# The names that programs may call: those that the header declares.
mapfile -t names < <(grep -Eo '\bhvq_[a-z0-9_]+\(' ffi/include/hvq.h | tr -d '(' | sort -u)
undefined=("${names[@]/#/-Wl,-u,}")

# One object of all that these names reach, in which every other name is local. A program may bring a BoringSSL, an OpenSSL or
# another library of Rust: neither takes calls from the other.
object=$build/hvq.o
"${CC:-cc}" -r -nostdlib -o "$object" "${undefined[@]}" -Wl,--gc-sections -Wl,--force-group-allocation "$archive"
printf '%s\n' "${names[@]}" > "$build/names"
# Rust's own library has its bitcode beside the code: several together are none.
"${OBJCOPY:-objcopy}" --keep-global-symbols="$build/names" --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd \
    "$object" "$build/small.o"
# objcopy leaves a name global that is unique in a whole process (STB_GNU_UNIQUE): such a constant gets a name of ours.
nm --defined-only -g "$build/small.o" | awk '$3 !~ /^hvq_/ { print $3, "hvq_private" $3 }' > "$build/renamed"
"${OBJCOPY:-objcopy}" --redefine-syms="$build/renamed" "$build/small.o"
"${AR:-ar}" rcsD "$build/libhvq.a" "$build/small.o"

# The whole archive as well, for programs that have no other BoringSSL and pass an SSL_CTX of this one.
"${OBJCOPY:-objcopy}" --strip-debug "$archive" "$build/libhvq-boringssl.a"

# The exported names have versions, and nothing else is visible.
# shellcheck disable=SC2086 # a list of options
"${CC:-cc}" -shared -o "$build/libhvq.so" -Wl,-soname,"libhvq.so.$abi" -Wl,--version-script="$here/hvq.map" \
    -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--no-undefined "${undefined[@]}" "$archive" $private
# Debuggers find what is said of lines in a file of its own.
"${OBJCOPY:-objcopy}" --only-keep-debug "$build/libhvq.so" "$build/libhvq.so.debug"
"${OBJCOPY:-objcopy}" --strip-unneeded "$build/libhvq.so"
(cd "$build" && mv libhvq.so.debug "libhvq.so.$version.debug" &&
    "${OBJCOPY:-objcopy}" --add-gnu-debuglink="libhvq.so.$version.debug" libhvq.so)

fill() {
    sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" -e "s|@ABI@|$abi|g" -e "s|@PRIVATE@|$private|g" \
        -e "s|@CMAKE_PRIVATE@|${private// /;}|g" "$1"
}
fill "$here/hvq.pc.in" > "$build/hvq.pc"
fill "$here/hvq-config.cmake.in" > "$build/hvq-config.cmake"
fill "$here/hvq-config-version.cmake.in" > "$build/hvq-config-version.cmake"

place=${DESTDIR:-}$prefix
install -d "$place/include" "$place/lib/pkgconfig" "$place/lib/cmake/hvq" "$place/lib/.debug"
install -m 644 ffi/include/hvq.h "$place/include/hvq.h"
install -m 644 "$build/libhvq.a" "$build/libhvq-boringssl.a" "$place/lib/"
install -m 644 "$build/libhvq.so.$version.debug" "$place/lib/.debug/"
install -m 755 "$build/libhvq.so" "$place/lib/libhvq.so.$version"
ln -sf "libhvq.so.$version" "$place/lib/libhvq.so.$abi"
ln -sf "libhvq.so.$abi" "$place/lib/libhvq.so"
install -m 644 "$build/hvq.pc" "$place/lib/pkgconfig/hvq.pc"
install -m 644 "$build"/hvq-config*.cmake "$place/lib/cmake/hvq/"
echo "install: libhvq $version is in $place"
