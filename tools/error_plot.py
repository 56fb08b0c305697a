#!/usr/bin/env python3
"""docs/images/error_over_position.png: the error of the float32 recipe relative to the formula, by position. Both
tables come from the posenc binary; gnuplot draws. `tools/error_plot.py BINARY OUT.png`.

The curve shows at p the worst of at most 100 positions in p ... 1.02 p."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

DIM = 512


def table(binary: str, folder: Path, precision: str, preset: str) -> np.ndarray:
    out = folder / f"{preset}_{precision}.safetensors"
    command = [binary, "table", "--preset", preset, "--dim", str(DIM), "--precision", precision,
               "--positions", str(folder / "positions.safetensors"), "--out", str(out)]  # fmt: skip
    subprocess.run(command, check=True)
    return load_file(out)["table"].astype(np.float64)


def sampled() -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """The curve's places, the positions evaluated, and the index of each place's first position among them."""
    places = np.unique(np.geomspace(1, 2_000_000, 160).astype(np.int64))
    groups = [np.unique(np.linspace(place, 1.02 * place, 100).astype(np.int64)) for place in places]
    return places, np.concatenate(groups), np.cumsum([0, *map(len, groups[:-1])])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places, positions, starts = sampled()
        save_file({"positions": positions}, folder / "positions.safetensors")
        curves = []
        for preset in ("annotated_transformer", "hf_marian"):
            gap = np.abs(table(arguments.binary, folder, "reference", preset) -
                         table(arguments.binary, folder, "exact", preset))  # fmt: skip
            curves.append(np.maximum.reduceat(gap.max(1), starts))
    rows = "\n".join(f"{p} {max(a, 1e-9)} {max(b, 1e-9)}" for p, a, b in zip(places, *curves))
    script = f"""
set terminal pngcairo size 900,520 font 'DejaVu Sans,11'
set output '{arguments.out}'
set logscale xy
set format x '10^{{%T}}'
set format y '10^{{%T}}'
set xlabel 'Position'
set ylabel 'Largest difference from the formula'
set yrange [1e-9:1]
set xrange [1:2e6]
set key left top reverse Left samplen 2
set grid lc rgb '#dddddd'
set title 'float32 tables against the correctly rounded one, D = {DIM} (on the lower edge: equal)'
$d << EOD
{rows}
EOD
plot $d using 1:2 with lines lw 2 lc rgb '#d1662a' title 'float32 angles (Annotated Transformer, fairseq, Whisper ...)', \\
     $d using 1:3 with lines lw 2 lc rgb '#2d708e' title 'float64 angles, rounded last (Marian, XLM, MAE ...)', \\
     2**-25 with lines dt 2 lc rgb '#555555' title 'half a unit in the last place of 1'
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
