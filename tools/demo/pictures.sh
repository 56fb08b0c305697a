#!/usr/bin/env bash
# Step 5 of the demo: pictures.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
step 5 "Pictures" <<'TEXT'
What it proves: the encodings have the structure that the textbooks describe.
Each file is drawn from the values that the C++ modules use.
TEXT
"$bin/posenc" plot --out "$out/pictures" --preset vaswani2017 --dim 128 --length 100 >/dev/null
show() { # FILE WHAT
  [ -s "$1" ] || fail "$1 was not drawn"
  printf '%-36s %s\n' "$1" "$2"
}
show "$out/pictures/heat_map.png" "the values: positions by channels"
show "$out/pictures/waveforms.png" "some channels: waves of all lengths"
show "$out/pictures/similarity.png" "similarity falls with the distance"
show "$out/pronounce/curve.png" "what the Transformer learnt, and when"
