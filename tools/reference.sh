#!/usr/bin/env bash
# Builds the API reference with Doxygen; exits 1 for a warning or a broken link, 77 if Doxygen is not installed.
#   tools/reference.sh [FOLDER]      writes FOLDER/html; FOLDER defaults to build/docs
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v doxygen >/dev/null; then
  echo "reference: doxygen is not installed (make setup installs it)" >&2
  exit 77
fi
POSENC_DOCS_OUT=${1:-build/docs}
POSENC_VERSION=$(sed -n 's/^#define POSENC_VERSION "\(.*\)"$/\1/p' include/posenc/version.h)
export POSENC_DOCS_OUT POSENC_VERSION
rm -rf "$POSENC_DOCS_OUT/html" "$POSENC_DOCS_OUT/xml" # pages of removed names
mkdir -p "$POSENC_DOCS_OUT"
doxygen docs/doxygen/Doxyfile
python3 -B tools/reference_pages.py "$POSENC_DOCS_OUT"
exec python3 -B tools/reference_check.py "$POSENC_DOCS_OUT/html"
