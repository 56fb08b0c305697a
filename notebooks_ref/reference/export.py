"""What the notebooks' last cells call: one function a notebook, which writes its fixtures.

    python notebooks_ref/reference/export.py [--out DIR] [--live]      (without the notebooks)

--live (or POSENC_FIXTURES_LIVE=1) adds the cases that hold on this machine only.
"""

import argparse
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import List, Optional

if __name__ == "__main__":  # run as a file: import this package as the notebooks do
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import torch

from reference.cases import input_embedding as _00
from reference.cases import pad_sequences as _01
from reference.cases import position_embedding as _04
from reference.cases import timestep_embedding as _02
from reference.cases import token_and_position_embedding as _03
from reference.cases import transformer as _transformer
from reference.fixture import LIVE, fixtures_dir

__all__ = [
    "fixtures_dir",
    "input_embedding",
    "pad_sequences",
    "position_embedding",
    "timestep_embedding",
    "token_and_position_embedding",
]


@contextmanager
def single_thread():
    """The bits that we promise are those of PyTorch with one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _write(case_file, folder: Optional[Path]) -> List[str]:
    with single_thread():
        return case_file.write_all(Path(folder or fixtures_dir()))


def input_embedding(folder: Optional[Path] = None) -> List[str]:
    """Notebook 00: token_embedding, positional_encoding, input_embedding."""
    return _write(_00, folder)


def pad_sequences(folder: Optional[Path] = None) -> List[str]:
    """Notebook 01: pad_sequences, and nn.Embedding itself."""
    return _write(_01, folder)


def timestep_embedding(folder: Optional[Path] = None) -> List[str]:
    """Notebook 02: timestep_embedding, and position_embedding as a frozen weight."""
    return _write(_02, folder)


def token_and_position_embedding(folder: Optional[Path] = None) -> List[str]:
    """Notebook 03: token_and_position_embedding, the scaled token_embedding, the Transformer."""
    return _write(_03, folder) + _write(_transformer, folder)


def position_embedding(folder: Optional[Path] = None) -> List[str]:
    """Notebook 04: position_embedding as a buffer."""
    return _write(_04, folder)


EXPORTS = [
    input_embedding,
    pad_sequences,
    timestep_embedding,
    token_and_position_embedding,
    position_embedding,
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write all fixtures without the notebooks.")
    parser.add_argument("--out", type=Path, help="default: tests/fixtures")
    parser.add_argument("--live", action="store_true", help="add this machine's own cases")
    arguments = parser.parse_args()
    if arguments.live:
        if arguments.out is None:
            parser.error("--live cases are never committed: give --out")
        os.environ[LIVE] = "1"
    folder = arguments.out or fixtures_dir()
    count = sum(len(export(folder)) for export in EXPORTS)
    print(f"{count} fixtures in {folder}")


if __name__ == "__main__":
    main()
