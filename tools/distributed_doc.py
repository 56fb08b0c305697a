#!/usr/bin/env python3
"""The table of docs/developers/distributed.md on how fast several processes train. The speeds are those of docs/performance/ranks.json:
`make bench-ranks JSON=docs/performance/ranks.json`.

tools/distributed_doc.py --write    rewrite the page's table
tools/distributed_doc.py --check    exit 1 where it is another
"""

import json
import sys

import page_tables


def speed_table() -> str:
    """What `make bench-ranks` has measured; the first case is what the others are compared with."""
    run = json.loads((page_tables.DOCS / "performance/ranks.json").read_text())
    lines = [f"{run['processor']}, torch {run['torch']}, {run['date']}, the least of {run['rounds']} interleaved rounds:", "",
             "| | a step | tokens a second | |", "|---|---:|---:|---:|"]
    cases = run["cases"]
    first = next(iter(cases.values()))["tokens_per_second"]
    for title, case in cases.items():
        lines.append(f"| {title} | {case['seconds']:.2f} s | {case['tokens_per_second']:.0f} | {case['tokens_per_second'] / first:.2f}x |")
    return "\n".join(lines) + "\n"


def main() -> int:
    options = page_tables.arguments(reads_posenc=False)
    return page_tables.update("developers/distributed.md", {"speed": speed_table}, options)


if __name__ == "__main__":
    sys.exit(main())
