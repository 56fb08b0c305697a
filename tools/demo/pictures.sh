#!/usr/bin/env bash
# Step 5 of the demo: pictures.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
step 5 "Pictures" <<'TEXT'
What it proves: the encodings have the structure that the textbooks describe.
Each file is drawn from the values that the C++ modules use.
TEXT
draw() { "$PYTHON" tools/plot.py --posenc "$bin/tests/posenc-parity" "$@" >/dev/null || fail "a picture could not be drawn"; }
draw table --out "$out/pictures" --preset vaswani2017 --dim 128 --length 100
draw pronounce "$out/pronounce/curve.jsonl" --out "$out/pictures/curve.png"
show() { printf '%-36s %s\n' "$out/pictures/$1" "$2"; } # FILE WHAT
show heat_map.png "the values: positions by channels"
show waveforms.png "some channels: waves of all lengths"
show similarity.png "similarity falls with the distance"
show curve.png "what the Transformer learnt, and when"
