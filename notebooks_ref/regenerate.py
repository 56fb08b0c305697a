"""Executes the five notebooks; their last cells write the fixtures.

python notebooks_ref/regenerate.py              rewrite tests/fixtures
python notebooks_ref/regenerate.py --check      compare a fresh run with tests/fixtures
python notebooks_ref/regenerate.py --out DIR [--live] [--check]     elsewhere, with this machine's cases; compare too
python notebooks_ref/regenerate.py --save       and store what the cells print in the notebooks
"""

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import List, Optional

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

try:
    import nbformat
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
except ImportError as error:
    sys.exit(f"{error}; run: {sys.executable} -m pip install -r {HERE / 'requirements.txt'}")

from reference.compare import compare_folders, compare_scripts  # noqa: E402
from reference.fixture import FOLDER, LIVE, fixtures_dir  # noqa: E402
from reference.torchscript import write_all as write_torchscript  # noqa: E402

AT_ONCE = 2
SECONDS_A_CELL = 120


class ThisPython(KernelSpecManager):
    """Runs the kernel on the interpreter that runs this file, whatever kernels are installed."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "--log-level=40"]
        argv += ["-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


class Progress:
    """A line that is rewritten on a terminal; nothing in a pipe."""

    def __init__(self, total: int):
        self.total, self.done = total, 0

    def tick(self, name: str) -> None:
        self.done += 1
        if sys.stderr.isatty():
            end = "\n" if self.done == self.total else ""
            text = f"\r[{self.done}/{self.total}] {name}"
            print(f"{text:<60}", end=end, file=sys.stderr, flush=True)


async def execute(path: Path, gate: asyncio.Semaphore, progress: Progress, save: bool) -> None:
    async with gate:
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(
            notebook,
            km=AsyncKernelManager(kernel_spec_manager=ThisPython()),
            timeout=SECONDS_A_CELL,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(HERE)}},
        )
        try:
            await client.async_execute()
        except CellExecutionError as error:
            text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # its colours are for a terminal
            raise SystemExit(f"{path.name} failed:\n{text}") from None
        if save:
            # The version of whoever ran it last is not worth a difference.
            notebook.metadata.pop("language_info", None)
            nbformat.write(notebook, path)
        progress.tick(path.stem)


async def execute_all(save: bool) -> List[Path]:
    notebooks = sorted(HERE.glob("[0-9][0-9]_*.ipynb"))
    gate, progress = asyncio.Semaphore(AT_ONCE), Progress(len(notebooks))
    await asyncio.gather(*(execute(path, gate, progress, save) for path in notebooks))
    return notebooks


def regenerate(folder: Path, live: bool, save: bool) -> None:
    os.environ[FOLDER] = str(folder.resolve())  # the kernels inherit it
    os.environ.pop(LIVE, None)
    if live:
        os.environ[LIVE] = "1"
    asyncio.run(execute_all(save))
    with tempfile.TemporaryDirectory() as temporary:
        for fresh in write_torchscript(Path(temporary), small=True):
            keep_or_replace(folder / "torchscript" / fresh.relative_to(temporary), fresh)


def keep_or_replace(path: Path, fresh: Path) -> None:
    """TorchScript writes a class's constants in another order each time: keep what agrees."""
    if path.exists() and not compare_scripts(path, fresh):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".pt", ".io.safetensors"):
        shutil.copyfile(fresh.with_suffix(suffix), path.with_suffix(suffix))


def check(committed: Path, out: Optional[Path], live: bool) -> int:
    with tempfile.TemporaryDirectory() as temporary:  # where no file of an earlier run is
        regenerate(Path(temporary), live, save=False)
        report = compare_folders(committed, Path(temporary))
        if out is not None:
            shutil.copytree(temporary, out, dirs_exist_ok=True)
    for line in report.notes:
        print(f"note: {line}")
    for line in report.differences:
        print(f"differs: {line}", file=sys.stderr)
    if report.differences:
        print(
            f"{len(report.differences)} differences in {report.compared} fixtures; "
            "if they are wanted: python notebooks_ref/regenerate.py",
            file=sys.stderr,
        )
        return 1
    print(f"{report.compared} fixtures agree, {report.bitwise} of them bit for bit")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute the notebooks and write the fixtures.")
    parser.add_argument("--out", type=Path, help="default: tests/fixtures")
    parser.add_argument("--live", action="store_true", help="add this machine's own cases")
    parser.add_argument("--check", action="store_true", help="compare with tests/fixtures; 1 on a difference")
    parser.add_argument("--save", action="store_true", help="store executed cells in the ipynb")
    arguments = parser.parse_args()
    if arguments.check and arguments.save:
        parser.error("--check changes no notebook: leave out --save")
    if arguments.live and arguments.out is None:
        parser.error("--live cases are never committed: give --out")
    if arguments.live and arguments.save:
        parser.error("--save stores what a plain run prints: leave out --live")
    start = time.monotonic()
    committed = fixtures_dir()
    folder = arguments.out or committed
    if arguments.check:
        return check(committed, arguments.out, arguments.live)
    regenerate(folder, arguments.live, arguments.save)
    count = sum(1 for _ in folder.rglob("*.safetensors"))
    print(f"{count} safetensors files in {folder} ({time.monotonic() - start:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
