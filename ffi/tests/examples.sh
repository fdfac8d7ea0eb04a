#!/usr/bin/env bash
# Installs the C library into a folder of its own, compiles the examples outside of the repository with pkg-config alone,
# runs them under AddressSanitizer and valgrind, and checks what they print (`make ffi-test`).
#
# HVQ_PROFILE is the profile of the build (dev). HVQ_BIN names a `hvq` that is built already, NGINX an nginx with HTTP/3, which
# is compiled if it is not set (scripts/nginx.sh). HVQ_QUICK leaves valgrind out.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export HVQ_PROFILE=${HVQ_PROFILE:-dev}
cargo=${CARGO:-cargo}
place=$(mktemp -d)
pids=()

cleanup() {
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2> /dev/null || true; done
    wait 2> /dev/null || true
    rm -rf "$place"
}
trap cleanup EXIT

say() { echo "ffi-test: $*"; }
fail() { echo "ffi-test: FAILED: $*" >&2; exit 1; }

# run NAME PATTERN... -- COMMAND: the command succeeds, in a minute, and prints a line for each pattern.
run() {
    local name=$1 patterns=() log=$place/log
    shift
    while [[ $1 != -- ]]; do
        patterns+=("$1")
        shift
    done
    shift
    timeout "${LIMIT:-90}" "$@" > "$log" 2>&1 || { cat "$log" >&2; fail "$name"; }
    local pattern
    for pattern in "${patterns[@]}"; do
        grep -Eq -- "$pattern" "$log" || { cat "$log" >&2; fail "$name: no line matches '$pattern'"; }
    done
    say "$name: ok"
}

# serve LOG COMMAND: starts a server and waits until it listens.
serve() {
    local log=$1 count
    shift
    "$@" > "$log" 2>&1 &
    pids+=($!)
    for count in {1..100}; do
        if [[ -s $log ]] || ! kill -0 $! 2> /dev/null; then break; fi
        sleep 0.1
    done
    kill -0 $! 2> /dev/null || { cat "$log" >&2; fail "$1 does not start"; }
}

install_library() {
    "$root/ffi/install/install.sh" "$place/prefix"
    export PKG_CONFIG_PATH=$place/prefix/lib/pkgconfig LD_LIBRARY_PATH=$place/prefix/lib
    # The library exports what the header declares and nothing else, each under the version that it came with.
    local declared exported
    declared=$(grep -Eo '^[a-z][a-z0-9_ *]* \*?hvq_[a-z0-9_]+\(' "$place/prefix/include/hvq.h" | grep -Eo 'hvq_[a-z0-9_]+\($' | tr -d '(' |
        sed 's/$/@@HVQ_0.1/' | sort)
    exported=$(nm -D --defined-only "$place/prefix/lib/libhvq.so" | awk '$2 != "A" { print $3 }' | sort)
    [[ -n $declared && $declared == "$exported" ]] ||
        fail "header and library differ: $(diff <(echo "$declared") <(echo "$exported"))"
    say "$(wc -l <<< "$exported") functions are exported, as the header has them"
    cp -r "$root/ffi/examples" "$root/ffi/fuzz" "$place/"
    cd "$place"
    # nginx reads as another user.
    chmod 755 .
    openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2> /dev/null
}

# compile FOLDER OPTIONS: all programs, as C11; they are valid C++17, too.
compile() {
    local folder=$1 name libraries strict=(-Wall -Wextra -Wpedantic -Werror)
    shift
    mkdir -p "$folder"
    for name in echo requests scheduler browser hvq-curl; do
        libraries=(-pthread)
        [[ $name == hvq-curl ]] && libraries=(-lnghttp3)
        # shellcheck disable=SC2046 # options are words
        gcc -std=c11 "${strict[@]}" -g -O1 "$@" -o "$folder/$name" "examples/$name.c" $(pkg-config --cflags --libs hvq) \
            "${libraries[@]}"
        # shellcheck disable=SC2046 # as above
        g++ -x c++ -std=c++17 "${strict[@]}" -fsyntax-only $(pkg-config --cflags hvq) "examples/$name.c"
    done
}

# Plays all examples of a folder, with a command in front, on ports from BASE on.
play() {
    local folder=$1 base=$2
    shift 2
    local echo=127.0.0.1:$base second=127.0.0.1:$((base + 1)) http=127.0.0.1:$((base + 2)) http2=127.0.0.1:$((base + 3))
    run "$folder scheduler" '^2000000 bytes after' '^data frames: [1-9][0-9]* on path 0, 0 on path 1$' -- \
        "$@" "$folder/scheduler" cert.pem key.pem
    serve echo.log "$folder/echo" server cert.pem key.pem "$echo" "$second"
    run "$folder echo" '^echoed 1000000 bytes over 2 paths, both used: yes$' -- \
        "$@" "$folder/echo" client cert.pem 127.0.0.1:0 "$echo" 127.0.0.2:0 "$second"
    run "$folder requests" '^0$' '^[1-9][0-9]*$' -- \
        "$@" "$folder/requests" cert.pem min-rtt 500 127.0.0.1:0 "$echo" 127.0.0.2:0 "$second"
    run "$folder browser" '^20 tabs: 5 complete, 15 cancelled; the certificate is the expected one$' -- \
        "$@" "$folder/browser" cert.pem "$echo" "$second"
    kill "${pids[-1]}"
    wait "${pids[-1]}" || { cat echo.log >&2; fail "$folder echo server"; }
    say "$folder echo server: ok"
    serve serve.log "$HVQ_BIN" serve --listen "$http" --listen "$http2" --cert cert.pem --key key.pem --root www
    run "$folder hvq-curl with hvq serve, two paths" '/big: status 200, 1000000 bytes' \
        '/small: status 200, 1000 bytes, urgency 0, number 1 to be' '^path 0: [1-9]' '^path 1: [1-9]' -- \
        "$@" "$folder/hvq-curl" --ca cert.pem -v --path "127.0.0.2:0,$http2" -u 5 "https://localhost:$((base + 2))/big" \
        -u 0 "https://localhost:$((base + 2))/small"
    fetch_from_nginx "$folder" "$((base + 4))" "$@"
}

fetch_from_nginx() {
    local folder=$1 port=$2
    shift 2
    if [[ -z $NGINX ]]; then
        say "$folder hvq-curl with nginx: SKIPPED, there is none"
        return
    fi
    mkdir -p nginx/logs
    cat > nginx/nginx.conf <<CONF
daemon off; worker_processes 1; error_log nginx.log; pid nginx.pid;
events { worker_connections 64; }
http {
  log_format priorities '\$server_protocol \$http_priority \$request_uri';
  access_log access.log priorities;
  client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server {
    listen 127.0.0.1:$port quic; server_name localhost; root $place/www;
    ssl_certificate $place/cert.pem; ssl_certificate_key $place/key.pem;
  }
}
CONF
    rm -f nginx/access.log
    "$NGINX" -p "$place/nginx" -c "$place/nginx/nginx.conf" > nginx.out 2>&1 &
    pids+=($!)
    sleep 1
    run "$folder hvq-curl with nginx" '/big: status 200, 1000000 bytes, urgency 2' '/small: status 200, 1000 bytes' -- \
        "$@" "$folder/hvq-curl" --ca cert.pem -u 2 "https://localhost:$port/big" "https://localhost:$port/small"
    grep -q '^HTTP/3.0 u=2 /big$' nginx/access.log || fail "nginx saw no priority: $(cat nginx/access.log)"
    kill "${pids[-1]}"
}

install_library
mkdir -p www
head -c 1000000 /dev/zero > www/big
head -c 1000 /dev/zero > www/small
if [[ -z ${HVQ_BIN:-} ]]; then
    (cd "$root" && $cargo build -q -p hvq-cli --profile "$HVQ_PROFILE")
    target=${CARGO_TARGET_DIR:-$root/target}
    HVQ_BIN=$target/$([[ $HVQ_PROFILE == dev ]] && echo debug || echo "$HVQ_PROFILE")/hvq
fi
# NGINX= leaves it out, as does a machine on which it cannot be compiled.
NGINX=${NGINX-$("$root/scripts/nginx.sh" "$(readlink -f "${BORING_BSSL_PATH:-$root/.boringssl}")" || true)}

compile sanitized -fsanitize=address,undefined -fno-sanitize-recover
play sanitized 17400
if [[ -z ${HVQ_QUICK:-} ]]; then
    compile plain
    gcc -shared -fPIC -O1 -Wall -Wextra -Werror -o defined.so "$root/ffi/tests/defined.c"
    # An optimiser may look at the value of an option before it looks whether there is one, and memcheck takes that amiss.
    values=yes
    [[ $HVQ_PROFILE == dev ]] || values=no
    LIMIT=240 play plain 17420 env LD_PRELOAD="$place/defined.so" valgrind -q --error-exitcode=9 --leak-check=full \
        --undef-value-errors=$values --show-leak-kinds=definite --errors-for-leak-kinds=definite
fi

# Without the shared library, as a program that brings its own BoringSSL is linked.
# shellcheck disable=SC2046 # options are words
gcc -std=c11 -o static examples/scheduler.c $(pkg-config --static --cflags --libs hvq | sed 's/-lhvq /-l:libhvq.a /')
run "linked statically" '^2000000 bytes after' -- env -u LD_LIBRARY_PATH ./static cert.pem key.pem

# The archive has no other global name, so it can be linked with OpenSSL, in front of it and behind it.
others=$(nm --defined-only -g "$place/prefix/lib/libhvq.a" | awk 'NF == 3 && $3 !~ /^hvq_/ { print $3 }')
[[ -z $others ]] || fail "the archive has other global names: $(head -n 5 <<< "$others")"
openssl_says=('^OpenSSL says: OpenSSL [3-9]' '^a handshake of OpenSSL is complete$' '^libcurl has OpenSSL/[3-9]')
beside=$(pkg-config --libs libcurl openssl)
shared=$(pkg-config --libs hvq)
inside=$(pkg-config --static --libs hvq | sed 's/-lhvq /-l:libhvq.a /')
number=0
for libraries in "$shared $beside" "$beside $shared" "$inside $beside" "$beside $inside"; do
    number=$((number + 1))
    # shellcheck disable=SC2046,SC2086 # options are words
    gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -I. -o with_openssl "$root/ffi/tests/with_openssl.c" $(pkg-config --cflags hvq libcurl openssl) \
        $libraries
    run "with OpenSSL and libcurl, $number of 4" "${openssl_says[@]}" -- ./with_openssl cert.pem key.pem
done

# The archive with BoringSSL for everybody, for a program that passes a context of its own.
boringssl=$(readlink -f "${BORING_BSSL_PATH:-$root/.boringssl}")
inside=$(pkg-config --static --libs hvq | sed 's/-lhvq /-l:libhvq-boringssl.a /')
# shellcheck disable=SC2046,SC2086 # options are words
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -isystem "$boringssl/include" -o own_boringssl "$root/ffi/tests/own_boringssl.c" \
    $(pkg-config --cflags hvq) $inside
run "with a context of the program's BoringSSL" '^BoringSSL, and the context is taken: yes$' -- ./own_boringssl

# shellcheck disable=SC2046 # as above
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -g -O1 -fsanitize=address,undefined -fno-sanitize-recover -o calls \
    fuzz/calls.c $(pkg-config --cflags --libs hvq)
run "random calls: corpus" '^8 sequences' -- ./calls cert.pem key.pem fuzz/corpus/*
run "random calls: seeds" '^60 sequences' -- ./calls cert.pem key.pem seeds 1 60

# The page for newcomers, which installs the library anew and has a loopback network like everybody's.
run "the guide" '^guide: c-browser.md: 5 blocks ran' -- env HVQ_BIN="$HVQ_BIN" "$root/scripts/guide.py" "$root/docs/guides/c-browser.md"

mkdir -p cmake
printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(one C)' 'find_package(hvq 0 REQUIRED CONFIG)' \
    'add_executable(one ../examples/scheduler.c)' 'target_link_libraries(one hvq::hvq)' \
    'add_executable(two ../examples/scheduler.c)' 'target_link_libraries(two hvq::static)' > cmake/CMakeLists.txt
cmake -S cmake -B cmake/build -DCMAKE_PREFIX_PATH="$place/prefix" > cmake.log && cmake --build cmake/build >> cmake.log ||
    { cat cmake.log >&2; fail "CMake"; }
run "built with CMake" '^2000000 bytes after' -- cmake/build/one cert.pem key.pem
run "built with CMake, statically" '^2000000 bytes after' -- env -u LD_LIBRARY_PATH cmake/build/two cert.pem key.pem

serve python.log "$HVQ_BIN" serve --listen 127.0.0.1:17440 --listen 127.0.0.1:17441 --cert cert.pem --key key.pem --root www
# As somebody who installs the wheel: the library inside is found, whatever the system has.
"$root/ffi/python/wheel.sh" wheels
python3 -m venv venv
venv/bin/pip --quiet install wheels/hvq-*.whl mypy
run "annotations of the Python package" '^Success' -- venv/bin/mypy --strict -p hvq
run "Python" '^OK' -- env -u LD_LIBRARY_PATH HVQ_CA="$place/cert.pem" HVQ_KEY="$place/key.pem" \
    HVQ_SERVERS=127.0.0.1:17440,127.0.0.1:17441 venv/bin/python -W error::ResourceWarning -m unittest discover -s "$root/ffi/python/tests"
say "all passed"
