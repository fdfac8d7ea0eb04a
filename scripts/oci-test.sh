#!/usr/bin/env bash
# Starts a container from an OCI image without a daemon, and fetches a file from it: scripts/oci-test.sh IMAGE.tar
#
# umoci unpacks the image and writes the configuration of a container, runc starts it. The file system of the container is read-only,
# and its user nobody in particular. Without root or these programs (scripts/deps.sh dist) nothing is tested, and a message says so.
set -euo pipefail

image=$(realpath "${1:?usage: oci-test.sh IMAGE.tar}")
for program in umoci runc; do
    if ((EUID != 0)) || ! type -P "$program" > /dev/null; then
        echo "oci-test: not tested: needs root and $program" >&2
        exit 0
    fi
done
scratch=$(mktemp -d)
name=hvq-oci-test-$$
trap 'runc --root "$scratch/state" delete --force "$name" > /dev/null 2>&1 || true; rm -rf --one-file-system "$scratch"' EXIT
fail() { echo "oci-test: $*" >&2; exit 1; }

mkdir "$scratch/layout"
tar -xf "$image" -C "$scratch/layout"
tag=$(umoci list --layout "$scratch/layout")
umoci unpack --image "$scratch/layout:$tag" "$scratch/bundle" > /dev/null || fail "the image cannot be unpacked"
echo "hello from a container" > "$scratch/bundle/rootfs/data/hello.txt"
# The arguments of the container, its network (this machine's), and no terminal.
python3 - "$scratch/bundle/config.json" <<'END'
import json, sys
path = sys.argv[1]
config = json.load(open(path))
config["process"]["terminal"] = False
config["process"]["args"] = config["process"]["args"][:1] + ["serve", "--listen", "127.0.0.1:0", "--self-signed", "localhost", "--root", "/data"]
config["root"]["readonly"] = True
config["linux"]["namespaces"] = [one for one in config["linux"]["namespaces"] if one["type"] not in ("network", "cgroup")]
config["linux"].pop("resources", None)
json.dump(config, open(path, "w"))
END
runc --root "$scratch/state" run --bundle "$scratch/bundle" "$name" > "$scratch/log" 2>&1 &
for _ in $(seq 100); do
    port=$(grep -oE '127\.0\.0\.1:[0-9]+' "$scratch/log" | head -n 1 | cut -d: -f2 || true)
    [[ -n $port ]] && break
    sleep 0.1
done
[[ -n $port ]] || fail "the container does not listen: $(cat "$scratch/log")"
user=$(runc --root "$scratch/state" ps "$name" | awk 'NR == 2 { print $1 }')
[[ $user != root && $user != 0 ]] || fail "the program runs as root"
answer=$("$scratch/bundle/rootfs/usr/bin/hvq" get --insecure "https://127.0.0.1:$port/hello.txt") || fail "the file cannot be fetched"
[[ $answer == "hello from a container" ]] || fail "another file arrived: $answer"
runc --root "$scratch/state" kill "$name" TERM
wait %1 || fail "the program does not end as it should: $(cat "$scratch/log")"
echo "oci-test: $(basename "$image") was unpacked, started as user $user, used and stopped"
