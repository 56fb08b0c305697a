#!/usr/bin/env bash
# Builds posenc with another LibTorch and runs tests with it, Python's torch of the same version included.
#   tools/test_torch.sh VERSION [cpu|cuda]     by default the build that pip prefers
# TEST_GROUPS: the tests, by their names in ctest; "all" for every one. FLAGS: the compiler's, by default the release preset's.
# Uses .venv-torch-VERSION[-BUILD] and build/torch-VERSION[-BUILD], which may be deleted at any time.
set -euo pipefail
cd "$(dirname "$0")/.."
eval "$(grep -E '^(torch_cpu_index|clang_format_pin)=' tools/setup.sh)" # where CPU builds are, and what a test of all runs
version=${1:-} build=${2:-}
groups=${TEST_GROUPS:-core kernels weights positions_tables positions_functional positions_nn transformer modules}
fail() { printf 'test-torch: %s\n' "$*" >&2; exit 1; }
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "VERSION must be a version of torch, such as 2.12.0. Got '$version'"
[[ $build =~ ^(cpu|cuda)?$ ]] || fail "BUILD must be cpu or cuda. Got '$build'"

name=torch-$version${build:+-$build}
venv=.venv-$name folder=build/$name
python=$venv/bin/python
about() { "$python" -c 'import torch; print(torch.__version__.split("+")[0], "cuda" if torch.version.cuda else "cpu")' 2>/dev/null; }
if [[ "$(about)" != "$version "*"$build" ]]; then
  echo "==> installing torch $version${build:+, the $build build,} into $venv"
  "$python" -c 'import pip' 2>/dev/null || python3 -m venv "$venv"
  case $build in
    cpu) # CPU builds are in an index of their own, or where the user has configured pip to look
      "$python" -m pip install --quiet ${torch_cpu_index:+--extra-index-url "$torch_cpu_index"} "torch==$version+cpu" ||
        fail "no CPU build of torch $version was found; POSENC_TORCH_CPU_INDEX names an index that has one" ;;
    *) "$python" -m pip install --quiet "torch==$version" || fail "pip finds no torch $version" ;;
  esac
  [[ "$(about)" == "$version "*"$build" ]] || fail "the torch that pip has installed must be $version $build. Got $(about)"
fi
"$python" -m pip install --quiet -r notebooks_ref/requirements.txt "$clang_format_pin"

targets=() labels=.
if [ "$groups" != all ]; then
  for group in $groups; do targets+=("${group}_test"); done
  labels="^(${groups// /|})\$"
fi
echo "==> building $folder with torch $(about)"
mkdir -p "$folder"
cmake --preset release -B "$folder" -DPOSENC_BUILD_TESTS:BOOL=ON -DPOSENC_PYTHON:FILEPATH="$PWD/$python" \
  -DTorch_DIR:PATH="$("$python" -c 'import torch; print(torch.utils.cmake_prefix_path)')/Torch" \
  ${FLAGS:+"-DCMAKE_CXX_FLAGS_RELEASE=$FLAGS"} >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log" >&2; exit 1; }
cmake --build "$folder" ${targets:+--target posenc-cli "${targets[@]}"}
ctest --test-dir "$folder" --output-on-failure --no-tests=error -j2 -L "$labels"
if [ -x .venv/bin/python ]; then "$python" -W ignore tools/torch_operations.py .venv/bin/python; fi
echo "==> passed with torch $(about): $groups"
