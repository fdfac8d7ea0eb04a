#!/usr/bin/env bash
# Counts which rules of the specifications are cited at the line that obeys them and at a test: scripts/rules.sh [--write FILE|--check FILE] [--open]
#
# The tool is duvet, compiled once; the texts of the RFCs come from a Debian package, that of the multipath specification
# from data/specifications. Exits with 75 if the tool or a text cannot be had here, and with 1 if a quotation is not in its
# text or if less is covered than FILE says.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=0.4.3
package=doc-rfc-std-proposed
documents=(rfc8336 rfc9000 rfc9001 rfc9002 rfc9114 rfc9204 rfc9218 rfc9221)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hvq"
duvet="$cache/duvet-$version/bin/duvet"
texts="$cache/rfc"
unavailable=75

say() { echo "rules: $*"; }
give_up() { echo "rules: $*" >&2; exit "$unavailable"; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

has_texts() {
    local document
    for document in "${documents[@]}"; do
        [[ -s $texts/$document.txt ]] || return 1
    done
}

# Takes the package from the machine's own mirror, without a change to the machine's package sources.
fetch_texts() {
    command -v apt-get > /dev/null || give_up "put ${documents[*]/%/.txt} into $texts: only Debian has them as a package"
    local site release
    read -r site release < <(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' \
        | grep -v security | head -n 1) || true
    [[ -n ${release:-} ]] || give_up "no package source of Debian is set up here (apt-get update?)"
    say "fetching $package, about 200 MB, once"
    echo "deb ${site%/} ${release%-updates} non-free" > "$scratch/sources.list"
    mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial" "$texts"
    local options=(-q -o "Dir::Etc::sourcelist=$scratch/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$scratch/lists" -o "Dir::Cache=$scratch/cache" -o APT::Sandbox::User=root)
    (cd "$scratch" && apt-get "${options[@]}" update && apt-get "${options[@]}" download "$package") > "$scratch/log" 2>&1 ||
        { tail -n 5 "$scratch/log" >&2; give_up "$package cannot be fetched"; }
    dpkg-deb --fsys-tarfile "$scratch"/"$package"_*.deb > "$scratch/package.tar"
    local document
    for document in "${documents[@]}"; do
        tar -x -O -f "$scratch/package.tar" "./usr/share/doc/RFC/proposed-standard/$document.txt.gz" |
            gunzip > "$scratch/$document.txt"
        mv "$scratch/$document.txt" "$texts/$document.txt"
    done
}

install_duvet() {
    say "compiling duvet $version once (two minutes on two cores)"
    # Outside of the repository, so that .cargo/config.toml does not apply, and not optimised: it runs for a second.
    (cd "$scratch" && CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_TARGET_DIR="$scratch/target" \
        cargo install --quiet --locked --root "$cache/duvet-$version" "duvet@$version") || give_up "duvet cannot be installed"
}

has_texts || fetch_texts
[[ -x $duvet ]] || install_duvet

places=.duvet/specifications/www.rfc-editor.org/rfc
mkdir -p "$places"
for document in "${documents[@]}"; do
    cp "$texts/$document.txt" "$places/"
done
python3 scripts/rules/render.py data/specifications/draft-ietf-quic-multipath-21.md "$places/rfc10069.txt"

"$duvet" report > "$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
python3 scripts/rules/summary.py .duvet/reports/report.json "$@"
say "every rule with its places: .duvet/reports/report.html"
