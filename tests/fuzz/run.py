"""Builds the fuzz targets and runs each; exits with 1 if one finds something.

    run.py --build DIR --real DIR [--seconds S] [--seed N] [--jobs N] [TARGET...]

An input that breaks a target is kept as DIR/findings/<target>-...; run DIR/<target>_fuzz on it to reproduce the
failure. The fuzzers' corpus is kept in DIR/corpus, and they continue from it.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "weights/hostile"))
import make  # noqa: E402
import seeds  # noqa: E402

CLANG = "clang++-14"
LONGEST = 100_000  # bytes of a seed: larger ones only slow the fuzzers down


def build(folder, jobs):
    if not shutil.which(CLANG):
        raise SystemExit(f"fuzz: {CLANG} is not here; `make setup` installs it (Debian: clang-14 libclang-rt-14-dev)")
    torch = Path(importlib.util.find_spec("torch").origin).parent
    subprocess.run(["cmake", "-S", HERE, "-B", folder, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={CLANG}", f"-DTORCH_FOLDER={torch}"],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    subprocess.run(["cmake", "--build", folder, "--parallel", str(jobs)], check=True, stdout=subprocess.DEVNULL)


def write_seeds(folder, real):
    """Writes seeds for every target: FOLDER/<target>/<file>."""
    hostile = folder / "hostile"
    files = [path for path, _ in make.write(hostile)]
    files += [path for path in Path(real).iterdir() if path.name != "expected.json"]
    for target in targets():
        at = folder / target
        at.mkdir(parents=True, exist_ok=True)
        made = {"tokenizer": seeds.tokenizers, "sentencepiece": seeds.sentencepiece, "sound": seeds.sounds, "frozen": seeds.frozen}.get(target)
        if made:
            for part, data in enumerate(made()):
                (at / f"made-{part}").write_bytes(data)
            continue
        for number, path in enumerate(files):
            if path.stat().st_size > 10 * LONGEST:
                continue
            for part, data in enumerate(seeds.seeds(target, path.name, path.read_bytes())):
                if len(data) <= LONGEST:
                    (at / f"{number}-{part}").write_bytes(data)


def targets():
    return sorted(path.name.removesuffix("_fuzz.cpp") for path in HERE.glob("*_fuzz.cpp"))


def dictionary(folder, target):
    """The option for the target's dictionary, including JSON's if it reads JSON; nothing if there is none."""
    names = [target] + (["json"] if target in seeds.READS_JSON else [])
    text = "".join(path.read_text() for name in names if (path := HERE / f"{name}.dict").exists())
    at = folder / f"{target}.dict"
    at.write_text(text)
    return [f"-dict={at}"] if text else []


def start(folder, target, seconds, seed):
    corpus, findings = folder / "corpus" / target, folder / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    command = [folder / f"{target}_fuzz", corpus, folder / "seeds" / target, f"-max_total_time={seconds}",
               *dictionary(folder, target), f"-artifact_prefix={findings}/{target}-", "-timeout=3000", f"-seed={seed}",
               "-rss_limit_mb=2048", "-malloc_limit_mb=1024", f"-max_len={LONGEST}", "-use_value_profile=1",
               "-print_final_stats=1", "-verbosity=1", "-close_fd_mask=1"]
    log = open(folder / f"{target}.log", "w")
    return target, subprocess.Popen(list(map(str, command)), stdout=log, stderr=log), log.name


def report(target, status, log):
    text = Path(log).read_text(errors="replace")
    stats = dict(line[6:].split(": ", 1) for line in text.splitlines() if line.startswith("stat::"))
    runs = stats.get("number_of_executed_units", "?").strip()
    print(f"{target}: {runs} runs" + (", FOUND SOMETHING" if status else ""))
    if status:
        print("\n".join(text.splitlines()[-60:]))
    return status != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="build folder of the targets")
    parser.add_argument("--real", type=Path, required=True, help="folder of tests/weights/real_files.py")
    parser.add_argument("--seconds", type=int, default=600, help="of each target")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("targets", nargs="*")
    arguments = parser.parse_args()
    folder = arguments.build.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    build(folder, arguments.jobs)
    shutil.rmtree(folder / "seeds", ignore_errors=True)
    write_seeds(folder / "seeds", arguments.real)

    waiting, running, found = list(arguments.targets or targets()), [], 0
    while waiting or running:
        while waiting and len(running) < arguments.jobs:
            running.append(start(folder, waiting.pop(0), arguments.seconds, arguments.seed))
        for job in [job for job in running if job[1].poll() is not None]:
            running.remove(job)
            found += report(job[0], job[1].returncode, job[2])
        time.sleep(0.1)
    print(f"fuzz: {found} targets found something")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
