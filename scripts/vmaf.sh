#!/usr/bin/env bash
# Prints an ffmpeg that has libvmaf, which Debian's has not: the one on the PATH if it has, or else the static one in the
# PyPI package imageio-ffmpeg (GPL; a tool, no part of hvq), installed once into the cache.
set -euo pipefail

version=0.8.1
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hvq/imageio-ffmpeg-$version"

has_vmaf() { [[ $("$1" -hide_banner -filters 2> /dev/null) == *" libvmaf "* ]]; }
packed() { compgen -G "$cache/imageio_ffmpeg/binaries/ffmpeg-*" | grep -v '\.exe$' | head -n 1; }

if command -v ffmpeg > /dev/null && has_vmaf ffmpeg; then
    command -v ffmpeg
    exit
fi
if [[ -z $(packed) ]]; then
    echo "vmaf: installing imageio-ffmpeg $version (68 MB) into $cache" >&2
    mkdir -p "$(dirname "$cache")"
    scratch=$(mktemp -d "$(dirname "$cache")/.imageio-ffmpeg.XXXXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$scratch/package" \
        "imageio-ffmpeg==$version" > "$scratch/log" 2>&1; then
        tail -n 5 "$scratch/log" >&2
        echo "vmaf: imageio-ffmpeg cannot be installed; without it there is no VMAF (python3-pip is needed)" >&2
        exit 1
    fi
    rm -rf "$cache"
    mv "$scratch/package" "$cache"
fi
program=$(packed)
if ! has_vmaf "$program"; then
    echo "vmaf: $program has no libvmaf" >&2
    exit 1
fi
echo "$program"
