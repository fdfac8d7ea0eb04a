#!/usr/bin/env python3
"""Prints the crates for programs, one a line: those of the workspace that may be published."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def metadata(*words):
    """What cargo says about the workspace."""
    command = ["cargo", "metadata", "--format-version", "1", *words]
    return json.loads(subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout)


def published():
    """The names of the crates that may be published."""
    # A crate that may not has an empty list of registries.
    return [package["name"] for package in metadata("--no-deps")["packages"] if package["publish"] is None]


if __name__ == "__main__":
    print("\n".join(published()))
