#!/usr/bin/env bash
# Exchanges data with other implementations and prints a table: scripts/interop.sh [--only ROW]... [--json] [--list]
#
# noq, quiche, quinn, s2n-quic and ls-qpack are built into the runner; nginx and h2load are compiled once and cached like BoringSSL,
# which they use; quic-go with connect-ip-go, and masque-go, are Go modules below interop/; aioquic and libcurl get a Python environment of their own there;
# h3spec is a program from a Maven artifact. What only rows need that are not asked for is left out.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/hvq"
boringssl=$(readlink -f "${BORING_BSSL_PATH:-$repository/.boringssl}")
# Not looked for unless a row asks for it.
nginx=nginx
environment="$repository/interop/.venv"
quic_go="$cache/quic-go-peer"
masque_go="$cache/masque-go-peer"
# Later versions of the plugin carry a broken h3spec.
h3spec_plugin=0.0.5.Final
h3spec="$cache/h3spec-$h3spec_plugin/h3spec"
scratch=

say() { echo "interop: $*" >&2; }
fail() { echo "interop: $*" >&2; exit 1; }

# Whether row $1 is among those that the arguments of the script ask for.
wanted() {
    local row=$1 only=() argument
    shift
    while (($# > 0)); do
        argument=$1
        shift
        case $argument in
        --only) only+=("${1:-}") ;;
        --only=*) only+=("${argument#--only=}") ;;
        esac
    done
    ((${#only[@]} == 0)) || [[ " ${only[*]} " == *" $row "* ]]
}

# quic-go's client and server, from the module in interop/quic-go.
build_quic_go() {
    say "building quic-go"
    (cd "$repository/interop/quic-go" && go build -o "$quic_go" .)
}

# masque-go's client and proxy, from the module in interop/masque-go: it needs an earlier quic-go.
build_masque_go() {
    say "building masque-go"
    (cd "$repository/interop/masque-go" && go build -o "$masque_go" .)
}

# h3spec is inside the jar of a Maven plugin.
unpack_h3spec() {
    [[ -x $h3spec ]] && return
    say "fetching h3spec"
    mkdir -p "$cache"
    scratch=$(mktemp -d "$cache/.h3spec.XXXXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    local plugin=netty-incubator-h3spec-maven-plugin
    (cd "$scratch" && mvn -q dependency:copy "-Dartifact=io.netty.incubator:$plugin:$h3spec_plugin:jar" \
        "-DoutputDirectory=$scratch" && python3 -m zipfile -e "$plugin-$h3spec_plugin.jar" jar) >&2
    install -D -m 755 "$scratch/jar/h3spec/h3spec-linux-x86_64" "$h3spec"
    rm -rf "$scratch"
    trap - EXIT
}

cd "$repository"
for argument in "$@"; do
    # These run nothing.
    case $argument in
    --list | --help | -h | --version) only_asks=yes ;;
    esac
done
if [[ -z ${only_asks:-} ]]; then
    if wanted nginx "$@"; then nginx=$("$repository/scripts/nginx.sh" "$boringssl"); fi
    if wanted aioquic "$@" || wanted libcurl "$@"; then environment=$("$repository/scripts/python-peers.sh"); fi
    if wanted quic-go-server "$@" || wanted quic-go-client "$@" || wanted quic-go-client-v2 "$@" ||
        wanted connect-ip-go-client "$@" || wanted connect-ip-go-proxy "$@"; then build_quic_go; fi
    if wanted masque-go-client "$@" || wanted masque-go-proxy "$@"; then build_masque_go; fi
    if wanted h2load "$@"; then h2load=$("$repository/scripts/h2load.sh" "$boringssl"); fi
    if wanted h3spec "$@"; then unpack_h3spec; fi
    say "building hvq"
    cargo build --quiet --release -p hvq-cli
fi
target=${CARGO_TARGET_DIR:-$repository/target}
say "building the runner and the peers"
own_target=${CARGO_TARGET_DIR:-$repository/interop/target}
cargo build --quiet --release --locked --manifest-path interop/Cargo.toml
"$own_target/release/hvq-interop" --hvq "$target/release/hvq" --nginx "$nginx" --python "$environment/bin/python" \
    --quic-go "$quic_go" --masque-go "$masque_go" --h2load "${h2load:-h2load}" --h3spec "$h3spec" "$@"
