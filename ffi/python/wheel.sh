#!/usr/bin/env bash
# Builds a wheel with the C library inside: ffi/python/wheel.sh [FOLDER] (`make wheel`; dist/ by default).
#
# HVQ_PROFILE=dev builds faster and runs slower.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
mkdir -p "${1:-dist}"
folder=$(cd "${1:-dist}" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

"$root/ffi/install/install.sh" "$place/prefix"
mkdir "$place/source"
cp -r "$here/hvq" "$here/pyproject.toml" "$here/setup.py" "$here/README.md" "$place/source/"
cp "$(readlink -f "$place/prefix/lib/libhvq.so")" "$place/source/hvq/libhvq.so"
HVQ_VERSION=$(awk -F '"' '/^version = / { print $2; exit }' "$root/Cargo.toml")
export HVQ_VERSION
python3 -m venv "$place/venv"
"$place/venv/bin/pip" --quiet wheel --no-deps --wheel-dir "$folder" "$place/source"
echo "wheel: $(ls -t "$folder"/hvq-*.whl | head -n 1)"
