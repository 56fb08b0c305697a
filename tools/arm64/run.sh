#!/usr/bin/env bash
# Builds posenc for ARM64 Linux on x86-64, and runs its tests by emulation.
#   tools/arm64/run.sh kernels        only kernels and exact tables, without LibTorch, in build/arm64_kernels
#   tools/arm64/run.sh all [REGEX]    library, command line and tests, in build/arm64; REGEX selects groups of tests
# Exit status 77: what it needs could not be downloaded.
set -euo pipefail
cd "$(dirname "$0")/../.."
say() { printf '==> %s\n' "$*"; }
toolchain=$PWD/cmake/toolchains/aarch64-linux-gnu.cmake
export OMP_WAIT_POLICY=PASSIVE
tools/arm64/sysroot.sh "$1"

if [ "$1" = kernels ]; then
  export GTEST_FILTER='-ExactMpfr.*:ExactBits.AreTheSameEverywhere'
  folder=build/arm64_kernels
  cmake -S tools/arm64/kernels -B "$folder" -G Ninja --toolchain "$toolchain" >"$folder.log" || { cat "$folder.log"; exit 1; }
  grep 'left out' "$folder.log" || true
  say "arm64: left out: ExactMpfr and ExactBits.AreTheSameEverywhere (millions of entries take minutes in emulation)"
  cmake --build "$folder"
  exec ctest --test-dir "$folder" --output-on-failure
fi

folder=build/arm64
torch=$PWD/build/arm64_sysroot/site/torch/share/cmake/Torch
groups=(catalogue core inference kernels modules positions_functional positions_nn positions_tables positions_tables.exact_digests transformer)
selected=()
for group in "${groups[@]}"; do
  if [[ "$group" =~ ^(${2:-.*})$ ]]; then selected+=("$group"); fi
done
if [ ${#selected[@]} -eq 0 ]; then
  echo "arm64: GROUPS must be a regular expression of groups: ${groups[*]}. Got ${2:-}" >&2
  exit 1
fi
targets=(posenc posenc-cli)
for group in "${selected[@]}"; do
  case $group in *.*) ;; *) targets+=("${group}_test") ;; esac
done
cmake --preset release -B "$folder" --toolchain "$toolchain" -DTorch_DIR="$torch" -DPOSENC_PYTHON="$PWD/.venv/bin/python" \
  -DPOSENC_BUILD_TESTS=ON >"$folder.log" || { cat "$folder.log"; exit 1; }
say "arm64: building $folder"
cmake --build "$folder" --target "${targets[@]}"
say "arm64: running ${selected[*]}"
left_out='ExactMpfr.*:ExactBits.AreTheSameEverywhere:Identify.NamesEveryPreset*:IdentifyRotary.FindsTheParametersOfTransformersClasses:IdentifyRotary.FindsDynamicScalingByTheLengthOfTheTable:IdentifyRotary.ReadsComplexAndCombinedCaches:IdentifyRotary.PrintsOptionsThatRebuild:DefaultDtypes.TablesHavePythonsBits'
say "arm64: left out: $left_out (they take minutes in emulation, or compare with the bits of this machine's Python)"
export GTEST_FILTER="-$left_out"
ctest --test-dir "$folder" --output-on-failure -R "^($(IFS='|'; echo "${selected[*]}"))\$"
