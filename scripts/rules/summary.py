"""Counts the rules of the specifications by what is cited for them.

Usage: summary.py REPORT.json [--write FILE | --check FILE] [--open]. The table goes to FILE between its markers, unless less is
covered than the table there says: then the exit code is 1. --check only compares; --open lists what is not covered.
"""

import json
import sys

TITLES = {
    "rfc10069": "RFC 10069, multipath (text of its last draft)",
    "rfc9000": "RFC 9000, transport",
    "rfc9001": "RFC 9001, TLS",
    "rfc9002": "RFC 9002, recovery",
    "rfc9114": "RFC 9114, HTTP/3",
    "rfc9204": "RFC 9204, QPACK",
    "rfc9218": "RFC 9218, priorities",
    "rfc8336": "RFC 8336, ORIGIN frame",
    "rfc9221": "RFC 9221, datagrams",
}
BEGIN, END = "<!-- rules: begin -->", "<!-- rules: end -->"
COLUMNS = ["rules", "cited and tested", "by construction", "not ours", "open"]


def kind_of(status, reasons):
    """Says in which column a rule is counted."""
    if status.get("exception"):
        return "open" if any(reason.startswith("Open:") for reason in reasons) else "not ours"
    if status.get("citation") and status.get("test"):
        return "cited and tested"
    return "by construction" if status.get("implication") else "open"


def count(report):
    """Returns the columns of each document, and the rules that are open."""
    annotations, table, missing = report["annotations"], {}, []
    for target in report["specifications"]:
        table[target.rsplit("/", 1)[1]] = dict.fromkeys(COLUMNS, 0)
    for number, status in report["statuses"].items():
        rule = annotations[int(number)]
        if rule.get("level") != "MUST":
            continue
        document = rule["target_path"].rsplit("/", 1)[1]
        related = [annotations[index] for index in status.get("related", [])]
        reasons = [one.get("comment", "") for one in related if one.get("type") == "EXCEPTION"]
        kind = kind_of(status, reasons)
        table[document]["rules"] += 1
        table[document][kind] += 1
        if kind == "open":
            has = [name for name in ("citation", "test", "exception") if status.get(name)]
            text = " ".join(rule.get("comment", "").split())
            missing.append(f"{document}#{rule['target_section']} {has}: {text}")
    return table, missing


def lines_of(table):
    """Returns the lines of the table in Markdown."""
    lines = ["| document | " + " | ".join(COLUMNS) + " |", "| --- |" + " --- |" * len(COLUMNS)]
    for document, title in TITLES.items():
        row = table.get(document)
        if row:
            lines.append(f"| {title} | " + " | ".join(str(row[column]) for column in COLUMNS) + " |")
    totals = [sum(table[document][column] for document in TITLES if document in table) for column in COLUMNS]
    return [*lines, "| all | " + " | ".join(map(str, totals)) + " |"]


def recorded(text):
    """Returns by title how many rules of a document are covered in the table of `text`."""
    rows = [line.strip("| ").split(" | ") for line in text.split(BEGIN)[1].split(END)[0].splitlines() if "RFC" in line]
    return {row[0]: int(row[2]) + int(row[3]) for row in rows}


def main(arguments):
    with open(arguments[0], encoding="utf-8") as file:
        table, missing = count(json.load(file))
    if "--open" in arguments:
        print("\n".join(missing))
    lines = lines_of(table)
    print("\n".join(lines))
    option = next((option for option in ("--write", "--check") if option in arguments), None)
    if not option:
        return 0
    path = arguments[arguments.index(option) + 1]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before = recorded(text)
    for document, title in TITLES.items():
        row = table.get(document, {})
        covered = row.get("cited and tested", 0) + row.get("by construction", 0)
        if covered < before.get(title, 0):
            print(f"rules: {title}: {covered} rules are covered, {before[title]} were", file=sys.stderr)
            return 1
    if option == "--check":
        return 0
    head, rest = text.split(BEGIN)
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + "\n".join([BEGIN, *lines, END]) + rest.split(END)[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
