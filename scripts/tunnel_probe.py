#!/usr/bin/env python3
"""A call and a game beside a transfer: scripts/tunnel_probe.py serve; scripts/tunnel_probe.py ask HOST SECONDS FILE

Who asks sends packets at a steady rate, and has as many sent to him. Both ends are on one machine with one clock, so that the delay of
each packet is known. FILE gets what arrived, for each kind: a list of [number, sent, arrived], in seconds.
"""
import json
import socket
import struct
import sys
import threading
import time

PORT = 7100
# Packets a second, and their size: a call with 20 ms of G.711 in each packet of RTP, and a game.
KINDS = {"call": (50, 172), "game": (60, 20)}
HEADER = struct.Struct("!BId")


def stream(sender, kind, seconds, to=None):
    """Sends packets of a kind."""
    rate, size = KINDS[kind]
    begun = time.monotonic()
    for number in range(int(seconds * rate)):
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))
        packet = HEADER.pack(list(KINDS).index(kind), number, time.monotonic()).ljust(size, b"\0")
        try:
            sender.sendto(packet, to) if to else sender.send(packet)
        except OSError:
            pass  # A link that is gone, or a full queue: the packet is lost.


def serve():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("0.0.0.0", PORT))
    known = set()
    while True:
        packet, asker = server.recvfrom(2048)
        if packet.startswith(b"ask") and asker not in known:
            known.add(asker)
            seconds = float(packet[3:])
            server.sendto(b"yes", asker)
            for kind in KINDS:
                threading.Thread(target=stream, args=(server, kind, seconds, asker), daemon=True).start()


def ask(host, seconds, file):
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect((host, PORT))
    client.settimeout(0.2)
    arrived = {kind: [] for kind in KINDS}
    end = time.monotonic() + seconds + 2
    begun = False
    while time.monotonic() < end:
        if not begun:
            client.send(b"ask%g" % seconds)
        try:
            packet = client.recv(2048)
        except OSError:
            continue
        now = time.monotonic()
        if not begun:
            begun = True
            for kind in KINDS:
                threading.Thread(target=stream, args=(client, kind, seconds), daemon=True).start()
        if len(packet) >= HEADER.size:
            kind, number, sent = HEADER.unpack_from(packet)
            arrived[list(KINDS)[kind]].append([number, sent, now])
    with open(file, "w", encoding="utf-8") as output:
        json.dump(arrived, output)


def figures(arrived, kind, seconds):
    """Loss, the longest time without a packet, and the delay at the median and the 99th percentile, in ms."""
    rate, _ = KINDS[kind]
    count = int(seconds * rate)
    # As of a sender that is never late: this machine is busy with the rest of the experiment.
    moments = sorted(number / rate + at - sent for number, sent, at in arrived)
    gaps = [later - earlier for earlier, later in zip(moments, moments[1:])]
    delays = sorted(at - sent for _, sent, at in arrived)
    if not gaps:
        return {"loss": 1.0, "gap": seconds * 1e3, "p50": None, "p99": None}
    return {
        "loss": 1 - len({number for number, _, _ in arrived}) / count,
        "gap": max(gaps) * 1e3,
        "p50": delays[len(delays) // 2] * 1e3,
        "p99": delays[min(len(delays) - 1, int(len(delays) * 0.99))] * 1e3,
    }


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        ask(sys.argv[2], float(sys.argv[3]), sys.argv[4])
