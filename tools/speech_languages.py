#!/usr/bin/env python3
"""Writes src/speech/generation/languages.cpp: the languages of Whisper and their names in transformers. With --check it only
compares, and fails if the file differs.

Needs the version of transformers that the table names.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

TABLE = Path(__file__).resolve().parent.parent / "src/speech/generation/languages.cpp"
HEAD = """// Written by tools/speech_languages.py from transformers {version}.
#include "speech/generation/languages.h"

namespace posenc::speech {{

// Names, and the code of each; the first name of a code is that which transformers uses.
// clang-format off
const std::vector<Language>& known_languages() {{
  static const std::vector<Language> kLanguages = {{
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    import transformers
    from transformers.models.whisper.tokenization_whisper import LANGUAGES, TO_LANGUAGE_CODE

    assert list(TO_LANGUAGE_CODE.items())[:len(LANGUAGES)] == [(name, code) for code, name in LANGUAGES.items()]
    rows = [f'{{"{name}", "{code}"}},' for name, code in TO_LANGUAGE_CODE.items()]
    lines = ["      " + " ".join(rows[at:at + 4]) for at in range(0, len(rows), 4)]
    text = HEAD.format(version=transformers.__version__) + "\n".join(lines) + "\n  };\n  return kLanguages;\n}\n// clang-format on\n\n}  // namespace posenc::speech\n"
    if not check:
        TABLE.write_text(text)
    elif TABLE.read_text() != text:
        sys.exit(f"{TABLE.name} is not what tools/speech_languages.py writes")


if __name__ == "__main__":
    main()
