#!/usr/bin/env python3
"""Measures hvq tunnel over two emulated links in network namespaces of its own: scripts/tunnel.py HVQ [--write FILE] [...]

hvq run makes the namespaces, the devices and the links, and they go with it, whatever ends it.
"""
import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile

# Two links each: the rate in Mbit/s and the round trip in ms of both, the better first.
PAIRS = {
    "2:1": ((20, 20), (10, 40)),
    "4:1, round trips 1:8": ((20, 10), (5, 80)),
    "10:1": ((20, 20), (2, 20)),
}
WAYS = ("best link, no tunnel", "tunnel, best link", "tunnel, packets", "tunnel, streams", "tunnel, streams, rates told")
# Student's t for intervals of 95 %, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}
TOKEN = "a token that is used for measurements only"
ADDRESS = "100.64.200.1"
# The time until both ends are up, in seconds; then pings begin, and a link that is to die has as long again.
READY = 2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hvq")
    parser.add_argument("--trials", type=int, default=3, help="runs of each way, the ways in turn")
    parser.add_argument("--seconds", type=int, default=8, help="the duration of each")
    parser.add_argument("--pair", action="append", choices=PAIRS, help="links; all by default")
    parser.add_argument("--controller", action="append", help="of the flow; cubic, bbr and reno as the kernel has them by default")
    parser.add_argument("--flows", action="append", type=int, help="flows at a time; 1 and 8 by default")
    parser.add_argument("--up", action="store_true", help="measure uploads in place of downloads")
    parser.add_argument("--write", metavar="FILE", help="put the tables between the marks of this file")
    return parser.parse_args()


def controllers():
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:
        there = file.read().split()
    return [name for name in ("cubic", "bbr", "reno") if name in there]


def script(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def run(plan, pair, way, blackout=None):
    """Runs one transfer; returns its rates by tenth of a second in Mbit/s, its pings in ms, and whether it is to be trusted."""
    controller, flows = plan.case
    with tempfile.TemporaryDirectory(prefix="hvq-tunnel-") as folder:
        output = [os.path.join(folder, name) for name in ("iperf", "ping", "report", "errors")]
        host = "far" if way == WAYS[0] else ADDRESS
        ways = "" if plan.up else "--reverse"
        load = (
            f"(sleep 2; exec ping -i 0.1 -c {10 * (plan.seconds - 3)} {host} > {output[1]}) & "
            f"iperf3 --client {host} --time {plan.seconds} --interval 0.1 --parallel {flows} "
            f"--congestion {controller} {ways} --json > {output[0]}; wait"
        )
        links = [f"rate={rate}mbit,rtt={trip}ms" for rate, trip in PAIRS[pair]]
        if blackout:
            links[0] += f",blackout={blackout}s..600s"
        command = [plan.hvq, "run", "--report", output[2], "--embb", links[0]]
        if way == WAYS[0]:
            server = "exec iperf3 --server > /dev/null"
            command += ["--direct", "--server", server, "--", "sh", "-c", f"sleep 1; {load}"]
        else:
            told = [f",rate={rate}mbit,delay={trip / 2:g}ms" if way == WAYS[4] else "" for rate, trip in PAIRS[pair]]
            first = f'--path "a=$HVQ_EMBB_NEAR>$HVQ_EMBB_FAR:4433{told[0]}"'
            second = f'--path "b=$HVQ_URLLC_NEAR>$HVQ_URLLC_FAR:4433{told[1]}"'
            both = [first] if way == WAYS[1] else [first, second]
            packets = ["--no-tcp-lane"] if way == WAYS[2] else []
            inner = script(folder, "load", [load])
            connect = [
                f"sleep {READY}",
                " ".join(
                    [f"exec {plan.hvq} tunnel connect -k https://$HVQ_EMBB_FAR:4433"]
                    + both + packets + ["-- sh", inner]
                ),
            ]
            serve = [
                f"{plan.hvq} -q tunnel serve --self-signed far --route {ADDRESS} "
                f"--channel a=$HVQ_EMBB_FAR:4433{told[0]} --channel b=$HVQ_URLLC_FAR:4433{told[1]} &",
                "exec iperf3 --server > /dev/null",
            ]
            command += ["--apart", "--urllc", links[1], "--server", "exec sh " + script(folder, "serve", serve)]
            command += ["--", "sh", script(folder, "connect", connect)]
        environment = dict(os.environ, HVQ_TOKEN=TOKEN)
        with open(output[3], "wb") as errors:
            done = subprocess.run(command, env=environment, stdout=errors, stderr=errors, timeout=120, check=False)
        if done.returncode != 0:
            with open(output[3], encoding="utf-8", errors="replace") as errors:
                sys.exit(f"tunnel: {way} over {pair} failed: {errors.read()[-2000:]}")
        with open(output[0], encoding="utf-8") as file:
            intervals = json.load(file)["intervals"]
        with open(output[1], encoding="utf-8") as file:
            pings = [float(line.split("time=")[1].split()[0]) for line in file if "time=" in line]
        with open(output[2], encoding="utf-8") as file:
            trusted = json.load(file)["trusted"]
    return [step["sum"]["bits_per_second"] / 1e6 for step in intervals], pings, trusted


def interval(values):
    """The mean, and the half width of its interval of 95 %."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f"{mean:.1f}"
    spread = STUDENT.get(len(values) - 1, 2.0) * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.1f} ± {spread:.1f}"


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def rows(plan, pair):
    """The rows of all ways over one pair of links, which take turns."""
    seen = {way: [] for way in WAYS}
    for _ in range(plan.trials):
        for way in WAYS:
            print(f"tunnel: {pair}, {plan.case[0]}, {plan.case[1]} flows, {way}", file=sys.stderr)
            seen[way].append(run(plan, pair, way))
    total = sum(rate for rate, _ in PAIRS[pair])
    for way in WAYS:
        # The first second is the opening of the flow.
        rates = [statistics.fmean(steps[10:]) for steps, _, _ in seen[way]]
        pings = [ping for _, pings, _ in seen[way] for ping in pings]
        trusted = sum(trusted for _, _, trusted in seen[way])
        cells = [pair, plan.case[0], plan.case[1], way, interval(rates), f"{statistics.fmean(rates) / total:.2f}"]
        cells += [f"{quantile(pings, 0.5):.0f}", f"{quantile(pings, 0.99):.0f}", f"{trusted} of {plan.trials}"]
        yield "| " + " | ".join(map(str, cells)) + " |"


def deaths(plan):
    """The longest time without a byte after the better link of the first pair died, three seconds into the transfer."""
    pair = next(iter(PAIRS))
    for way in WAYS[2:4]:
        gaps = []
        for _ in range(plan.trials):
            print(f"tunnel: a link dies, {way}", file=sys.stderr)
            steps, _, _ = run(plan, pair, way, blackout=READY + 4)
            longest = here = 0
            for rate in steps[10:]:
                here = here + 1 if rate < 0.05 else 0
                longest = max(longest, here)
            gaps.append(longest / 10)
        yield f"| {way} | {statistics.median(gaps):.1f} | {max(gaps):.1f} |"


def tables(plan, cases):
    with open("/proc/loadavg", encoding="ascii") as file:
        load = file.read().split()[0]
    day = datetime.datetime.now(datetime.timezone.utc).date()
    way = "up" if plan.up else "down"
    yield f"{day}, {os.cpu_count()} cores, Linux {platform.release()}, load {load} before the runs; {plan.trials} runs of {plan.seconds} s each, {way}.\n"
    yield "| links | controller | flows | way | Mbit/s | of the sum | ping p50 (ms) | ping p99 (ms) | trusted |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for pair in plan.pair or PAIRS:
        for case in cases:
            plan.case = case
            yield from rows(plan, pair)
    plan.case = cases[0]
    yield "\nThe better of two links (2:1) dies:\n"
    yield "| way | longest gap (s), median | worst |\n| --- | --- | --- |"
    yield from deaths(plan)


def main():
    plan = arguments()
    plan.hvq = os.path.abspath(plan.hvq)
    cases = [(name, flows) for name in plan.controller or controllers() for flows in plan.flows or (1, 8)]
    text = "\n".join(tables(plan, cases)) + "\n"
    if not plan.write:
        print(text)
        return
    with open(plan.write, encoding="utf-8") as file:
        page = file.read()
    begin, end = "<!-- tunnel: begin -->\n", "<!-- tunnel: end -->"
    with open(plan.write, "w", encoding="utf-8") as file:
        file.write(page[: page.index(begin) + len(begin)] + text + page[page.index(end) :])


if __name__ == "__main__":
    main()
