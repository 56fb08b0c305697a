"""Compares the tables of a `posenc` binary with the real packages, as int32 (so -0.0 is not 0.0). One line per preset.

Each preset is one call of `posenc table --cases FILE.json --out FILE.safetensors` for each number of threads. FILE.json
is a list of {"name": "case0", "preset": ..., "length": ..., "dim": ..., "params": {...}}; the output holds one tensor
for each case that succeeded, by name, and in its metadata, under the name of each that failed, the error message. The
exit status is 0 even if cases failed. After them, the rotary embeddings of rotary_compare.py.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from safetensors import safe_open

import table_cases
import rederived
import rotary_compare
import sites
import sources
from adapters import COPIES, Reference, all_of
from rotary_registry import rotary_names
from selfcheck import explain, same

TIMEOUT = 300


class Binary:
    def __init__(self, path: str, threads: int):
        self.path = path
        self.threads = threads

    def tables(self, chosen: list[table_cases.Case]) -> list[torch.Tensor | str]:
        """The table of each case, or its error message."""
        with tempfile.TemporaryDirectory() as folder:
            cases_file, out = Path(folder) / "cases.json", Path(folder) / "out.safetensors"
            cases_file.write_text(json.dumps([{"name": f"case{k}", **c.record()} for k, c in enumerate(chosen)]))
            done = subprocess.run(
                [self.path, "table", "--cases", str(cases_file), "--out", str(out)],
                capture_output=True, text=True, timeout=TIMEOUT,
                env={**os.environ, "OMP_NUM_THREADS": str(self.threads)},
            )  # fmt: skip
            if done.returncode or not out.is_file():
                return [f"no output (exit {done.returncode}): {done.stderr.strip()[:200]}"] * len(chosen)
            with safe_open(out, "pt") as f:
                names, messages = set(f.keys()), f.metadata() or {}
                return [
                    f.get_tensor(n) if n in names else messages.get(n, "neither a tensor nor a message")
                    for n in (f"case{k}" for k in range(len(chosen)))
                ]


def collect(reference: Reference, seed: int) -> tuple[list[table_cases.Case], list[torch.Tensor | None]]:
    """The cases and the system's own tables, None where an error is expected. Raises MissingSource."""
    chosen = table_cases.of(reference, seed)
    return chosen, [
        reference.table(c.length, c.dim, **c.params) if c.expect == "table" else None for c in chosen
    ]  # fmt: skip


def squeeze(t: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """Adds or drops axes of size 1."""
    wide = [s for s in t.shape if s != 1]
    return t.reshape(want.shape) if wide == [s for s in want.shape if s != 1] else t


def judge(want: torch.Tensor | None, got: torch.Tensor | str) -> str:
    """Returns "" if the case passes."""
    if want is None:
        silent = isinstance(got, str) and ("no output" in got or "nor a message" in got)
        return "should be refused" if isinstance(got, torch.Tensor) else (got if silent else "")
    if isinstance(got, str):
        return got
    if got.dtype != torch.float32:
        return f"dtype {got.dtype}"
    got = squeeze(got, want)
    return "" if same(want, got) else explain(want, got)


def problems_of(chosen, expected, binaries: list[Binary]) -> dict[int, str]:
    """Maps case numbers to problems, each for the first number of threads at which it occurs."""
    found: dict[int, str] = {}
    for binary in binaries:
        for k, (want, got) in enumerate(zip(expected, binary.tables(chosen))):
            problem = judge(want, got)
            if problem:
                found.setdefault(k, f"{' '.join(chosen[k].arguments())}: {problem} ({binary.threads} threads)")
    return found


def line(r: Reference, equal: int, total: int) -> str:
    if r.kind == "package":
        source = f"package {r.package} {r.version}"
    else:
        source = f"re-derivation of {r.package}@{r.version}"
        source += "" if r.bit_comparable else ", whose own kernels give other last bits"
    return f"{r.name}: equal {equal}/{total}, {source}, {r.system}"


def mismatched(binary: Binary) -> list[str]:
    """The systems in the presets' field `also` that are not compared here, and vice versa."""
    listed = subprocess.run([binary.path, "presets", "--json"], check=True, capture_output=True, text=True).stdout
    there = {(entry["name"], system) for entry in json.loads(listed) for system in entry["also"]}
    here = {(name, copy.label) for name, copies in COPIES.items() for copy in copies}
    return [f"{name}: {system}: listed but not compared" for name, system in sorted(there - here)] + [
        f"{name}: {system}: compared but not listed" for name, system in sorted(here - there)
    ]


def overlooked() -> list[str]:
    """What sites.py finds in transformers, if that is installed."""
    try:
        return sites.unaccounted()
    except sources.MissingSource:
        return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True, help="the binary")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1, 2], help="of the binary; the packages always run with one"
    )
    parser.add_argument("--require-all", action="store_true", help="a missing package is a failure, not a skip")
    parser.add_argument("--preset", nargs="+", default=rederived.NAMES, choices=rederived.NAMES, metavar="NAME")
    parser.add_argument("--rotary", nargs="*", default=rotary_names(), choices=rotary_names(), metavar="NAME")
    args = parser.parse_args()
    torch.set_num_threads(1)
    begin = time.monotonic()
    binaries = [Binary(args.posenc, threads) for threads in args.threads]
    passed = failed = skipped = 0
    for text in mismatched(binaries[0]) + overlooked():
        print(text)
        failed += 1
    for reference in (r for name in args.preset for r in all_of(name)):
        name = f"{reference.name} ({reference.system})"
        try:
            chosen, expected = collect(reference, args.seed)
        except sources.MissingSource as e:
            print(f"{name}: skipped, {e}", flush=True)
            skipped += 1
            continue
        except Exception as e:
            print(f"{name}: the system's own table failed: {type(e).__name__}: {e}", flush=True)
            failed += 1
            continue
        problems = list(problems_of(chosen, expected, binaries).values())
        print(line(reference, len(chosen) - len(problems), len(chosen)), flush=True)
        for text in problems[:3] + [f"... {len(problems) - 3} more"] * (len(problems) > 3):
            print(f"    {text}")
        passed, failed = passed + (not problems), failed + bool(problems)
    for text in rotary_compare.unknown(args.posenc):
        print(text)
        failed += 1
    outcome = rotary_compare.compare(args.posenc, args.threads, args.seed, args.rotary)
    passed, failed, skipped = (a + b for a, b in zip((passed, failed, skipped), outcome))
    threads = " and ".join(map(str, args.threads))
    print(f"zoo: {time.monotonic() - begin:.0f} s, torch {torch.__version__}, posenc with {threads} threads")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or (skipped and args.require_all) else 0


if __name__ == "__main__":
    sys.exit(main())
