#!/usr/bin/env bash
# Runs the experiments with real programs, with an Nginx and an h2load that have HTTP/3: scripts/live.sh HVQ [ARGUMENT...]
#
# Without either, the experiments that need it are left out, and the report says so.
set -euo pipefail

hvq=$1
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
boringssl=$(readlink -f "${BORING_BSSL_PATH:-$here/../.boringssl}")
program=()
if nginx=$("$here/nginx.sh" "$boringssl"); then program+=(--nginx "$nginx"); else echo "live: there is no Nginx with HTTP/3" >&2; fi
if h2load=$("$here/h2load.sh" "$boringssl"); then program+=(--h2load "$h2load"); else echo "live: there is no h2load with HTTP/3" >&2; fi
exec "$hvq" lab live "${program[@]}" "$@"
