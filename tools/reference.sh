#!/usr/bin/env bash
# Builds the site, the documents and the API reference, with Doxygen; exits 1 for a warning, a broken link or a wrong spelling, 77 if Doxygen
# or Aspell is not installed.
#   tools/reference.sh [FOLDER]      writes FOLDER/VERSION, and FOLDER/index.html, which leads to the newest; FOLDER defaults to build/docs
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in doxygen aspell; do
  command -v $tool >/dev/null || { echo "reference: $tool is not installed (make setup installs it)" >&2; exit 77; }
done
python3 -B tools/spelling.py
POSENC_DOCS_OUT=${1:-build/docs}
POSENC_VERSION=$(sed -n 's/^#define POSENC_VERSION "\(.*\)"$/\1/p' include/posenc/version.h)
export POSENC_DOCS_OUT POSENC_VERSION
rm -rf "${POSENC_DOCS_OUT:?}/$POSENC_VERSION" "$POSENC_DOCS_OUT/xml" # pages of removed names
mkdir -p "$POSENC_DOCS_OUT"
doxygen docs/doxygen/Doxyfile
python3 -B tools/reference_pages.py "$POSENC_DOCS_OUT" "$POSENC_VERSION"
exec python3 -B tools/reference_check.py "$POSENC_DOCS_OUT/$POSENC_VERSION"
