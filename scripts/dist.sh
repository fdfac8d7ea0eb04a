#!/usr/bin/env bash
# Makes what people install, into the folder dist: a tarball, a .deb, an .rpm and an OCI image of the program, the crates, checksums.
#
# scripts/dist.sh [--no-crates]. The program is without video (libvpx). Each package is installed and removed again in a minimal
# Debian made for it where mmdebstrap and root are to be had, and a container is started from the image; a message says where not.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t crates < <(scripts/crates.py)
target=${CARGO_TARGET_DIR:-target}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hvq
package=target/dist/package
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

say() { echo "dist: $*"; }

# tool NAME VERSION: compiles a command of cargo once, outside of the repository, whose settings do not apply to it.
tool() {
    local place=$cache/$1-$2 scratch
    if [[ ! -x $place/bin/$1 ]]; then
        say "compiling $1 $2 once (some minutes)"
        scratch=$(mktemp -d)
        (cd "$scratch" && CARGO_TARGET_DIR="$scratch/target" cargo install --quiet --locked --root "$place" "$1@$2")
        rm -rf "$scratch"
    fi
    PATH="$place/bin:$PATH"
}

# Puts everything that a package holds beside the program.
gather() {
    rm -rf "$package"
    mkdir -p "$package/man"
    cp "$target/dist/hvq" "$package/hvq"
    "$package/hvq" manual "$package/man"
    gzip -9n "$package"/man/*.1
    "$package/hvq" completions bash > "$package/hvq.bash"
    "$package/hvq" completions zsh > "$package/_hvq"
    "$package/hvq" completions fish > "$package/hvq.fish"
}

tarball() {
    local name
    name=hvq-$version-$(uname -m)-linux
    mkdir -p "$package/tar/$name"
    cp -r "$package"/{hvq,man,hvq.bash,_hvq,hvq.fish} apps/cli/packaging/*.service README.md CHANGELOG.md LICENSE-* "$package/tar/$name/"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
        -C "$package/tar" -czf "dist/$name.tar.gz" "$name"
}

# The size of the program has a bound, so that nobody ships a debug build or all of a C++ library.
check_size() {
    local size
    size=$(stat -c %s "$target/dist/hvq")
    say "the program has $size bytes"
    ((size <= 20500000)) || { echo "dist: the program has more than 20.5 MB" >&2; exit 1; }
}

say "building (ten minutes the first time)"
cargo build --profile dist --quiet -p hvq-cli
# Cargo forgets the profile's `strip` for a package that has settings of its own, as this one has.
strip "$target/dist/hvq"
check_size
rm -rf dist/*.deb dist/*.rpm dist/*.tar.gz dist/*-oci.tar dist/*.crate dist/SHA256SUMS
mkdir -p dist
gather
tarball
scripts/oci.py "$target/dist/hvq" "dist/hvq-$version-$(uname -m)-oci.tar"
tool cargo-deb 3.8.0
cargo-deb deb --quiet --no-build --no-strip --profile dist -p hvq-cli --output dist/
tool cargo-generate-rpm 0.21.1
cargo-generate-rpm generate-rpm -p apps/cli --auto-req disabled --output dist/ > /dev/null
if [[ ${1:-} != --no-crates ]]; then
    say "packing the crates, and compiling each from its package"
    cargo publish --quiet --dry-run --allow-dirty "${crates[@]/#/--package=}"
    cp target/package/hvq*-"$version".crate dist/
fi
(cd dist && sha256sum -- *.tar.gz *-oci.tar *.deb *.rpm $(ls -- *.crate 2> /dev/null) > SHA256SUMS)
scripts/install-test.sh dist
for image in dist/*-oci.tar; do scripts/oci-test.sh "$image"; done
ls -l dist
