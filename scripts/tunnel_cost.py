#!/usr/bin/env python3
"""Measures what a tunnel costs over one path without a limit: scripts/tunnel_cost.py HVQ [--trials N] [--seconds N] [--json FILE]

Two namespaces and a veth pair between them, inside of namespaces of this program's own, which go with it. Userspace WireGuard takes
part if wireguard-go or boringtun-cli is on PATH (see tunnel_wireguard.py).
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import tunnel_wireguard

NEAR, FAR, INNER = "10.9.0.1", "10.9.0.2", "100.64.200.1"
TOKEN = "a token that is used for measurements only"
TICKS = os.sysconf("SC_CLK_TCK")
# The time until both ends of a tunnel are up, in seconds.
READY = 2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hvq")
    parser.add_argument("--trials", type=int, default=3, help="runs of each way, the ways in turn")
    parser.add_argument("--seconds", type=int, default=6, help="the duration of each")
    parser.add_argument("--way", action="append", help="ways; all by default")
    parser.add_argument("--up", action="store_true", help="measure uploads, too")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def ways():
    return ["no tunnel", "hvq, streams", "hvq, packets"] + list(tunnel_wireguard.programs())


def inside(namespace, *command, **options):
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command], **options)


def ip(*command):
    subprocess.run(["ip", *command], check=True)


def world():
    """Makes both ends and the wire between them."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    for namespace in ("near", "far"):
        ip("netns", "add", namespace)
        ip("-n", namespace, "link", "set", "lo", "up")
    ip("link", "add", "veth0", "netns", "near", "type", "veth", "peer", "name", "veth0", "netns", "far")
    for namespace, address in (("near", NEAR), ("far", FAR)):
        ip("-n", namespace, "address", "add", address + "/24", "dev", "veth0")
        ip("-n", namespace, "link", "set", "veth0", "up")


def spent(process):
    """The processor time of a process so far, in seconds, without that of its children."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def wireguard(program, ends, namespaces=("near", "far"), inner=("100.64.201.1", "100.64.201.2")):
    """Brings up WireGuard between two addresses of namespaces; returns its two processes."""
    keys = [tunnel_wireguard.keys(), tunnel_wireguard.keys()]
    processes = []
    for index, namespace in enumerate(namespaces):
        device = f"wg-{namespace}"
        command, environment = tunnel_wireguard.start(program, device)
        processes.append(inside(namespace, *command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        tunnel_wireguard.configure(device, tunnel_wireguard.settings(keys[index][0], keys[1 - index][1], ends[1 - index]))
        ip("-n", namespace, "address", "add", inner[index] + "/24", "dev", device)
        ip("-n", namespace, "link", "set", device, "mtu", "1420", "up")
    return processes


def transfer(way, hvq, seconds, is_up):
    """One transfer: Mbit/s, bytes, and the processor seconds of the tunnel's ends and of iperf3's."""
    with tempfile.TemporaryDirectory(prefix="hvq-cost-") as folder:
        result, started, done = (os.path.join(folder, name) for name in ("result", "started", "done"))
        direction = "" if is_up else "--reverse"
        host = {"no tunnel": FAR}.get(way, INNER if way.startswith("hvq") else "100.64.201.2")
        load = f"touch {started}; sleep 0.5; iperf3 --client {host} --time {seconds} {direction} --json > {result}; touch {done}; exec sleep 60"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": open(os.path.join(folder, "errors"), "wb")}
        environment = dict(os.environ, HVQ_TOKEN=TOKEN)
        processes = [inside("far", "iperf3", "--server", **quiet)]
        try:
            if way == "no tunnel":
                tunnel = []
                processes.append(inside("near", "sh", "-c", load, **quiet))
            elif way.startswith("hvq"):
                serve = [hvq, "-q", "tunnel", "serve", "--self-signed", "far", "--route", INNER, "--listen", f"{FAR}:4433"]
                tunnel = [inside("far", *serve, env=environment, **quiet)]
                processes += tunnel
                time.sleep(1)
                lane = [] if "streams" in way else ["--no-tcp-lane"]
                connect = [hvq, "-q", "tunnel", "connect", "-k", f"https://{FAR}:4433", *lane, "--", "sh", "-c", load]
                tunnel.append(inside("near", *connect, env=environment, **quiet))
                processes.append(tunnel[1])
            else:
                tunnel = wireguard(tunnel_wireguard.programs()[way], (NEAR, FAR))
                processes += tunnel + [inside("near", "sh", "-c", load, **quiet)]
            waits(started, folder)
            before = [spent(process) for process in tunnel]
            waits(done, folder, seconds + 20)
            cost = [spent(process) - at for process, at in zip(tunnel, before)]
        finally:
            for process in processes:
                process.terminate()
                process.wait()
        with open(result, encoding="utf-8") as file:
            ended = json.load(file)["end"]
    received = ended["sum_received"]
    use = ended["cpu_utilization_percent"]
    programs = (use["host_total"] + use["remote_total"]) / 100 * received["seconds"]
    near, far = (cost[1], cost[0]) if way.startswith("hvq") else (cost or [0.0, 0.0])
    return {"rate": received["bits_per_second"] / 1e6, "bytes": received["bytes"], "near": near, "far": far, "programs": programs}


def waits(path, folder, limit=20.0):
    end = time.monotonic() + limit
    while not os.path.exists(path):
        if time.monotonic() > end:
            with open(os.path.join(folder, "errors"), encoding="utf-8", errors="replace") as errors:
                sys.exit(f"tunnel: no {os.path.basename(path)}: {errors.read()[-2000:]}")
        time.sleep(0.05)


def main():
    plan = arguments()
    if not plan.inside:
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv, "--inside"]
        sys.exit(subprocess.run(command, check=False).returncode)
    world()
    seen = []
    for _ in range(plan.trials):
        for way in plan.way or ways():
            for is_up in (False, True) if plan.up else (False,):
                figures = transfer(way, os.path.abspath(plan.hvq), plan.seconds, is_up)
                figures |= {"way": way, "direction": "up" if is_up else "down"}
                seen.append(figures)
                gib = figures["bytes"] / 2**30
                print(
                    f"tunnel: {way}, {figures['direction']}: {figures['rate']:.0f} Mbit/s, "
                    f"{figures['near'] / gib:.2f} + {figures['far'] / gib:.2f} s/GiB, programs {figures['programs'] / gib:.2f}",
                    file=sys.stderr,
                )
    if plan.json:
        with open(plan.json, "w", encoding="utf-8") as file:
            json.dump(seen, file, indent=1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
