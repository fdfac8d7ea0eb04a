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
import shutil
import statistics
import subprocess
import sys
import tempfile

import tunnel_plot
import tunnel_probe
import tunnel_wireguard

# Two links each: the rate in Mbit/s and the round trip in ms of both, the better first.
PAIRS = {
    "2:1": ((20, 20), (10, 40)),
    "4:1, round trips 1:8": ((20, 10), (5, 80)),
    "10:1": ((20, 20), (2, 20)),
}
ALONE, MPTCP, WIREGUARD = "best link, no tunnel", "kernel MPTCP, both links", "WireGuard, best link"
BEST, PACKETS, STREAMS, TOLD = "tunnel, best link", "tunnel, packets", "tunnel, streams", "tunnel, streams, rates told"
# Streams with controllers that keep queues short.
SHORT = {"tunnel, streams, vegas": "vegas", "tunnel, streams, copa-radio": "copa-radio"}
WAYS = (ALONE, MPTCP, WIREGUARD, BEST, PACKETS, STREAMS, TOLD, *SHORT)
# Student's t for intervals of 95 %, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}
TOKEN = "a token that is used for measurements only"
ADDRESS, GUARDED = "100.64.200.1", ("100.64.201.2", "100.64.201.1")
# The time until both ends are up, in seconds; then pings and calls begin, and a link that is to die has as long again.
READY = 2
SCRIPTS = os.path.dirname(os.path.abspath(__file__))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hvq")
    parser.add_argument("--trials", type=int, default=2, help="runs of each way, the ways in turn")
    parser.add_argument("--seconds", type=int, default=6, help="the duration of each")
    parser.add_argument("--pair", action="append", choices=PAIRS, help="links; all by default")
    parser.add_argument("--controller", action="append", help="of the flow; cubic and bbr as the kernel has them by default")
    parser.add_argument("--flows", action="append", type=int, help="flows at a time; 1, and 8 of the first controller, by default")
    parser.add_argument("--way", action="append", choices=WAYS, help="ways; all that this machine has by default")
    parser.add_argument("--up", action="store_true", help="measure uploads in place of downloads")
    parser.add_argument("--quick", action="store_true", help="one run of one CUBIC flow over 2:1 and 10:1: a few minutes")
    parser.add_argument("--no-cost", action="store_true", help="leave processor time out")
    parser.add_argument("--write", metavar="FILE", help="put the tables between the marks of this file, and the plots into data")
    plan = parser.parse_args()
    if plan.quick:
        plan.trials, plan.pair, plan.controller, plan.flows = 1, ["2:1", "10:1"], ["cubic"], [1]
    return plan


def there():
    """The ways that this machine has what they need for."""
    with open("/proc/sys/net/mptcp/enabled", encoding="ascii") as file:
        has_mptcp = file.read().strip() == "1" and shutil.which("mptcpize")
    missing = {MPTCP: not has_mptcp, WIREGUARD: not tunnel_wireguard.programs()}
    for way in (way for way in WAYS if missing.get(way)):
        print(f"tunnel: left out for want of its programs: {way}", file=sys.stderr)
    return [way for way in WAYS if not missing.get(way)]


def controllers():
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:
        there = file.read().split()
    return [name for name in ("cubic", "bbr") if name in there]


def script(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def load(plan, output, host, prefix=""):
    """The lines of a shell that load a way to `host` and listen to what is beside the load."""
    controller, flows = plan.case
    ways = "" if plan.up else "--reverse"
    beside = plan.seconds - 3
    return [
        f"(sleep 2; exec ping -i 0.1 -c {10 * beside} {host} > {output['ping']}) &",
        f"(sleep 2; exec python3 {SCRIPTS}/tunnel_probe.py ask {host} {beside} {output['probe']}) &",
        f"{prefix}iperf3 --client {host} --time {plan.seconds} --interval 0.1 --parallel {flows} "
        f"--congestion {controller} {ways} --json > {output['iperf']}",
        "wait",
    ]


def ends(plan, folder, pair, way, output):
    """The lines of the far end and of the near one, and further arguments of hvq run."""
    serve = [f"python3 {SCRIPTS}/tunnel_probe.py serve &"]
    listen = "exec iperf3 --server > /dev/null"
    apart = ["--apart", "--urllc", link(*PAIRS[pair][1])]
    if way == ALONE:
        return serve + [listen], ["sleep 1", *load(plan, output, "far")], ["--direct"]
    if way == MPTCP:
        limits = "ip mptcp limits set subflow 4 add_addr_accepted 4"
        far = serve + [limits, "ip mptcp endpoint add $HVQ_URLLC_FAR signal", "exec mptcpize run iperf3 --server > /dev/null"]
        return far, [limits, "sleep 1", *load(plan, output, "$HVQ_EMBB_FAR", "mptcpize run ")], apart
    if way == WIREGUARD:
        pairs = [tunnel_wireguard.keys(), tunnel_wireguard.keys()]
        guard = f"python3 {SCRIPTS}/tunnel_wireguard.py"
        name = f"wg{os.getpid() % 100_000}"
        far = f"{guard} {name}f {pairs[0][0]} {pairs[1][1]} $HVQ_EMBB_NEAR {GUARDED[0]} &"
        near = f"{guard} {name}n {pairs[1][0]} {pairs[0][1]} $HVQ_EMBB_FAR {GUARDED[1]} & guard=$!"
        return serve + [far, listen], [near, f"sleep {READY}", *load(plan, output, GUARDED[0])[:-1], "sleep 2; kill $guard"], apart
    told = [f",rate={rate}mbit,delay={trip / 2:g}ms" if way == TOLD else "" for rate, trip in PAIRS[pair]]
    first = f'--path "a=$HVQ_EMBB_NEAR>$HVQ_EMBB_FAR:4433{told[0]}"'
    second = f'--path "b=$HVQ_URLLC_NEAR>$HVQ_URLLC_FAR:4433{told[1]}"'
    options = [first] if way == BEST else [first, second]
    options += ["--no-tcp-lane"] if way == PACKETS else []
    congestion = f"--congestion {SHORT[way]}" if way in SHORT else ""
    inner = script(folder, "load", load(plan, output, ADDRESS))
    near = [f"sleep {READY}", f"exec {plan.hvq} tunnel connect {congestion} -k https://$HVQ_EMBB_FAR:4433 {' '.join(options)} -- sh {inner}"]
    far = [
        f"{plan.hvq} -q tunnel serve {congestion} --self-signed far --route {ADDRESS} "
        f"--channel a=$HVQ_EMBB_FAR:4433{told[0]} --channel b=$HVQ_URLLC_FAR:4433{told[1]} &",
    ]
    return far + serve + [listen], near, apart


def link(rate, trip):
    return f"rate={rate}mbit,rtt={trip}ms"


def run(plan, pair, way, blackout=None):
    """Runs one transfer; returns its rates by tenth of a second in Mbit/s, its pings in ms, what a call and a game heard, and whether
    it is to be trusted."""
    with tempfile.TemporaryDirectory(prefix="hvq-tunnel-") as folder:
        output = {name: os.path.join(folder, name) for name in ("iperf", "ping", "probe", "report", "errors")}
        far, near, further = ends(plan, folder, pair, way, output)
        best = link(*PAIRS[pair][0]) + (f",blackout={blackout}s..600s" if blackout else "")
        command = [plan.hvq, "run", "--report", output["report"], "--embb", best, *further]
        command += ["--server", "exec sh " + script(folder, "far", far), "--", "sh", script(folder, "near", near)]
        environment = dict(os.environ, HVQ_TOKEN=TOKEN)
        with open(output["errors"], "wb") as errors:
            done = subprocess.run(command, env=environment, stdout=errors, stderr=errors, timeout=120, check=False)
        try:
            with open(output["iperf"], encoding="utf-8") as file:
                intervals = json.load(file)["intervals"]
            with open(output["ping"], encoding="utf-8") as file:
                pings = [float(line.split("time=")[1].split()[0]) for line in file if "time=" in line]
            with open(output["probe"], encoding="utf-8") as file:
                heard = {kind: tunnel_probe.figures(there, kind, plan.seconds - 3) for kind, there in json.load(file).items()}
            with open(output["report"], encoding="utf-8") as file:
                trusted = json.load(file)["trusted"]
        except (OSError, ValueError, KeyError) as error:
            with open(output["errors"], encoding="utf-8", errors="replace") as errors:
                sys.exit(f"tunnel: {way} over {pair} failed ({done.returncode}, {error}): {errors.read()[-2000:]}")
    return [step["sum"]["bits_per_second"] / 1e6 for step in intervals], pings, heard, trusted


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


def measured(plan, pair):
    """The figures of all ways over one pair of links, which take turns."""
    # Other controllers of the tunnel are of interest for one flow of the first case.
    ways = [way for way in plan.way if way not in SHORT or plan.case == plan.first]
    seen = {way: [] for way in ways}
    for _ in range(plan.trials):
        for way in ways:
            print(f"tunnel: {pair}, {plan.case[0]}, {plan.case[1]} flows, {way}", file=sys.stderr)
            seen[way].append(run(plan, pair, way))
    total = sum(rate for rate, _ in PAIRS[pair])
    for way, runs in seen.items():
        # The first second is the opening of the flow.
        rates = [statistics.fmean(steps[10:]) for steps, _, _, _ in runs]
        pings = [ping for _, pings, _, _ in runs for ping in pings]
        figures = {"links": pair, "controller": plan.case[0], "flows": plan.case[1], "way": way, "rates": rates}
        figures |= {"share": statistics.fmean(rates) / total, "p50": quantile(pings, 0.5), "p99": quantile(pings, 0.99)}
        figures |= {"idle": PAIRS[pair][0][1], "trusted": sum(trusted for _, _, _, trusted in runs)}
        for kind in tunnel_probe.KINDS:
            heard = [heard[kind] for _, _, heard, _ in runs]
            figures[kind] = {name: worst(one[name] for one in heard) for name in ("loss", "gap", "p99")}
        yield figures


def worst(values):
    values = list(values)
    return max(values) if None not in values else math.nan


def rows(seen, trials):
    yield "| links | controller | flows | way | Mbit/s | of the sum | ping p50 (ms) | ping p99 (ms) | trusted |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in seen:
        cells = [row["links"], row["controller"], row["flows"], row["way"], interval(row["rates"]), f"{row['share']:.2f}"]
        cells += [f"{row['p50']:.0f}", f"{row['p99']:.0f}", f"{row['trusted']} of {trials}"]
        yield "| " + " | ".join(map(str, cells)) + " |"
    yield "\nA call (50 packets of 172 bytes a second) and a game (60 of 20 bytes) beside the load, towards the near end; the worst of the runs:\n"
    yield "| links | controller | flows | way | call: lost | gap (ms) | p99 (ms) | game: lost | gap (ms) | p99 (ms) |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in seen:
        cells = [row["links"], row["controller"], row["flows"], row["way"]]
        for kind in tunnel_probe.KINDS:
            heard = row[kind]
            cells += [f"{100 * heard['loss']:.1f} %", f"{heard['gap']:.0f}", f"{heard['p99']:.0f}"]
        yield "| " + " | ".join(map(str, cells)) + " |"


def deaths(plan):
    """The longest time without a byte after the better link of the first pair died, three seconds into the transfer."""
    pair = next(iter(PAIRS))
    for way in (way for way in (MPTCP, PACKETS, STREAMS) if way in plan.way):
        gaps = []
        for _ in range(plan.trials):
            print(f"tunnel: a link dies, {way}", file=sys.stderr)
            steps, _, _, _ = run(plan, pair, way, blackout=READY + 4)
            longest = here = 0
            for rate in steps[10:]:
                here = here + 1 if rate < 0.05 else 0
                longest = max(longest, here)
            gaps.append(longest / 10)
        yield f"| {way} | {statistics.median(gaps):.1f} | {max(gaps):.1f} |"


def costs(plan):
    """What each way costs on a path without a limit: a list of runs."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, os.path.join(SCRIPTS, "tunnel_cost.py"), plan.hvq, "--json", file.name, "--up"]
        command += ["--trials", str(max(plan.trials, 1)), "--seconds", "5"]
        subprocess.run(command, check=True)
        return json.load(file)


def cost_rows(seen):
    yield "\nProcessor time of one flow over a path without a limit, in seconds for each GiB (mean, least and most of the runs):\n"
    yield "| way | direction | Mbit/s | near end | far end | both | both, with iperf3 |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for way, direction in dict.fromkeys((run["way"], run["direction"]) for run in seen):
        runs = [run for run in seen if (run["way"], run["direction"]) == (way, direction)]
        each = {name: [run[name] / (run["bytes"] / 2**30) for run in runs] for name in ("near", "far", "programs")}
        both = [near + far for near, far in zip(each["near"], each["far"])]
        whole = [tunnel + programs for tunnel, programs in zip(both, each["programs"])]
        cells = [way, direction, f"{statistics.fmean(run['rate'] for run in runs):.0f}"]
        cells += [f"{statistics.fmean(values):.2f} ({min(values):.2f} to {max(values):.2f})" for values in (each["near"], each["far"], both, whole)]
        yield "| " + " | ".join(cells) + " |"


def tables(plan, cases):
    with open("/proc/loadavg", encoding="ascii") as file:
        load = file.read().split()[0]
    day = datetime.datetime.now(datetime.timezone.utc).date()
    way = "up" if plan.up else "down"
    yield f"{day}, {os.cpu_count()} cores, Linux {platform.release()}, load {load} before the runs; {plan.trials} runs of {plan.seconds} s each, {way}.\n"
    seen = []
    for pair in plan.pair or PAIRS:
        for case in cases:
            plan.case = case
            seen += measured(plan, pair)
    yield from rows(seen, plan.trials)
    plan.case = cases[0]
    yield "\nThe better of two links (2:1) dies:\n"
    yield "| way | longest gap (s), median | worst |\n| --- | --- | --- |"
    yield from deaths(plan)
    spent = [] if plan.no_cost else costs(plan)
    if spent:
        yield from cost_rows(spent)
    if plan.write:
        yield ""
        for name, title in tunnel_plot.write(os.path.join(SCRIPTS, "..", "data"), seen, spent):
            yield f"![{title}](../../data/{name})"


def main():
    plan = arguments()
    plan.hvq = os.path.abspath(plan.hvq)
    plan.way = plan.way or there()
    named = plan.controller or controllers()
    cases = [(name, flows) for name in named for flows in plan.flows or ((1, 8) if name == named[0] else (1,))]
    plan.first = cases[0]
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
