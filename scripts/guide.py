#!/usr/bin/env python3
"""Runs the commands of a guide word by word, as a newcomer does, and holds what they print to what the page shows.

    scripts/guide.py [--apart] PAGE

The blocks of a page that are marked `sh` are one session of bash that ends at the first command that fails. A block marked
`text` that comes next has lines which the commands before it print, in this order; `…` stands for any text, a space for any
spaces. The session begins in an empty folder in which `hvq` is the checkout. HVQ_BIN names the program `hvq`. With --apart it
is root of a network of its own, and nothing that it does is seen outside; where the system permits no such network, the page is
not run (exit code 75).
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 240  # seconds for a page
MARK = "\x1e"  # what separates the output of two blocks
ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
# Links between machines that the page makes need a place for their names.
APART = "mount --make-rprivate / && mount -t tmpfs tmpfs /run && ip link set lo up && exec \"$@\""


def blocks_of(page):
    """The commands of a page, each with the lines that it is to print."""
    blocks = []
    for kind, body in FENCE.findall(page):
        if kind == "sh":
            blocks.append((body, []))
        elif kind == "text":
            if not blocks or blocks[-1][1]:
                sys.exit("guide: lines that no block of commands prints:\n" + body)
            blocks[-1][1].extend(body.splitlines())
        elif kind == "":
            sys.exit("guide: a block without a kind:\n" + body)
    return blocks


def missing(wanted, printed):
    """The first of the wanted lines that was not printed after those before it."""
    rest = iter(printed.splitlines())
    for line in wanted:
        pattern = ".*".join(re.escape(part) for part in " ".join(line.split()).split("…"))
        if not any(re.fullmatch(pattern, " ".join(found.split())) for found in rest):
            return line
    return None


def play(blocks, folder):
    """Runs the blocks and returns what each printed, and whether all of them ended well."""
    script, log = folder / "session", folder / "output"
    script.write_text("".join(body + f"printf '\\n{MARK}'\n" for body, _ in blocks))
    place = folder / "place"
    place.mkdir()
    (place / "hvq").symlink_to(ROOT)
    programs = folder / "programs"
    programs.mkdir()
    (programs / "hvq").symlink_to(Path(os.environ["HVQ_BIN"]).resolve())
    environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin", LC_ALL="C.UTF-8")
    environment["XDG_RUNTIME_DIR"] = str(folder)
    if os.environ.get("HVQ_GUIDE") == "apart":
        environment["HOME"] = str(place)
    with log.open("w") as output:
        session = subprocess.Popen(["bash", "-e", str(script)], cwd=place, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=output, start_new_session=True)
        try:
            status = session.wait(LIMIT)
        except subprocess.TimeoutExpired:
            status = f"none after {LIMIT} s"
        finally:
            try:
                os.killpg(session.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    return log.read_text(errors="replace").split(MARK), status


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("guide: told to end"))
    words = sys.argv[1:]
    if words[:1] == ["--apart"] and os.environ.get("HVQ_GUIDE") != "apart":
        unshare = ["unshare", *(["--user", "--map-root-user"] if os.getuid() else [])]
        unshare += ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", APART, "sh"]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode:
            print("guide: not run: the system permits no namespaces, or has no iproute2", file=sys.stderr)
            sys.exit(75)
        os.environ["HVQ_GUIDE"] = "apart"
        os.execvp("unshare", [*unshare, sys.executable, __file__, *words])
    page = Path(words[-1])
    blocks = blocks_of(page.read_text())
    if not blocks:
        sys.exit(f"guide: {page} has no commands")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        printed, status = play(blocks, Path(folder))
    for (body, wanted), output in zip(blocks, printed):
        line = missing(wanted, output)
        if line is not None or (status != 0 and output is printed[-1]):
            problem = f"nothing like this was printed: {line}" if line is not None else f"a command failed: {status}"
            sys.exit(f"guide: {page}: {problem}\n--- the commands\n{body}--- what they printed\n{output}")
    if status != 0:
        sys.exit(f"guide: {page}: {status}")
    print(f"guide: {page.name}: {len(blocks)} blocks ran as the page says")


main()
