"""Renders the source of the multipath specification as plain text, in the form of an RFC.

Usage: render.py SOURCE.md RFC.txt. Only what a citation needs: numbered sections, paragraphs and resolved references.
"""

import re
import sys
import textwrap

HEADING = re.compile(r"^(#+) (.*?)(?: *\{#([\w-]+)\})?$")
ANCHOR = re.compile(r"^\{: *#([\w-]+)")


def number(lines):
    """Gives each heading its number; returns the numbers by anchor, and by line."""
    counters, by_anchor, by_line = [], {}, {}
    for index, line in enumerate(lines):
        heading = HEADING.match(line)
        if not heading:
            continue
        depth = len(heading[1])
        counters = counters[:depth] + [0] * (depth - len(counters))
        counters[-1] += 1
        by_line[index] = ".".join(map(str, counters))
        if heading[3]:
            by_anchor[heading[3]] = by_line[index]
    return by_anchor, by_line


def resolve(text, sections):
    """Replaces kramdown's references and marks with what a reader of the RFC sees."""

    def reference(match):
        inner = match[1].lstrip("!?")
        in_other = re.match(r"(.+) of ([\w-]+)$", inner)
        if in_other:
            return f"{in_other[1]} of [{in_other[2]}]"
        if inner in sections:
            return f"Section {sections[inner]}"
        return f"[{inner}]"

    text = re.sub(r"\{\{([^}]+)\}\}", reference, text)
    text = re.sub(r"<sup>(\w+)</sup>", r"^\1", text)
    return re.sub(r"\\([\[\]])", r"\1", text)


def render(source):
    """Returns the text of the specification from its introduction on."""
    lines = source.split("--- middle", 1)[1].split("--- back", 1)[0].splitlines()
    sections, by_line = number(lines)
    out, paragraph, verbatim = [], [], False

    def flush():
        if paragraph:
            text = resolve(" ".join(part.strip() for part in paragraph), sections)
            out.extend("   " + line for line in textwrap.wrap(text, 66, break_on_hyphens=False))
            out.append("")
            paragraph.clear()

    for index, line in enumerate(lines):
        if line.startswith("~~~"):
            flush()
            verbatim = not verbatim
            out.append("")
        elif verbatim:
            out.append("   " + line)
        elif index in by_line:
            flush()
            out += ["", f"{by_line[index]}.  {HEADING.match(line)[2]}", ""]
        elif not line.strip() or ANCHOR.match(line):
            flush()
        else:
            # A definition or an item of a list starts a paragraph of its own.
            if line.startswith((":", "- ")):
                flush()
            paragraph.append(line.removeprefix(": "))
    flush()
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source:
        text = render(source.read())
    with open(sys.argv[2], "w", encoding="utf-8") as target:
        target.write(text)
