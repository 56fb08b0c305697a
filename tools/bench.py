#!/usr/bin/env python3
"""Runs the benchmarks interleaved and prints medians and ratios: how many times faster than the
first named competitor of each group. `tools/bench.py BINARY [--filter REGEX] [--json FILE]`."""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

RATIOS = [  # group, ours, competitor, at least
    ("exact table 5000 x 512", "table/exact/5000/512", "table/pytorch_recipe/5000/512", 6.0),
    ("exact table 131072 x 1024", "table/exact/131072/1024", "table/pytorch_recipe/131072/1024", 10.0),
    ("reference table 5000 x 512", "table/reference/5000/512", "table/pytorch_recipe/5000/512", 1.0),
    ("reference table 131072 x 1024", "table/reference/131072/1024", "table/pytorch_recipe/131072/1024", 1.0),
    ("32,768 scattered rows of 1e6, D = 512", "rows/factored", "rows/full_table", 1.5),
    ("1 GiB .pt into a module, memcpy", "load/1GiB/pt", "load/1GiB/memcpy", 1 / 1.3),
    ("1 GiB safetensors into a module, memcpy", "load/1GiB/safetensors", "load/1GiB/memcpy", 1 / 1.3),
    ("1 GiB .pt into a module, torch.load + load_state_dict", "load/1GiB/pt", "load/1GiB/torch_load", 4.0),
    ("1 GiB safetensors into a module, load_file + load_state_dict", "load/1GiB/safetensors", "load/1GiB/load_file", 1.0),
    ("1 GiB TorchScript into a module, torch::jit::load", "load/1GiB/script", "load/1GiB/jit_load", 1 / 0.3),
    ("ten tensors of TorchScript, torch::jit::load", "load/ten/script", "load/ten/jit_load", 20.0),
    ("20,000 tensors, index of safetensors, load_file", "index/20000/safetensors", "load/20000/load_file", 10.0),
    ("20,000 tensors, index of .pt, torch.load", "index/20000/pt", "load/20000/torch_load", 1 / 0.15),
    *[(f"encoder forward {shape}, {threads} thread(s), torch.nn in eval", f"transformer/encoder/posenc/{shape}/{threads}",
       f"transformer/encoder/torch_nn/{shape}/{threads}", 0.97)
      for threads in (1, 2) for shape in ("1/16", "1/128", "8/128")],
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--filter", default=".")
    parser.add_argument("--json", type=Path, help="keep Google Benchmark's own report here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = arguments.json or Path(folder) / "out.json"
        command = [
            arguments.binary, f"--benchmark_filter={arguments.filter}", "--benchmark_repetitions=7",
            "--benchmark_enable_random_interleaving=true", "--benchmark_min_time=0.05",
            "--benchmark_report_aggregates_only=true", f"--benchmark_out={out}",
        ]  # fmt: skip
        done = subprocess.run(command, stdout=None if sys.stdout.isatty() else subprocess.DEVNULL)
        if done.returncode != 0:
            return done.returncode
        report = json.loads(out.read_text())
    medians = {}
    for row in report["benchmarks"]:
        if row.get("error_occurred"):
            print(f"{row['name']}: {row['error_message']}", file=sys.stderr)
            return 1
        if row.get("aggregate_name") == "median":
            medians[re.sub("/(real_time|manual_time|repeats.*)$", "", row["run_name"])] = (row["real_time"], row["time_unit"])
    width = max(map(len, medians), default=0)
    for name, (time, unit) in medians.items():
        print(f"{name:{width}}  {time:12.3f} {unit}")
    for title, ours, theirs, least in RATIOS:
        if ours in medians and theirs in medians:
            ratio = medians[theirs][0] / medians[ours][0]
            print(f"{title}: {ratio:.2f}x (goal {least:.3g}x{'' if ratio >= least else ', missed'})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
