#!/usr/bin/env bash
# Makes build/arm64_sysroot, with which programs for ARM64 Linux are built and run on x86-64. Quick if nothing is missing.
#   tools/arm64/sysroot.sh kernels | all
# kernels: Debian's arm64 packages for the tests without LibTorch (9 MB).
# all:     also those for the whole library, and LibTorch's ARM64 wheel (430 MB).
# Every package is unpacked as soon as it is there, so a run that was interrupted continues where it stopped.
# root/ holds Debian's files and a /proc/cpuinfo, site/ holds LibTorch.
# Exit status 77: something could not be downloaded.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$PWD/build/arm64_sysroot
root=$folder/root
site=$folder/site
state=$folder/apt
torch_wanted="" # of TORCH=, which is not for this
eval "$(grep "^torch_pin=" tools/setup.sh)" # the version that set-up installs by itself

say() { printf '==> %s\n' "$*"; }
fail() { printf 'arm64: %s\n' "$*" >&2; exit 1; }
unavailable() { printf 'arm64: %s\n' "$*" >&2; exit 77; }
case "${1:-}" in kernels | all) ;; *) fail "name what to make: kernels or all" ;; esac
for program in apt-get dpkg aarch64-linux-gnu-g++ qemu-aarch64-static; do
  command -v "$program" >/dev/null || unavailable "$program was not found: Debian's g++-aarch64-linux-gnu and qemu-user-static have to be installed (tools/setup.sh build arm64)"
done

packages=(libgtest-dev libmpfr-dev libmpfr6 libgmp-dev libgmp10)
if [ "$1" = all ]; then
  packages+=(zlib1g-dev zlib1g libfmt-dev libfmt9 nlohmann-json3-dev libcli11-dev
    libonig-dev libonig5 libgloo-dev)
fi

# --- Debian's packages: apt with a separate state, so the packages and architectures of this machine do not change.
# -----
apt() {
  local program=$1
  shift
  "$program" -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$state" -o Dir::State::status="$state/status" \
    -o Dir::Cache="$state/cache" -o APT::Sandbox::User= -o Acquire::Retries=2 "$@" >"$folder/log" 2>&1
}
missing=()
for package in "${packages[@]}"; do [ -f "$folder/unpacked/$package" ] || missing+=("$package"); done
if [ ${#missing[@]} -gt 0 ]; then
  say "arm64: downloading ${#missing[@]} Debian packages"
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$folder/debs" "$folder/unpacked" "$root"
  : >"$state/status"
  apt apt-get update --error-on=any || {
    cat "$folder/log" >&2
    unavailable "Debian's list of arm64 packages could not be downloaded (see above)"
  }
  for package in "${missing[@]}"; do
    (cd "$folder/debs" && apt apt-get download "$package") || {
      cat "$folder/log" >&2
      unavailable "the package $package for arm64 could not be downloaded (see above)"
    }
    dpkg -x "$folder/debs/${package}"_*.deb "$root"
    rm "$folder/debs/${package}"_*.deb
    touch "$folder/unpacked/$package"
  done
fi

# --- What an emulated program needs to start ---------------------------------------------------------------------------
# The cross compiler's C and C++ libraries, where the loader looks for them. Links to absolute paths would leave the root.
for file in /usr/aarch64-linux-gnu/lib/*.so*; do ln -sf "$file" "$root/usr/lib/aarch64-linux-gnu/"; done
mkdir -p "$root/lib"
ln -sf /usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1 "$root/lib/"
find "$root/usr/lib/aarch64-linux-gnu" -lname '/lib/*' | while read -r link; do ln -sf "$root$(readlink "$link")" "$link"; done
# LibTorch reads the processor's features from this file, and the host's describes another processor: qemu does not replace it.
mkdir -p "$root/proc"
for ((i = 0; i < $(nproc --all); ++i)); do
  printf '%s\t: %s\n' processor $i BogoMIPS 50.00 \
    Features 'fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp' \
    'CPU implementer' 0x41 'CPU architecture' 8 'CPU variant' 0x3 'CPU part' 0xd0c 'CPU revision' 1
  echo
done >"$root/proc/cpuinfo"

# --- LibTorch: pip has only the CUDA build for ARM64, of which libtorch_cpu.so needs two small libraries of CUDA. ----------
platforms=()
for tag in manylinux_2_28 manylinux_2_27 manylinux_2_26 manylinux_2_25 manylinux_2_24 manylinux_2_17 manylinux2014; do
  platforms+=(--platform "${tag}_aarch64")
done
wheel() { # wheel REQUIREMENT FILES...: unpacks the files of a wheel
  local requirement=$1 done=$folder/unpacked/$1
  shift
  if [ -f "$done" ]; then return; fi
  say "arm64: downloading $requirement"
  rm -rf "$folder/wheel"
  .venv/bin/python -m pip download --quiet --disable-pip-version-check --only-binary=:all: --no-deps "${platforms[@]}" \
    -d "$folder/wheel" "$requirement" >"$folder/log" 2>&1 || {
    cat "$folder/log" >&2
    unavailable "pip could not download $requirement for aarch64 (see above)"
  }
  .venv/bin/python - "$folder/wheel" "$site" "$@" <<'PY'
import fnmatch, pathlib, sys, zipfile
wheels, site, *patterns = sys.argv[1:]
with zipfile.ZipFile(next(pathlib.Path(wheels).glob("*.whl"))) as wheel:
    keep = [p for p in patterns if p[0] != "!"]
    drop = [p[1:] for p in patterns if p[0] == "!"]
    wheel.extractall(site, [name for name in wheel.namelist() if any(fnmatch.fnmatch(name, p) for p in keep)
                            and not any(fnmatch.fnmatch(name, p) for p in drop)])
PY
  rm -rf "$folder/wheel"
  touch "$done"
}
# Libraries that CMake's files of LibTorch name, and that are left out because they are large and need all of CUDA.
stub() {
  if [ ! -f "$site/torch/lib/$1" ]; then
    aarch64-linux-gnu-g++ -shared -fPIC -x c++ /dev/null -Wl,-soname,"$1" -o "$site/torch/lib/$1"
  fi
}
if [ "$1" = all ]; then
  [ -x .venv/bin/python ] || fail ".venv is missing: run 'make setup'"
  wheel "nvidia-cuda-runtime==13.0.*" 'nvidia/cu13/lib/*'
  wheel "nvidia-cuda-cupti==13.0.*" 'nvidia/cu13/lib/libcupti*'
  wheel "$torch_pin" 'torch/include/*' 'torch/lib/*' 'torch/share/cmake/*' \
    '!torch/lib/libtorch_cuda*' '!torch/lib/libtorch_nvshmem*' '!torch/lib/libtorch_python*'
  for library in libtorch_cuda.so libtorch_cuda_linalg.so libtorch_nvshmem.so; do stub "$library"; done
fi
