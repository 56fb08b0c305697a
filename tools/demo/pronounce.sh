#!/usr/bin/env bash
# Step 4 of the demo: a Transformer that learns to pronounce English.
#   pronounce.sh [DICTIONARY TRAIN_OPTION...]        another dictionary, and options of posenc-pronounce train
set -euo pipefail
. "$(dirname "$0")/settings.sh"
step 4 "A Transformer that learns to pronounce English" <<'TEXT'
What it proves: training in C++ works, from the loss to the learning rate. The
model reads letters and writes phonemes, and is tested on 1,000 words of the CMU
dictionary that it has not seen. An untrained one gets every phoneme wrong; the
demo fails above 35 %. It takes about a minute; after Ctrl-C, the next run
resumes it.
TEXT
dictionary=${1:-$(tools/dictionary.sh)}
[ $# -gt 0 ] && shift
folder=$out/pronounce
if [ -f "$folder/model.safetensors" ]; then
  printf 'An earlier run has trained it. To train it again, remove\n%s\n' "$folder"
else
  "$bin/posenc-pronounce" train --dictionary "$dictionary" --minutes 1 --reports 5 --out "$folder" "$@" >/dev/null
fi
echo
"$bin/posenc-pronounce" test --dictionary "$dictionary" --model "$folder/model.safetensors" --show 8 --at-most 35 ||
  fail "the model has not learnt to pronounce"
