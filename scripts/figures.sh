#!/usr/bin/env bash
# Runs a test that writes a table, and puts it into docs/results with the machine and the date:
# scripts/figures.sh NAME VARIABLE COMMAND...
#
# The command finds in VARIABLE where to write. The table goes between the lines <!-- NAME: begin --> and <!-- NAME: end --> of
# docs/results/NAME.md, also when the command fails afterwards, as a test does whose bounds do not hold.
set -euo pipefail

name=$1 variable=$2
shift 2
page=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/docs/results/$name.md
grep -q "<!-- $name: begin -->" "$page" || { echo "$page has no place for the table" >&2; exit 2; }
table=$(mktemp)
trap 'rm -f "$table" "$table.page"' EXIT

processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
load=$(cut -d ' ' -f 1 /proc/loadavg)
machine="$(date -u +%Y-%m-%d), $(nproc) cores (${processor:-unknown processor}), Linux $(uname -r), load $load before the run."

status=0
env "$variable=$table" "$@" || status=$?
[ -s "$table" ] || exit "$status"
{
    sed "/<!-- $name: begin -->/q" "$page"
    printf '%s\n\n' "$machine"
    cat "$table"
    sed -n "/<!-- $name: end -->/,\$p" "$page"
} > "$table.page"
cat "$table.page" > "$page"
exit "$status"
