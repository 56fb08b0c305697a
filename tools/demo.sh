#!/usr/bin/env bash
# The demo: compares the notebooks' modules, saved by Python as TorchScript, with the C++ classes; embeds a page of text
# and recovers it; draws the plots; trains a Transformer to pronounce English in a minute. `make demo` installs what it
# needs and builds first.
set -euo pipefail
cd "$(dirname "$0")/.."
. "${POSENC_SETUP:-build/setup.env}" # PYTHON
bin=${POSENC_BUILD:-build/release}
out=${POSENC_DEMO_OUT:-build/demo}

say() { printf '\n==> %s\n' "$*"; }

[ -n "${POSENC_BUILD:-}" ] || tools/build.sh release posenc-cli posenc-demo posenc-pronounce

# Python writes the files once, and again if the reference or its torch has changed.
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

say "Each C++ module compared with Python's TorchScript: same weights, same inputs"
"$bin/posenc" verify "$out"/torchscript/*.script.pt

say "The check can fail: a TokenAndPositionEmbedding without the multiplication by sqrt(d_model)"
if "$bin/posenc" verify "$out"/torchscript/wrong/*.pt; then
  echo "demo: the wrong module was not detected" >&2
  exit 1
fi

say "A page of Alice's Adventures in Wonderland: words -> ids -> embeddings -> words"
"$bin/posenc-demo" tools/demo/alice.txt

say "Plots"
"$bin/posenc" plot --out "$out/pictures" --preset notebook_000 --dim 128 --length 100

if [ -f build/pronounce/model.safetensors ]; then
  say "A Transformer trained to pronounce English (build/pronounce)"
elif [ -f build/pronounce/checkpoint.safetensors ]; then
  say "The training of a Transformer that pronounces English is incomplete; make pronounce resumes it"
else
  say "Training a Transformer on the CMU Pronouncing Dictionary; about a minute, only the first time"
  POSENC_BUILD="$bin" tools/pronounce.sh 1
fi
if [ -f build/pronounce/model.safetensors ]; then
  "$bin/posenc-pronounce" say --n-best 2 hello transformer embedding gnocchi
fi

say "What you have seen"
cat <<TEXT
  * every module of the five notebooks in C++, with the weights that Python saved: bit-identical results
  * a module without its scale, which the comparison detects
  * a page of text, embedded and recovered from the embeddings
  * the pronunciation of four words by an encoder-decoder Transformer that was trained in C++ on this machine. Its error
    rate on 1,000 held-out words is in build/pronounce/curve.jsonl and curve.png; make pronounce trains a better one
  TorchScript files  $out/torchscript/
  plots              $out/pictures/{heat_map,waveforms,similarity}.{png,svg}
  your own module    $bin/posenc verify model.pt
  your own words     $bin/posenc-pronounce say WORD...
TEXT
