#!/usr/bin/env bash
# Configures a preset if necessary, and builds it.
#   tools/build.sh PRESET [TARGET...]        WITH_TESTS=ON to configure with the tests
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
. build/setup.env
folder=build/$preset
with_tests=${WITH_TESTS:-OFF}
log=$folder/configure.log

# A folder configured with tests keeps them, so that `make demo` after `make test` does not reconfigure.
cached() { grep -qsxF "$1" "$folder/CMakeCache.txt"; }
if [ ! -f "$folder/build.ninja" ] || ! cached "Torch_DIR:PATH=$TORCH_DIR" || ! cached "POSENC_PYTHON:FILEPATH=$PYTHON" ||
  { [ "$with_tests" = ON ] && ! cached "POSENC_BUILD_TESTS:BOOL=ON"; }; then
  echo "==> configuring $folder"
  mkdir -p "$folder"
  cmake --preset "$preset" -DTorch_DIR:PATH="$TORCH_DIR" -DPOSENC_PYTHON:FILEPATH="$PYTHON" \
    -DPOSENC_BUILD_TESTS:BOOL="$with_tests" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
fi
echo "==> building $folder"
cmake --build "$folder" ${1:+--target "$@"}
