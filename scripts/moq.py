#!/usr/bin/env python3
"""Runs moq-relay and moq from their published crates over hvq, with two links bonded of which one dies: scripts/moq.py HVQ [--write FILE]

Cargo fetches the crates and compiles them as they are, with interop/moq/quinn in quinn's place: hvq-quinn under that name. hvq run makes the
namespaces, the devices and the links. A publisher sends video over the links to a relay, where a subscriber notes when each frame arrives.
Exit code 75: the crates cannot be had.
"""
import argparse
import datetime
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Rate and round trip of both links.
LINKS = ("rate=20mbit,rtt=20ms", "rate=10mbit,rtt=50ms")
FRAMES = 25  # a second
FRAME = 1000 / FRAMES  # milliseconds
PORT, WEB = 4443, 4480
# The first link dies so many seconds after the links came up.
DEATH = 8
# The policy of two links, `None` for one alone, and whether the first dies.
WAYS = {
    "one": (None, False),
    "two": ("hvc", False),
    "one, it dies": (None, True),
    "two, one dies": ("hvc", True),
    "two by min-rtt, one dies": ("min-rtt", True),
    "two by redundant, one dies": ("redundant", True),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hvq", nargs="?", help="the program, which makes the links")
    parser.add_argument("--seconds", type=int, default=20, help="the duration of each run")
    parser.add_argument("--trials", type=int, default=3, help="runs of each way, the ways in turn")
    parser.add_argument("--way", action="append", choices=WAYS, help="ways; all by default")
    parser.add_argument("--keep", metavar="FOLDER", help="keep what the programs said there")
    parser.add_argument("--write", metavar="FILE", help="put the page into this file")
    parser.add_argument("--watch", metavar="FILE", help=argparse.SUPPRESS)
    return parser.parse_args()


def build():
    """Compiles both programs; returns the folder that they are in, and their versions."""
    manifest = os.path.join(REPOSITORY, "interop", "moq", "Cargo.toml")
    base = os.environ.get("CARGO_TARGET_DIR", os.path.join(REPOSITORY, "target"))
    folder = os.path.join(base, "moq")
    fetched = subprocess.run(["cargo", "fetch", "--locked", "--manifest-path", manifest], check=False)
    if fetched.returncode != 0:
        print("moq: the crates cannot be had", file=sys.stderr)
        sys.exit(75)
    command = ["cargo", "build", "--locked", "--manifest-path", manifest, "--target-dir", folder]
    subprocess.run(command + ["-p", "moq-relay", "-p", "moq-cli"], check=True)
    listed = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", manifest],
        check=True, capture_output=True,
    )
    packages = {package["name"]: package["version"] for package in json.loads(listed.stdout)["packages"]}
    # A program without a library is no dependency to cargo metadata.
    with open(manifest, encoding="utf-8") as file:
        packages["moq-cli"] = re.search(r'moq-cli = .*"=([0-9.]+)"', file.read())[1]
    return os.path.join(folder, "debug"), packages


def watch(path):
    """Notes the time of each frame of an H.264 stream on standard input in the file, in seconds."""
    held = b""
    with open(path, "w", encoding="ascii", buffering=1) as file:
        while data := os.read(0, 1 << 20):
            now = time.monotonic()
            held += data
            at = held.find(b"\0\0\1")
            # The two bytes behind a start code say whether a picture begins there.
            while at >= 0 and at + 5 <= len(held):
                if held[at + 3] & 31 in (1, 5) and held[at + 4] & 128:
                    file.write(f"{now:.6f}\n")
                at = held.find(b"\0\0\1", at + 3)
            held = held[at:] if at >= 0 else held[-2:]


def script(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def run(plan, way):
    """The times at which frames arrived, and whether the links did what they should."""
    policy, dies = WAYS[way]
    with tempfile.TemporaryDirectory(prefix="hvq-moq-") as scratch:
        folder = plan.keep or scratch
        os.makedirs(folder, exist_ok=True)
        times, report, said = (os.path.join(folder, name) for name in ("frames", "report", "said"))
        video = (
            f"ffmpeg -hide_banner -loglevel error -re -f lavfi -i testsrc2=size=640x360:rate={FRAMES} -t {plan.seconds} "
            f"-c:v libx264 -preset ultrafast -tune zerolatency -x264-params sliced-threads=0 -g {FRAMES} -b:v 1500k "
            "-f mp4 -movflags cmaf+frag_every_frame+delay_moov+default_base_moof -"
        )
        relay = (
            f"{plan.folder}/moq-relay --server-bind 0.0.0.0:{PORT} --tls-generate localhost --auth-public '' "
            f"--web-http-listen 0.0.0.0:{WEB}"
        )
        subscribe = (
            f"{plan.folder}/moq --client-connect https://127.0.0.1:{PORT} --client-bind 127.0.0.1:0 "
            "--client-tls-disable-verify export --broadcast demo h264 --latency-max 2s"
        )
        serve = [
            f"({relay} 2>&1 | sed 's/^/relay: /' >> {said}) &",
            "sleep 1.5",
            f"{subscribe} 2>> {said} | exec {sys.executable} {os.path.abspath(__file__)} --watch {times}",
        ]
        publish = [
            "sleep 1",
            f'export HVQ_PATHS="second=$HVQ_URLLC_NEAR>$HVQ_URLLC_FAR:{PORT}"' if policy else "unset HVQ_PATHS",
            f"export HVQ_SCHEDULER={policy or 'hvc'}",
            f"{video} | {plan.folder}/moq --client-connect https://$HVQ_EMBB_FAR:{PORT} --client-bind $HVQ_EMBB_NEAR:0 "
            f"--client-tls-disable-verify import --broadcast demo fmp4 >> {said} 2>&1",
            "sleep 1",
        ]
        first = LINKS[0] + (f",blackout={DEATH}s..600s" if dies else "")
        command = [plan.hvq, "run", "--report", report, "--apart", "--embb", first, "--urllc", LINKS[1]]
        command += ["--server", "exec sh " + script(folder, "serve", serve)]
        command += ["--", "timeout", str(plan.seconds + 15), "sh", script(folder, "publish", publish)]
        with open(os.path.join(folder, "run"), "wb") as output:
            subprocess.run(command, stdout=output, stderr=output, timeout=plan.seconds + 60, check=False)
        try:
            with open(times, encoding="ascii") as file:
                arrived = [float(line) for line in file]
            with open(report, encoding="utf-8") as file:
                trusted = json.load(file)["trusted"]
        except (OSError, ValueError):
            arrived, trusted = [], False
    return arrived, trusted


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def rows(plan):
    seen = {way: [] for way in plan.way or WAYS}
    for trial in range(plan.trials):
        for way in seen:
            arrived, trusted = run(plan, way)
            gaps = [1000 * (after - before) for before, after in zip(arrived, arrived[1:])]
            # What a join in the middle brings at once is not the pace of the network.
            gaps = gaps[2 * FRAMES :]
            seen[way].append((len(arrived), gaps, trusted))
            print(f"moq: {way}, run {trial + 1}: {len(arrived)} frames, longest gap {max(gaps, default=math.nan):.0f} ms", file=sys.stderr)
    for way, runs in seen.items():
        gaps = [gap for _, gaps, _ in runs for gap in gaps]
        late = sum(gap > 2 * FRAME for gap in gaps)
        cells = [way, ", ".join(str(count) for count, _, _ in runs)]
        cells += [f"{quantile(gaps, share):.0f}" for share in (0.5, 0.99)]
        cells += [", ".join(f"{max(gaps, default=math.nan):.0f}" for _, gaps, _ in runs), late]
        cells += [f"{sum(trusted for _, _, trusted in runs)} of {len(runs)}"]
        yield "| " + " | ".join(map(str, cells)) + " |"


def page(plan, table):
    versions = plan.versions
    with open("/proc/loadavg", encoding="ascii") as file:
        load = file.read().split()[0]
    day = datetime.datetime.now(datetime.timezone.utc).date()
    return f"""# Media over QUIC over two links

`make moq` compiles moq-relay {versions["moq-relay"]} and moq-cli {versions["moq-cli"]} from their published crates, with [hvq-quinn](../guides/from-quinn.md)
in the place of quinn (`[patch.crates-io]` in `interop/moq/Cargo.toml`) and no line of theirs changed. A publisher sends {FRAMES} frames a second, a stream for each
group, over two emulated links to a relay; a subscriber beside the relay notes when each frame arrives. The first link
({LINKS[0]}) is where the connection begins, the second ({LINKS[1]}) is the path that `HVQ_PATHS` names. A link that dies does so {DEATH} s into the
run, without a word to anybody. Where nothing else is said the policy of both ends is hvc, which learns what the links are; `HVQ_SCHEDULER` names others.

Frames are {FRAME:.0f} ms apart. A gap of more than {2 * FRAME:.0f} ms means that a viewer without a buffer misses more than one frame. The first two seconds of
each run is left out.

{table}
{day}, {os.cpu_count()} cores, Linux {platform.release()}, programs in the dev profile, load {load} at the end; {plan.trials} runs of {plan.seconds} s each,
the ways in turn.
"""


def main():
    plan = arguments()
    if plan.watch:
        watch(plan.watch)
        return
    if not plan.hvq:
        sys.exit("moq: which hvq?")
    plan.hvq = os.path.abspath(plan.hvq)
    plan.keep = plan.keep and os.path.abspath(plan.keep)
    plan.folder, plan.versions = build()
    head = "| links | frames | gap p50 (ms) | gap p99 (ms) | longest gap of each run (ms) | gaps above 80 ms | trusted |\n"
    table = head + "| --- | --- | --- | --- | --- | --- | --- |\n" + "\n".join(rows(plan)) + "\n"
    text = page(plan, table)
    if plan.write:
        with open(os.path.join(REPOSITORY, plan.write), "w", encoding="utf-8") as file:
            file.write(text)
        print(f"moq: wrote {plan.write}", file=sys.stderr)
    else:
        print(text)


if __name__ == "__main__":
    main()
