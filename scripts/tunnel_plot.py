"""Drawings of what scripts/tunnel.py measures, one for each question."""
import html
import math
import os
import statistics

STYLE = """:root { --panel: #ffffff; --ink: #1c2430; --faint: #d5dae1; --line: #2468b0; --goal: #c2410c }
@media (prefers-color-scheme: dark) { :root { --panel: #14181d; --ink: #e4e8ee; --faint: #3a424d; --line: #6aa9ee; --goal: #fb923c } }
text { font: 11px sans-serif; fill: var(--ink) } .name { font-weight: 600 }
.grid { stroke: var(--faint) } .goal { stroke: var(--goal); stroke-width: 2 }
.bar { fill: var(--line) } .other { fill: var(--faint) } .ground { fill: var(--panel) }"""
WIDTH, LEFT, ROW, TOP = 900, 230, 16, 24


def bars(title, groups, goal=None, scale=None):
    """A drawing of rows of bars: `groups` is a list of a name and rows, each a name, a value and whether it is ours. `goal` is a
    function of a group's name. Values beyond `scale` end there, with their number beside them."""
    values = [value for _, rows in groups for _, value, _ in rows if not math.isnan(value)]
    most = scale or max(values, default=1) * 1.05 or 1
    place = lambda value: LEFT + (WIDTH - LEFT - 60) * min(value, most) / most
    height = TOP + sum(ROW * (len(rows) + 1) + 8 for _, rows in groups) + 24
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}">'
    yield f"<style>\n{STYLE}\n</style>"
    yield f'<rect class="ground" width="{WIDTH}" height="{height}"/>'
    step = 10 ** math.floor(math.log10(most / 2))
    step *= next(factor for factor in (1, 2, 5, 10) if most / (step * factor) <= 6)
    for index in range(int(most / step) + 1):
        x = place(index * step)
        yield f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{height - 24}"/>'
        yield f'<text x="{x:.1f}" y="{TOP - 6}" text-anchor="middle">{index * step:g}</text>'
    y = TOP
    for name, rows in groups:
        yield f'<text class="name" x="8" y="{y + 12}">{html.escape(name)}</text>'
        begun = y + ROW
        for label, value, is_ours in rows:
            y += ROW
            yield f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{html.escape(label)}</text>'
            if not math.isnan(value):
                kind = "bar" if is_ours else "other"
                yield f'<rect class="{kind}" x="{LEFT}" y="{y + 3}" width="{place(value) - LEFT:.1f}" height="{ROW - 5}"/>'
                yield f'<text x="{place(value) + 4:.1f}" y="{y + 12}">{value:.3g}</text>'
        if goal:
            x = place(goal(name))
            yield f'<line class="goal" x1="{x:.1f}" y1="{begun + 1}" x2="{x:.1f}" y2="{y + ROW}"/>'
        y += ROW + 8
    yield f'<text x="{LEFT}" y="{height - 8}">{html.escape(title)}</text>'
    yield "</svg>"


def groups(seen, value):
    """The rows of a measurement by links, controller and flows."""
    found = {}
    for row in seen:
        flows = "one flow" if row["flows"] == 1 else f"{row['flows']} flows"
        name = f"{row['links']}, {row['controller']}, {flows}"
        found.setdefault(name, []).append((row["way"], value(row), row["way"].startswith("tunnel")))
    return list(found.items())


def cost_groups(spent):
    found = {}
    for way, direction in dict.fromkeys((run["way"], run["direction"]) for run in spent):
        runs = [run for run in spent if (run["way"], run["direction"]) == (way, direction) and way != "no tunnel"]
        values = [(run["near"] + run["far"]) / (run["bytes"] / 2**30) for run in runs]
        if values:
            found.setdefault(direction, []).append((way, statistics.fmean(values), way.startswith("hvq")))
    return list(found.items())


def write(folder, seen, spent):
    """Writes all drawings to `folder`; yields their names and titles."""
    idle = {name: rows for name, rows in groups(seen, lambda row: row["idle"] + 5)}
    delay = lambda name: idle[name][0][1]
    shares = lambda name: 0.9 if name.endswith("one flow") else 0.95
    drawings = [
        ("rate", "rate, as a share of the sum of both links; line: goal", groups(seen, lambda row: row["share"]), shares, 1.1),
        ("ping", "99th percentile of pings beside the load in ms; line: goal", groups(seen, lambda row: row["p99"]), delay, 300),
        ("call", "longest time without a packet of a call in ms", groups(seen, lambda row: row["call"]["gap"]), None, 500),
        ("game", "longest time without a packet of a game in ms", groups(seen, lambda row: row["game"]["gap"]), None, 500),
        ("cost", "processor time of both ends of a tunnel, in s/GiB", cost_groups(spent), None, None),
    ]
    for name, title, rows, goal, scale in drawings:
        if rows:
            file = f"tunnel-{name}.svg"
            with open(os.path.join(folder, file), "w", encoding="utf-8") as drawing:
                drawing.write("\n".join(bars(title, rows, goal, scale)) + "\n")
            yield file, title
