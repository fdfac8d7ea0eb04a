#!/usr/bin/env bash
# Makes the Python environment with aioquic and pycurl once, and prints its folder.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
environment="${HVQ_PYTHON_PEERS:-$repository/interop/.venv}"
aioquic=1.7.2
pycurl=7.49.0

check="import aioquic, pycurl; assert aioquic.__version__ == '$aioquic'"
if ! "$environment/bin/python" -c "$check" 2> /dev/null; then
    echo "interop: installing aioquic $aioquic and pycurl $pycurl into interop/.venv" >&2
    python3 -m venv --clear "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
        "aioquic==$aioquic" "pycurl==$pycurl" >&2
fi
echo "$environment"
