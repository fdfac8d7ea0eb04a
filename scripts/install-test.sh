#!/usr/bin/env bash
# Installs and removes each package of a folder in a minimal Debian made for it: scripts/install-test.sh [FOLDER], by default dist.
#
# Each machine is a folder that is removed afterwards. An installed program serves a file and fetches it; after the removal no
# file of the package is left. Without root or mmdebstrap (scripts/deps.sh fresh) nothing is tested, and a message says so.
set -euo pipefail

folder=$(realpath "${1:-dist}")
if ((EUID != 0)) || ! type -P mmdebstrap > /dev/null; then
    echo "install-test: not tested: needs root and mmdebstrap" >&2
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT
# mmdebstrap's helpers drop privileges.
chmod 755 "$scratch"
sources=$(find /etc/apt -maxdepth 2 \( -name '*.sources' -o -name sources.list \) 2> /dev/null | sort | head -n 1)

fail() { echo "install-test: $*" >&2; exit 1; }

# Lists the files of a machine, without what package managers write of their own.
files_of() { (cd "$1" && find usr etc opt -xdev \( -path 'usr/lib/sysimage' -prune \) -o -type f -print | sort); }

# The program, as installed on the machine $1, serves a file to itself.
serves_and_gets() {
    local machine=$1 port
    echo "hello from a package" > "$machine/srv/hello.txt"
    chroot "$machine" hvq serve --listen 127.0.0.1:0 --self-signed 127.0.0.1 --write-cert /srv/cert.pem --root /srv > "$machine/srv/log" 2>&1 &
    local server=$!
    for _ in $(seq 50); do
        port=$(grep -oE '127\.0\.0\.1:[0-9]+' "$machine/srv/log" | head -n 1 | cut -d: -f2 || true)
        [[ -n $port ]] && break
        sleep 0.1
    done
    [[ -n $port ]] || fail "the server does not listen: $(cat "$machine/srv/log")"
    local answer
    answer=$(chroot "$machine" hvq get --cacert /srv/cert.pem "https://127.0.0.1:$port/hello.txt") || fail "the file cannot be fetched"
    kill "$server"
    wait "$server" 2> /dev/null || true
    [[ $answer == "hello from a package" ]] || fail "another file arrived: $answer"
}

# check FILE INSTALL REMOVE [PACKAGES]: installs FILE with the command INSTALL, uses it, removes it with REMOVE.
check() {
    local file=$1 install=$2 remove=$3 include=${4:-} machine
    machine=$scratch/$(basename "$file")
    mmdebstrap --quiet --variant=minbase ${include:+--include="$include"} bookworm "$machine" ${sources:+"$sources"}
    files_of "$machine" > "$scratch/before"
    cp "$file" "$machine/srv/"
    chroot "$machine" bash -c "$install /srv/$(basename "$file")" > "$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
    [[ $(chroot "$machine" hvq --version) == hvq\ * ]] || fail "$file: the program does not start"
    serves_and_gets "$machine"
    chroot "$machine" bash -c "$remove" > "$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
    files_of "$machine" > "$scratch/after"
    diff "$scratch/before" "$scratch/after" > "$scratch/log" || fail "$file: its removal leaves files: $(cat "$scratch/log")"
    rm -rf --one-file-system "$machine"
    echo "install-test: $(basename "$file") was installed, used and removed"
}

for file in "$folder"/*.deb; do check "$file" 'dpkg --install' 'dpkg --purge hvq'; done
for file in "$folder"/*.rpm; do check "$file" 'rpm --install --nodeps' 'rpm --erase hvq' rpm; done
