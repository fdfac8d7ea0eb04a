#!/usr/bin/env bash
# Fuzzes with libFuzzer: tests/fuzz/run.sh SECONDS [TARGET]... (`make fuzz`). All targets, one after the other, by default.
#
# What is new goes to tests/fuzz/found/TARGET, a finding to tests/fuzz/findings/TARGET; both are not kept in the repository until somebody
# moves a file to tests/fuzz/corpus/TARGET. With a nightly toolchain AddressSanitizer watches too; without it coverage alone
# guides, which finds every panic but no fault in BoringSSL.
set -euo pipefail

seconds=${1:-60}
shift || true
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
targets=("$@")
# Each has a corpus, which a test sees to.
((${#targets[@]})) || mapfile -t targets < <(ls tests/fuzz/corpus)
target_folder=${CARGO_TARGET_DIR:-$root/target}/fuzz
triple=$(rustc -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Ccodegen-units=1 --cfg fuzzing -Cdebug-assertions \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
toolchain=
if cargo +nightly --version > /dev/null 2>&1 && [[ -z ${HVQ_STABLE:-} ]]; then
    toolchain=+nightly
    coverage+=" -Zsanitizer=address"
else
    echo "fuzz: no nightly toolchain: without AddressSanitizer" >&2
fi
echo "fuzz: building (a few minutes the first time)" >&2
# The triple keeps the flags away from build scripts and macros.
RUSTFLAGS=$coverage cargo $toolchain build --quiet --release --target "$triple" --target-dir "$target_folder" \
    -p hvq-tests --bin hvq-fuzz --features hvq-tests/libfuzzer
program=$target_folder/$triple/release/hvq-fuzz
for target in "${targets[@]}"; do
    mkdir -p "tests/fuzz/found/$target" "tests/fuzz/findings/$target"
    echo "fuzz: $target for $seconds s" >&2
    HVQ_FUZZ_TARGET=$target "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 \
        -print_final_stats=1 -artifact_prefix="tests/fuzz/findings/$target/" "tests/fuzz/found/$target" "tests/fuzz/corpus/$target" 2>&1 |
        grep -E '^(stat::number_of_executed_units|stat::new_units|#[0-9]+.*(DONE|INITED)|==|thread|SUMMARY|artifact|.*panicked)' || true
    if [[ ${PIPESTATUS[0]} -ne 0 ]] || compgen -G "tests/fuzz/findings/$target/*" > /dev/null; then
        echo "fuzz: findings in tests/fuzz/findings/$target" >&2
        exit 1
    fi
done
