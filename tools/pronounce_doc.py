#!/usr/bin/env python3
"""The table and the plot of docs/pronounce.md, from docs/pronounce.json, the results of runs of `make pronounce`.

tools/pronounce_doc.py --run MINUTES...    train for that many minutes each, by tools/pronounce.sh --fresh, and store the results
tools/pronounce_doc.py --write             rewrite the page's table and the plot (gnuplot)
tools/pronounce_doc.py --check             exit 1 if the page shows other numbers
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench import processor

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE, PICTURE = ROOT / "docs/pronounce.json", ROOT / "docs/pronounce.md", ROOT / "docs/images/pronounce.png"
BEGIN, END = "<!-- table: tools/pronounce_doc.py -->\n", "<!-- end of table -->"


def run(minutes: int) -> dict:
    """Runs a training; returns its output, its curve and its cost."""
    load, began = os.getloadavg()[0], time.monotonic()
    command = [str(ROOT / "tools/pronounce.sh"), str(minutes), "--fresh"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.monotonic() - began
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    curve = (ROOT / "build/pronounce/curve.jsonl").read_text()
    return result(minutes, done.stdout, curve, seconds, load, memory)


def result(minutes: int, said: str, curve: str, seconds: float, load: float, megabytes: float) -> dict:
    """`said`: the standard output of posenc-pronounce train."""
    wide = re.search(r"by (\d+) beams ([\d.]+) %", said)
    sizes = re.search(r"([\d,]+) parameters, ([\d,]+) steps.* (\d+) threads", said)
    return {
        "minutes": minutes,
        "parameters": int(sizes[1].replace(",", "")),
        "threads": int(sizes[3]),
        "processor": processor(),
        "load": round(load, 1),
        "seconds": round(seconds),
        "megabytes": round(megabytes),
        "beams": int(wide[1]),
        "beams_error_rate": float(wide[2]) / 100,
        "curve": [json.loads(line) for line in curve.splitlines()],
    }


def table(runs: list[dict]) -> str:
    text = "| `make pronounce` | parameters | steps | phoneme error rate | error rate to the first pronunciation | with beams | correct words | time | memory |\n"
    text += "|---" * 9 + "|\n"
    for one in runs:
        last, minutes = one["curve"][-1], one["minutes"]
        clock = f"{one['seconds'] // 60}:{one['seconds'] % 60:02}"
        call = "default, 5 minutes" if minutes == 5 else f"MINUTES={minutes}"
        text += (f"| {call} | {one['parameters']:,} | {last['step']:,} | **{last['phoneme_error_rate']:.1%}** "
                 f"| {last['first_error_rate']:.1%} | {one['beams_error_rate']:.1%} ({one['beams']}) "
                 f"| {last['words_right']:.1%} | {clock} | {one['megabytes']} MB |\n")  # fmt: skip
    loads = " and ".join(str(one["load"]) for one in runs)
    where = " and ".join(sorted({one["processor"] for one in runs}))
    return text + f"\nMeasured on {where}, {runs[0]['threads']} threads; load average before the runs {loads}.\n"


def script(runs: list[dict], out: Path) -> str:
    data = "\n\n\n".join(
        "\n".join(f"{p['seconds'] / 60} {100 * p['phoneme_error_rate']}" for p in one["curve"]) for one in runs
    )
    curves = ", ".join(
        f"$d index {i} using 1:2 with linespoints lw 2 pt 7 ps 0.6 title '{one['minutes']} minutes: {one['parameters']:,} parameters'"
        for i, one in enumerate(runs)
    )
    return f"""
set terminal pngcairo size 900,480 font 'DejaVu Sans,11'
set output '{out}'
set title 'Phoneme error rate on 1,000 held-out words'
set xlabel 'Minutes of training'
set ylabel '%'
set yrange [0:30]
set grid lc rgb '#dddddd'
set key right top
$d << EOD
{data}
EOD
plot {curves}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    act = parser.add_mutually_exclusive_group(required=True)
    act.add_argument("--run", type=int, nargs="+", metavar="MINUTES")
    act.add_argument("--write", action="store_true")
    act.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    runs = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for minutes in arguments.run or []:
        runs = sorted([one for one in runs if one["minutes"] != minutes] + [run(minutes)], key=lambda one: one["minutes"])
        RESULTS.write_text(json.dumps(runs, indent=1) + "\n")
    page = PAGE.read_text()
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    wanted = page[:start] + table(runs) + page[end:]
    if arguments.check:
        if page != wanted:
            print("docs/pronounce.md: run tools/pronounce_doc.py --write", file=sys.stderr)
        return int(page != wanted)
    PAGE.write_text(wanted)
    subprocess.run(["gnuplot"], input=script(runs, PICTURE), text=True, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
