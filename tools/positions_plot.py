#!/usr/bin/env python3
"""docs/images/learned_positions.png: cosines between the positions of a trained table, next to those of a sinusoid.

    tools/positions_plot.py --posenc BINARY --model FOLDER --out OUT.png

FOLDER holds a model.safetensors of the BERT family; that of the picture is sentence-transformers/all-MiniLM-L6-v2.
gnuplot draws.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

SHOWN = 128
TABLE = "position_embeddings.weight"


def cosines(table: np.ndarray) -> np.ndarray:
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return unit @ unit.T


def trained(folder: Path) -> np.ndarray:
    tensors = load_file(folder / "model.safetensors")
    (name,) = [key for key in tensors if key.endswith(TABLE)]
    return tensors[name][:SHOWN].astype(np.float64)


def sinusoid(binary: str, dim: int) -> np.ndarray:
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "table.safetensors"
        command = [binary, "table", "--preset", "vaswani2017", "--dim", str(dim), "--length", str(SHOWN), "--out", str(out)]
        subprocess.run(command, check=True)
        return load_file(out)["table"].astype(np.float64)


def block(name: str, matrix: np.ndarray) -> str:
    rows = "\n".join(" ".join(f"{value:.4f}" for value in row) for row in matrix)
    return f"${name} << EOD\n{rows}\nEOD\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    learned = trained(arguments.model)
    fixed = sinusoid(arguments.posenc, learned.shape[1])
    script = (
        block("learned", cosines(learned))
        + block("sinusoid", cosines(fixed))
        + f"""
set terminal pngcairo size 1120,520 font 'DejaVu Sans,11'
set output '{arguments.out}'
set palette defined (0 '#440154', 0.25 '#3b528b', 0.5 '#21918c', 0.75 '#5ec962', 1 '#fde725')
set cbrange [-0.3:1]
set xrange [-0.5:{SHOWN - 0.5}]
set yrange [{SHOWN - 0.5}:-0.5]
set xlabel 'Position'
set ylabel 'Position'
set size ratio 1
unset key
set multiplot layout 1,2
set title 'Trained: all-MiniLM-L6-v2'
plot $learned matrix with image
set title 'Sinusoid of the same width'
plot $sinusoid matrix with image
unset multiplot
"""
    )
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
