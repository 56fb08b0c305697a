"""Random differential tests against Python packages, with new seeds, for as long as time permits.

    run.py --posenc POSENC --driver POSENC_DIFFERENTIAL [--labels CASES] [--seconds S] [--seed N] [--area NAME...] [--batch N] [--batches N]

Prints its seed first. The same seed gives the same batches; `--area` and `--batch` select one of them. The files of a
batch that failed are kept in the folder that is printed.
"""

import argparse
import importlib
import secrets
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import torch

from harness import Draw, Failure, Programs, drawn

AREAS = ["attention", "bfloat16", "chat_templates", "decoders", "decoder_texts", "layers", "formats", "translation", "embeddings", "encoders", "outputs", "pairs", "published", "relative", "rerank", "saved", "saved_heads", "saved_sentences", "saved_seq2seq", "encoder_embeddings", "encoded", "optimizers", "functions", "generation", "heads", "int8", "jina_bert", "labels", "lora", "multivector", "rotary", "searches", "sentence_texts", "sentences", "seq2seq", "seq2seq_nulls", "sinusoids", "sparse", "speech", "speech_parts", "speech_texts", "vision", "whisper_logits"]
DRAWN = ["frozen", "modules", "training"]  # the driver draws the cases itself and has both sides


def batch(area: str, seed: int, number: int, programs: Programs) -> tuple[int, list[Failure]]:
    """Runs a batch; returns the number of cases and the failures."""
    torch.manual_seed(Draw(f"{seed}/{area}/{number}/torch").getrandbits(62))
    try:
        if area in DRAWN:
            return drawn(area, Draw(f"{seed}/{area}/{number}"), programs)
        return importlib.import_module(area).batch(Draw(f"{seed}/{area}/{number}"), programs)
    except Exception:  # an error in Python itself: nothing was compared
        return 1, [Failure("the batch itself", traceback.format_exc())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--labels", help="posenc-label-cases, which the area of that name needs")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--area", nargs="+", choices=AREAS + DRAWN, default=AREAS + DRAWN)
    parser.add_argument("--batch", type=int, default=None, help="this one alone")
    parser.add_argument("--batches", type=int, default=None, help="this many of each area, whatever the time")
    options = parser.parse_args()
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)  # the reference is Python on one thread
    begin, number = time.monotonic(), options.batch or 0
    cases, spent, wrong = dict.fromkeys(options.area, 0), dict.fromkeys(options.area, 0.0), 0

    def done() -> bool:
        if options.batch is not None:
            return number > options.batch
        if options.batches is not None:
            return number >= options.batches
        return time.monotonic() - begin > options.seconds

    while not done():
        for area in options.area:
            if options.batches is None and options.batch is None and time.monotonic() - begin > options.seconds:
                break
            folder = Path(tempfile.mkdtemp(prefix=f"posenc-{area}-"))
            start = time.monotonic()
            count, failures = batch(area, seed, number, Programs(options.posenc, options.driver, folder, options.labels))
            cases[area] += count
            spent[area] += time.monotonic() - start
            wrong += len(failures)
            for failure in failures:
                print(f"{area}: {failure.what}\n    {failure.why}")
            if failures:
                print(f"    again: SEED={seed} AREA={area} BATCH={number}; files: {folder}", flush=True)
            else:
                shutil.rmtree(folder)
        number += 1
    for area in options.area:
        print(f"{area}: {cases[area]} cases in {spent[area]:.0f} s")
    print(f"{sum(cases.values())} cases, {wrong} failed, seed {seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
