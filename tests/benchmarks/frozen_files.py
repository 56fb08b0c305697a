"""How long a process takes to have a frozen BERT-base, and the memory that one and four processes take (Linux).

    .venv/bin/python tests/benchmarks/frozen_files.py --posenc build/release/posenc --start build/release/tests/benchmarks/posenc-frozen-start

Writes a model with random weights, freezes it to 8 bits with `posenc freeze`, and starts processes with it, the file in the page cache:
"baseline" has no model, "freeze" loads the float32 weights and converts them, "frozen file" maps the file. Memory is beyond the baseline's:
that of LibTorch itself is in each process. PSS counts a page that n processes share as 1/n in each.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--start", required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--layers", type=int, default=12)
    return parser.parse_args()


def write_model(folder, layers):
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(1)
    BertModel(BertConfig(num_hidden_layers=layers)).save_pretrained(folder)


class Process:
    """One that has loaded, or has not where the path is empty."""

    def __init__(self, start, *arguments):
        self.process = subprocess.Popen([start, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said = json.loads(self.process.stdout.readline())

    def pss(self):
        """Proportional set size in kB, and what of it is of no file."""
        fields = {}
        for line in pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, value, *_ = line.split()
            fields[name.rstrip(":")] = int(value)
        return fields["Pss"], fields["Pss_Anon"]

    def end(self):
        self.process.communicate("\n")


def measure(start, count, *arguments):
    processes = [Process(start, *arguments) for _ in range(count)]
    result = {"seconds": statistics.median(p.said["seconds"] for p in processes), "peak": max(p.said["peak_kB"] for p in processes),
              "rss": max(p.said["rss_kB"] for p in processes), "pss": sum(p.pss()[0] for p in processes), "anon": sum(p.pss()[1] for p in processes)}
    for process in processes:
        process.end()
    return result


def main():
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        model, frozen = pathlib.Path(folder, "model"), pathlib.Path(folder, "frozen")
        write_model(model, arguments.layers)
        subprocess.run([arguments.posenc, "freeze", model, frozen, "--int8"], check=True)
        size = (frozen / "frozen.safetensors").stat().st_size / 1024
        print(f"file: {size / 1024:.1f} MiB; float32 weights: {(model / 'model.safetensors').stat().st_size / 2**20:.1f} MiB")
        cases = {"baseline": ("",), "freeze": (model, "freeze"), "frozen file": (frozen,), "frozen file, unchecked": (frozen, "unchecked"),
                 "frozen file, encoded": (frozen, "encode")}
        rounds = {name: [] for name in cases}
        for _ in range(arguments.rounds):
            for name, given in cases.items():
                rounds[name].append(measure(arguments.start, 1, *given))
        best = {name: {key: statistics.median(r[key] for r in all_of) for key in all_of[0]} for name, all_of in rounds.items()}
        least = {name: min(r["seconds"] for r in all_of) for name, all_of in rounds.items()}
        zero = best["baseline"]
        print(f"baseline: peak {zero['peak'] / 1024:.1f} MiB")
        for name in list(cases)[1:]:
            one = best[name]
            print(f"{name}: {one['seconds'] * 1000:.0f} ms (least {least[name] * 1000:.0f}), peak {(one['peak'] - zero['peak']) / 1024:.1f} MiB "
                  f"({(one['peak'] - zero['peak']) / size:.2f} of the file), of no file {(one['anon'] - zero['anon']) / 1024:.1f} MiB")
        for name in ("freeze", "frozen file"):
            one, four = measure(arguments.start, 1, *cases[name]), measure(arguments.start, 4, *cases[name])
            base_one, base_four = measure(arguments.start, 1, ""), measure(arguments.start, 4, "")
            beyond = (four["pss"] - base_four["pss"]) / (one["pss"] - base_one["pss"])
            print(f"{name}: PSS of four processes {four['pss'] / 1024:.1f} MiB, of one {one['pss'] / 1024:.1f} MiB: {four['pss'] / one['pss']:.2f}; "
                  f"beyond those of the baseline {beyond:.2f}")


if __name__ == "__main__":
    main()
