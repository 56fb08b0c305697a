"""Writes tests/fixtures/presets: for every preset, two small tables from the real package (or the re-derivation) on
this machine, with the corresponding arguments of posenc::preset().

One file per preset, with tensors `table0`, `table1` and metadata `cases` (JSON), `source` and `torch`.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

import table_cases
import rederived
from adapters import REFERENCES

ENTRIES = 1200  # maximum size of a table
TABLES = 2
SEED = 0


def small(name: str) -> list[table_cases.Case]:
    """The first cases of different widths, starting with those that distinguish similar recipes."""
    found: dict[int, table_cases.Case] = {}
    fitting = [
        c
        for c in table_cases.generate(name, SEED, REFERENCES[name].element_loop)
        if c.expect == "table" and 3 <= c.length and c.length * c.dim <= ENTRIES
    ]
    for case in sorted(fitting, key=lambda c: c.dim not in cases.TELLING):
        found.setdefault(case.dim, case)
    return list(found.values())[:TABLES]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--preset", nargs="+", default=rederived.NAMES, choices=rederived.NAMES, metavar="NAME")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.preset:
        reference = REFERENCES[name]
        chosen = small(name)
        tables = {f"table{k}": reference.table(c.length, c.dim, **c.params) for k, c in enumerate(chosen)}
        metadata = {
            "cases": json.dumps([c.record() for c in chosen]),
            "source": f"{reference.kind} {reference.package} {reference.version}",
            "torch": torch.__version__,
        }
        save_file(tables, args.out / f"{name}.safetensors", metadata=metadata)
        if len(chosen) < TABLES:
            print(f"{name}: only {len(chosen)} small tables")
    print(f"{len(args.preset)} presets in {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
