#!/usr/bin/env bash
# Step 2 of the demo: the weights of a user's own nn.Module in C++.
#   module.sh [BLOCK.pt SAMPLE.safetensors]        files that module.py has written
set -euo pipefail
. "$(dirname "$0")/settings.sh"
step 2 "Your own nn.Module, although its names differ in C++" <<'TEXT'
What it proves: a checkpoint of torch.save() goes into a C++ class that has
other names and keeps query, key and value in one matrix; the outputs are then
bit-identical to Python's. A file that does not fit is refused with a reason.
These lines of tools/demo/module.cpp load it (three tensors become one):
TEXT
sed -n '/^\/\/ shown:$/,/^\/\/ end$/p' tools/demo/module.cpp | sed '1d;$d;s/^/  /'
echo
[ $# -gt 0 ] || "$PYTHON" tools/demo/module.py "$out"
"$bin/posenc-demo-module" "${1:-$out/block.pt}" "${2:-$out/block_sample.safetensors}" ||
  fail "the outputs differ from Python's, or a wrong file was not refused"
