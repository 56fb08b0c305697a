#!/usr/bin/env bash
# Step 3 of the demo: the notebooks' modules, each against its TorchScript.
#   notebooks.sh [FOLDER]        TorchScript files that notebooks_ref/reference/torchscript.py has written
set -euo pipefail
. "$(dirname "$0")/settings.sh"
scripts=${1:-$out/torchscript}
step 3 "The modules of five notebooks, bit by bit" <<'TEXT'
What it proves: with the weights that Python saved, each C++ class computes the
same bits as Python's, whose code runs beside it as TorchScript. The notebooks
(notebooks_ref) embed tokens, positions and timesteps. The last line has a
deliberate mistake, which the comparison must detect.
TEXT

key() { # changes with the reference and with torch
  local torch
  torch=$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
  { echo "$PYTHON"; find notebooks_ref/reference -name '*.py' -print0 | LC_ALL=C sort -z | xargs -0 cat; cat "$torch/version.py"; } |
    sha256sum | cut -d' ' -f1
}
if [ $# = 0 ]; then
  stamp=$out/export.stamp
  now=$(key)
  if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$now" ]; then
    rm -rf "$scripts" "$stamp"
    "$PYTHON" notebooks_ref/reference/torchscript.py --out "$scripts" >/dev/null
    echo "$now" >"$stamp"
  fi
fi

verdict() { # the last line of `posenc-parity verify`: "equal: 7 of 7 inputs, bit for bit"
  "$bin/tests/posenc-parity" verify "$1" 2>&1 | tail -n 1
}
line() { printf 'notebook %s   %-28s %s\n' "$@"; } # NUMBER WHAT VERDICT
compared=0 different=0
shopt -s nullglob
for notebook in notebooks_ref/[0-9]*.ipynb; do
  notebook=$(basename "$notebook" .ipynb) # 03_token_and_position_embedding
  for file in "$scripts/${notebook#*_}"__*.script.pt; do
    said=$(verdict "$file") || true
    name=$(basename "$file" .script.pt)
    line "${notebook%%_*}" "${name#*__}" "$said"
    compared=$((compared + 1))
    [[ $said == equal:*", bit for bit" ]] || different=$((different + 1))
  done
done
[ "$compared" -gt 0 ] || fail "$scripts has no modules"
[ "$different" = 0 ] || fail "$different of the modules are not bit-identical; posenc-parity verify $scripts/FILE shows the inputs"

mistake=$(verdict "$scripts"/wrong/*.script.pt) && fail "the module without its scale was not detected"
[[ $mistake == "NOT equal:"* ]] || fail "the module without its scale could not be compared: $mistake"
line 03 "a mistake: no sqrt(d_model)" "$mistake"
