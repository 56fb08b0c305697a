#!/usr/bin/env bash
# The demo: the notebooks' modules, saved by Python as TorchScript, against their C++ twins; a page of
# text through TokenAndPositionEmbedding and back; the pictures. `make demo` sets up and builds first.
set -euo pipefail
cd "$(dirname "$0")/.."
. "${POSENC_SETUP:-build/setup.env}" # PYTHON
bin=${POSENC_BUILD:-build/release}
out=${POSENC_DEMO_OUT:-build/demo}

say() { printf '\n==> %s\n' "$*"; }

[ -n "${POSENC_BUILD:-}" ] || tools/build.sh release posenc-cli posenc-demo

# Python writes the files once, and again when the reference or its torch has changed.
stamp=$out/export.stamp
key() {
  local torch
  torch=$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
  { echo "$PYTHON"; find notebooks_ref/reference -name '*.py' -print0 | LC_ALL=C sort -z | xargs -0 cat; cat "$torch/version.py"; } |
    sha256sum | cut -d' ' -f1
}
now=$(key)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$now" ]; then
  say "Python exports the notebooks' modules as TorchScript into $out/torchscript"
  rm -rf "$out/torchscript" "$stamp"
  mkdir -p "$out"
  PYTHONDONTWRITEBYTECODE=1 "$PYTHON" notebooks_ref/reference/torchscript.py --out "$out/torchscript"
  echo "$now" >"$stamp"
fi

say "Each module in C++ against Python's TorchScript: same weights, same inputs"
"$bin/posenc" verify "$out"/torchscript/*.script.pt

say "The check can fail: a TokenAndPositionEmbedding that forgot to multiply by sqrt(d_model)"
if "$bin/posenc" verify "$out"/torchscript/wrong/*.pt; then
  echo "demo: the wrong module was not noticed" >&2
  exit 1
fi

say "A page of Alice's Adventures in Wonderland: words -> ids -> embeddings -> words"
"$bin/posenc-demo" tools/demo/alice.txt

say "Pictures"
"$bin/posenc" plot --out "$out/pictures" --preset notebook_000 --dim 128 --length 100

say "What you have seen"
cat <<TEXT
  * every module of the five notebooks in C++, with the weights that Python saved: equal bit for bit
  * a module without its scale, found out
  * a page of text embedded, and read back from the embeddings
  TorchScript files  $out/torchscript/
  pictures           $out/pictures/{heat_map,waveforms,similarity}.{png,svg}
  your own module    $bin/posenc verify model.pt
TEXT
