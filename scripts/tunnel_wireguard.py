#!/usr/bin/env python3
"""Userspace WireGuard, set up by its control socket: scripts/tunnel_wireguard.py DEVICE PRIVATE PUBLIC ENDPOINT ADDRESS

Starts the program in this network namespace, gives its device keys, peer and address, and stays until the program ends.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

# Names of the programs, and the files that they go by. That of Debian is of 2022 and divides no packets; `go install
# golang.zx2c4.com/wireguard@latest` makes a `wireguard` that does, which comes first.
PROGRAMS = {"wireguard-go": ("wireguard", "wireguard-go"), "boringtun": ("boringtun-cli",)}


def programs():
    """The programs that are here, by name."""
    found = {name: next(filter(None, map(shutil.which, files)), None) for name, files in PROGRAMS.items()}
    return {name: program for name, program in found.items() if program}


def keys():
    """A pair of keys of X25519, as hexadecimal digits: the private and the public one."""

    def openssl(*words, data=None):
        return subprocess.run(["openssl", *words], input=data, check=True, capture_output=True).stdout

    private = openssl("genpkey", "-algorithm", "X25519", "-outform", "DER")
    public = openssl("pkey", "-inform", "DER", "-pubout", "-outform", "DER", data=private)
    return private[-32:].hex(), public[-32:].hex()


def start(program, device):
    """Starts the program with a device of this name; its control socket comes a moment later."""
    # No warnings that the kernel could do it, and no change of users, whatever the program.
    environment = dict(os.environ, WG_PROCESS_FOREGROUND="1", WG_SUDO="1")
    flags = ["--foreground"] + (["--disable-drop-privileges"] if "boringtun" in program else [])
    return [program, *flags, device], environment


def configure(device, lines):
    with socket.socket(socket.AF_UNIX) as control:
        for _ in range(50):
            try:
                control.connect(f"/var/run/wireguard/{device}.sock")
                break
            except OSError:
                time.sleep(0.1)
        control.sendall(("set=1\n" + "\n".join(lines) + "\n\n").encode())
        answer = control.recv(4096).decode()
    if "errno=0" not in answer:
        sys.exit(f"tunnel: {device}: {answer}")


def settings(private, peer, endpoint, port=51820):
    """The lines for an end with one peer, which everything goes to."""
    return [
        f"private_key={private}", f"listen_port={port}", f"public_key={peer}", "replace_allowed_ips=true",
        "allowed_ip=0.0.0.0/0", f"endpoint={endpoint}:{port}", "persistent_keepalive_interval=25",
    ]


def main():
    device, private, peer, endpoint, address = sys.argv[1:]
    program = next(iter(programs().values()))
    command, environment = start(program, device)
    running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # The socket of this device is left otherwise.
    signal.signal(signal.SIGTERM, lambda *_: running.terminate())
    configure(device, settings(private, peer, endpoint))
    for words in (("address", "add", address + "/24", "dev", device), ("link", "set", device, "mtu", "1420", "up")):
        subprocess.run(["ip", *words], check=True)
    sys.exit(running.wait())


if __name__ == "__main__":
    main()
