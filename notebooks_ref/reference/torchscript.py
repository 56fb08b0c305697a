"""The notebooks' modules as TorchScript files, each beside what Python computes with it.

    python notebooks_ref/reference/torchscript.py --out DIR       every module, scripted and traced
    python notebooks_ref/reference/torchscript.py --small         tests/fixtures/torchscript

<slug>__<Class>.<script|trace>.pt goes with <the same>.io.safetensors (input, output). A file bears
its class as __torch__.reference.<slug>.<Class>. wrong/ holds a TokenAndPositionEmbedding without
sqrt(d_model); mangled/ a class whose name the compiler changed (___torch_mangle_N), as it does with
the second module of a process. Small files carry no source lines: those name folders of a machine.
"""

import argparse
import multiprocessing
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple

if __name__ == "__main__":  # run as a file: import this package as the notebooks do
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import torch
from safetensors.torch import save
from torch import Tensor, nn

from reference import (
    input_embedding,
    position_embedding,
    timestep_embedding,
    token_and_position_embedding,
)
from reference.fixture import fill_parameters, fixtures_dir, generator, seed_of


class Sizes(NamedTuple):
    """Of every module in a set: odd enough that no two of them can be mixed up."""

    vocab: int
    dim: int
    max_len: int
    channels: int
    batch: int
    length: int


FULL = Sizes(vocab=211, dim=36, max_len=77, channels=3, batch=3, length=19)
SMALL = Sizes(vocab=13, dim=6, max_len=11, channels=2, batch=2, length=5)
SIZE_LIMIT = 20 * 1024  # bytes a small file


class _WithoutScale(token_and_position_embedding.TokenAndPositionEmbedding):
    """The mistake that `posenc-parity verify` has to find. It bears the right one's name."""

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.position_encoding(self.token_embedding(x)))


_WithoutScale.__name__ = "TokenAndPositionEmbedding"
_WithoutScale.__qualname__ = "TokenAndPositionEmbedding"
_WithoutScale.__module__ = token_and_position_embedding.__name__


def builders(s: Sizes) -> Dict[str, Callable[[], nn.Module]]:
    """<slug>__<Class> -> a function that builds it."""
    nb00, nb02, nb03 = input_embedding, timestep_embedding, token_and_position_embedding
    return {
        "input_embedding__TokenEmbedding": lambda: nb00.TokenEmbedding(s.vocab, s.dim),
        "input_embedding__PositionalEncoding": lambda: nb00.PositionalEncoding(s.dim, s.max_len),
        "input_embedding__InputEmbedding": lambda: nb00.InputEmbedding(s.vocab, s.dim, s.max_len),
        "pad_sequences__Embedding": lambda: nn.Embedding(s.vocab, s.dim),
        "timestep_embedding__PositionalEncoding": lambda: nb02.PositionalEncoding(s.max_len, s.dim),
        "timestep_embedding__TimestepEmbedding": lambda: nb02.TimestepEmbedding(
            s.max_len, s.dim, s.channels
        ),
        "token_and_position_embedding__TransformerEmbedding": lambda: nb03.TransformerEmbedding(
            s.vocab, s.dim
        ),
        "token_and_position_embedding__PositionalEncoding": lambda: nb03.PositionalEncoding(
            s.dim, s.max_len
        ),
        "token_and_position_embedding__TokenAndPositionEmbedding": lambda: (
            nb03.TokenAndPositionEmbedding(s.vocab, s.dim, s.max_len)
        ),
        "position_embedding__MyPositionEncoding": lambda: position_embedding.MyPositionEncoding(
            s.max_len, s.dim
        ),
    }


WRONG = "token_and_position_embedding__TokenAndPositionEmbedding"
MANGLED = "input_embedding__InputEmbedding"
SMALL_SET = ["input_embedding__InputEmbedding", "timestep_embedding__TimestepEmbedding", WRONG]


def input_for(name: str, s: Sizes) -> Tensor:
    """Ids, positions, timesteps or embeddings, by what the module takes."""
    source = generator("torchscript", name)
    slug, kind = name.split("__")
    if kind == "PositionalEncoding" and slug != "timestep_embedding":
        return torch.randn(s.batch, s.length, s.dim, generator=source)
    if slug == "timestep_embedding":
        return torch.randint(0, s.max_len, (s.batch, 1), generator=source)
    rows = s.max_len if slug == "position_embedding" else s.vocab
    return torch.randint(0, rows, (s.batch, s.length), generator=source)


def write_file(folder: Path, name: str, way: str, s: Sizes, build: Callable[[], nn.Module]) -> None:
    """One module, scripted or traced, and its io file."""
    torch.set_num_threads(1)
    torch.manual_seed(seed_of("torchscript", name))
    module = build().eval()
    if s == SMALL:  # committed: the same numbers on every machine
        fill_parameters(module, generator("torchscript", name, "parameters"))
    example = input_for(name, s)
    with torch.no_grad():
        io = {"input": example, "output": module(example).contiguous()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is; we need it
        scripted = torch.jit.script(module) if way == "script" else torch.jit.trace(module, example)
        if not torch.equal(scripted(example), io["output"]):
            raise RuntimeError(f"{name}: the {way} differs from the module")
        folder.mkdir(parents=True, exist_ok=True)
        scripted.save(str(folder / f"{name}.{way}.pt"))
    (folder / f"{name}.{way}.io.safetensors").write_bytes(save(io))


def strip_debug(path: Path) -> None:
    """Takes the source lines out of a TorchScript file: they name this machine's folders."""
    with zipfile.ZipFile(path) as archive:
        records = [(r, archive.read(r)) for r in archive.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for record, content in records:
            if record.filename.endswith(".debug_pkl"):
                continue
            if record.filename.endswith("serialization_id"):
                content = b"0" * len(content)  # a random-looking number that changes by run
            fresh = zipfile.ZipInfo(record.filename)  # and no time stamp either
            # PyTorch begins every record at a multiple of 64 and fills up by an "FB" field.
            begin = archive.fp.tell() + 30 + len(record.filename.encode()) + 4
            room = -begin % 64
            fresh.extra = b"FB" + room.to_bytes(2, "little") + b"Z" * room
            archive.writestr(fresh, content)


def _write_job(folder: Path, name: str, way: str, s: Sizes, kind: str) -> None:
    build = builders(s)[name]
    if kind == "wrong":
        build = lambda: _WithoutScale(s.vocab, s.dim, s.max_len)  # noqa: E731
    if kind == "mangled":
        # Classes of the same names at other sizes first: the compiler renames the later ones.
        torch.jit.script(builders(s._replace(vocab=s.vocab + 1))[name]())
    write_file(folder, name, way, s, build)


def write_all(folder: Path, small: bool = False) -> List[Path]:
    """All files of a set; each from a process of its own, so that no class name is mangled."""
    s = SMALL if small else FULL
    names = SMALL_SET if small else list(builders(s))
    ways = ["script"] if small else ["script", "trace"]
    jobs = [(folder, name, way, s, "right") for name in names for way in ways]
    jobs.append((folder / "wrong", WRONG, "script", s, "wrong"))
    if not small:
        jobs.append((folder / "mangled", MANGLED, "script", s, "mangled"))
    context = multiprocessing.get_context("fork")  # torch is imported once, here
    with context.Pool(2, maxtasksperchild=1) as pool:
        pool.starmap(_write_job, jobs, chunksize=1)
    written = [place / f"{name}.{way}.pt" for place, name, way, _, _ in jobs]
    if small:
        for path in written:
            strip_debug(path)
            if path.stat().st_size > SIZE_LIMIT:
                raise ValueError(f"{path.name} takes {path.stat().st_size} bytes")
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the modules as TorchScript files.")
    parser.add_argument("--out", type=Path, help="where to write; needed without --small")
    parser.add_argument("--small", action="store_true", help="the few that are committed")
    arguments = parser.parse_args()
    if arguments.out is None and not arguments.small:
        parser.error("give --out DIR, or --small for tests/fixtures/torchscript")
    folder = arguments.out or fixtures_dir() / "torchscript"
    print(f"{len(write_all(folder, arguments.small))} TorchScript files in {folder}")


if __name__ == "__main__":
    main()
