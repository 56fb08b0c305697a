#!/usr/bin/env bash
# The demo: the steps in tools/demo, each of which can also be run alone. `make demo` installs and builds what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."
began=$SECONDS
cat <<'TEXT'

posenc brings PyTorch models to C++: weights, modules, inference and training.
Five steps show it on this machine. Each of them checks what it shows; if one
fails, so does the demo.
TEXT
for name in encoder module notebooks pronounce pictures; do "tools/demo/$name.sh"; done
cat <<TEXT

== What you have seen, in $((SECONDS - began)) seconds

  1. text to vectors in C++, the ids and the vectors of transformers' BERT
  2. a Python module of other names, bit-identical in C++
  3. every module of five notebooks, bit-identical, and a mistake detected
  4. a Transformer trained in C++, tested on words that it had not seen
  5. pictures of what the modules compute

What to try next

  make build                                the command line, in two minutes
  build/release/posenc inspect FOLDER       a model that you have downloaded
  build/release/posenc encode FOLDER --text LINES.txt --out VECTORS.safetensors
  build/release/posenc inspect FILE.pt      your own checkpoint
  build/release/posenc-pronounce say \\
    --model build/demo/pronounce/model.safetensors YOUR WORDS
  make pronounce                            half the errors, in five minutes
  docs/encoders.md, docs/weights.md         steps 1 and 2 in your own program
TEXT
