#!/usr/bin/env bash
# Trains the model of examples/pronounce in build/pronounce, or resumes its training.
#   tools/pronounce.sh MINUTES [OPTION...]        options of posenc-pronounce train
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=$1
shift
dictionary=$(tools/dictionary.sh)
exec "${POSENC_BUILD:-build/release}/posenc-pronounce" train --dictionary "$dictionary" --minutes "$minutes" \
  --out build/pronounce "$@"
