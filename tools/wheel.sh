#!/usr/bin/env bash
# Builds a wheel in build/wheels for the torch of a Python, by default that of .venv, and tests it in a fresh environment.
#   tools/wheel.sh [PYTHON [MODEL]]      MODEL: an encoder for the test, which is made if it is not given
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-.venv/bin/python}
model=${2:-build/wheel_models/bert}
"$python" -m pip install --quiet scikit-build-core==1.1.2
rm -rf build/wheels
"$python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheels .
[ -n "${2:-}" ] || .venv/bin/python tests/models/encoder/make_models.py --out build/wheel_models
"$python" tests/package/wheel_test.py build/wheels/*.whl "$model"
ls -l build/wheels
