#!/usr/bin/env bash
# The comparison as a test: live.sh POSENC; skipped unless `make zoo` has created its environment.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=.venv-zoo/bin/python
if [ ! -f .venv-zoo/zoo-stamp ]; then
  echo "zoo: skipped, the real packages are not here: make zoo installs them into .venv-zoo"
  exit 0
fi
exec "$python" -B tools/zoo/compare.py --posenc "$1" --threads 1 2
