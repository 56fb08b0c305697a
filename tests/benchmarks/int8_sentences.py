"""How far a sentence model's vectors in 8 bits are from those in float32, on texts of your own.

    int8_sentences.py --posenc POSENC FOLDER LINES

Prints the mean and the least cosine of a line's two vectors, and for how many lines another line is the nearest in 8 bits.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file


def vectors(posenc: str, folder: str, lines: str, *options: str) -> torch.Tensor:
    """Of each line, of length 1."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "vectors.safetensors"
        subprocess.run([posenc, "encode", folder, "--text", lines, "--out", out, "--normalize", *options], check=True)
        return load_file(out)["embeddings"].double()


def nearest(own: torch.Tensor) -> torch.Tensor:
    """The place of the nearest other line."""
    return (own @ own.T).fill_diagonal_(-torch.inf).argmax(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", default="build/release/posenc")
    parser.add_argument("folder")
    parser.add_argument("lines")
    chosen = parser.parse_args()
    exact, rough = (vectors(chosen.posenc, chosen.folder, chosen.lines, *options) for options in ((), ("--int8",)))
    cosines = (exact * rough).sum(1)
    changed = (nearest(exact) != nearest(rough)).double().mean().item()
    print(f"{len(exact)} lines: cosine {cosines.mean():.4f}, at least {cosines.min():.4f}; another nearest line for {100 * changed:.1f} %")


if __name__ == "__main__":
    main()
