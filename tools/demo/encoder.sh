#!/usr/bin/env bash
# Step 1 of the demo: a BERT of transformers in C++.
#   encoder.sh [FOLDER]        compares with the model in FOLDER instead of a new one
set -euo pipefail
. "$(dirname "$0")/settings.sh"
step 1 "From text to vectors with a model of Hugging Face's transformers" <<'TEXT'
What it proves: posenc reads the folder that save_pretrained() wrote as it is,
makes the ids of sentences and the vectors that transformers makes. Every
weight is random, so a swapped or forgotten tensor would show. The program is
tools/demo/encoder.cpp.
TEXT
"$PYTHON" tools/demo/encoder.py --program "$bin/posenc-demo-encoder" --out "$out/bert" ${1:+--saved "$1"} ||
  fail "C++ does not compute what transformers computed"
