#!/usr/bin/env bash
# Runs commands on a machine that has nothing: scripts/fresh.sh [COMMAND...], by default make demo, make test and .ci/run.
#
# The machine is a minimal Debian in a folder, made for the run and removed after it, with a clone of what is committed here
# and the Rust toolchain of the caller (read-only; RUSTUP_HOME, CARGO_HOME). Nothing else is there: no package of Debian
# beyond the essential ones, git and make, no cache of cargo's or ours. Needs root, for mounts in a namespace of their own
# that ends with the commands. FRESH_RELEASE names another release of Debian than bookworm; FRESH_KEEP=1 keeps the folder.
set -euo pipefail

script=$(realpath "${BASH_SOURCE[0]}")
release=${FRESH_RELEASE:-bookworm}
fail() { echo "fresh: $*" >&2; exit 1; }

# What says how this machine reaches registries.
settings=$(env | grep -oE '^(PIP_[A-Z_]+|GO(PROXY|FLAGS|SUMDB)|CARGO_HTTP_[A-Z_]+|SSL_CERT_[A-Z]+|https?_proxy|HTTPS?_PROXY|NO_PROXY)=.*' || true)

# Inside the mount namespace: the folder becomes the root of it (not by chroot, in which no user namespace can be made), and
# the commands run in order.
if [[ ${1:-} == --inside ]]; then
    root=$2
    shift 2
    mount --bind "$root" "$root"
    mount --rbind /proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount --bind "${RUSTUP_HOME:-$HOME/.rustup}" "$root/opt/rustup"
    mount -o remount,bind,ro "$root/opt/rustup"
    mapfile -t environment < <(printf '%s' "${settings:+$settings$'\n'}")
    environment+=(HOME=/opt/home TERM=dumb CI="${CI:-}" RUSTUP_HOME=/opt/rustup CARGO_HOME=/opt/cargo
        PATH=/opt/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
    cd "$root"
    pivot_root . mnt
    cd /src/hvq
    umount --lazy /mnt
    for command in "$@"; do
        start=$SECONDS
        echo "fresh: $command"
        env --ignore-environment "${environment[@]}" bash -c "$command" ||
            fail "'$command' failed with status $? after $((SECONDS - start)) s"
        echo "fresh: '$command' passed in $((SECONDS - start)) s"
    done
    exit
fi

((EUID == 0)) || fail "needs root, for mounts and a chroot"
(($# > 0)) || set -- 'make demo' 'make test' 'bash .ci/run'
repository=$(cd "$(dirname "$script")/.." && pwd)
[[ -z $(git -C "$repository" status --porcelain) ]] || echo "fresh: what is not committed is not in the clone"
toolchain=${RUSTUP_HOME:-$HOME/.rustup}
[[ -d $toolchain/toolchains ]] || fail "no toolchain of rustup in $toolchain (set RUSTUP_HOME)"

root=$(mktemp -d)
chmod 755 "$root"
[[ -n ${FRESH_KEEP:-} ]] && echo "fresh: the machine stays in $root" || trap 'rm -rf --one-file-system "$root"' EXIT
sources=$(find /etc/apt -maxdepth 2 \( -name '*.sources' -o -name sources.list \) 2> /dev/null | sort | head -n 1)
echo "fresh: making a minimal Debian $release"
mmdebstrap --quiet --variant=minbase --include=ca-certificates,git,make "$release" "$root" ${sources:+"$sources"}
mkdir -p "$root/opt/rustup" "$root/opt/cargo/bin" "$root/opt/home" "$root/src"
cp -a "${CARGO_HOME:-$HOME/.cargo}/bin/." "$root/opt/cargo/bin/"
# How this machine reaches registries: names, certificates, settings of apt and cargo.
for file in /etc/resolv.conf /etc/hosts; do cp -L "$file" "$root$file"; done
cp -aL /etc/ssl/certs/. "$root/etc/ssl/certs/" 2> /dev/null || true
for file in /etc/pip.conf "$HOME/.npmrc"; do [[ ! -e $file ]] || cp "$file" "$root${file/#$HOME//opt/home}"; done
[[ ! -d /etc/apt/apt.conf.d ]] || cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
[[ ! -e ${CARGO_HOME:-$HOME/.cargo}/config.toml ]] || cp "${CARGO_HOME:-$HOME/.cargo}/config.toml" "$root/opt/cargo/"
git clone --quiet --no-local "$repository" "$root/src/hvq"
unshare --mount --propagation private bash "$script" --inside "$root" "$@"
