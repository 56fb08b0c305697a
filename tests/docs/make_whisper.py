"""A small Whisper of random weights, which the examples and commands of the documents transcribe with.

    tests/docs/make_whisper.py FOLDER
"""

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "differential"))
import whisper_folders  # noqa: E402
from harness import Draw  # noqa: E402

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    whisper_folders.folder(Draw("documents"), folder, ["en", "de"], positions=448)
