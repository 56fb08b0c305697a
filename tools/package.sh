#!/usr/bin/env bash
# Makes what a release hands out, in build/packages: of the tokenizers (a shared library, without LibTorch) and of everything (archives
# and the command line, for the LibTorch that posenc is built with) an archive and a Debian package each.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in file dpkg-shlibdeps; do
  command -v $tool >/dev/null || { echo "package: $tool must be installed (Debian's packages file and dpkg-dev)" >&2; exit 1; }
done
out=$PWD/build/packages
rm -rf "$out"
mkdir -p "$out"
tools/build.sh release posenc posenc-cli
folder=build/tokenizers
cmake -S . -B $folder -G Ninja -DCMAKE_BUILD_TYPE=Release -DPOSENC_COMPONENTS=tokenizers -DBUILD_SHARED_LIBS=ON >$folder.log 2>&1 ||
  { cat $folder.log >&2; exit 1; }
echo "==> building $folder"
cmake --build $folder
for build in $folder build/release; do
  echo "==> packing $build"
  cpack --config $build/CPackConfig.cmake -B "$out" >$folder.log 2>&1 || { cat $folder.log >&2; exit 1; }
done
rm -rf "$out/_CPack_Packages"
(cd "$out" && sha256sum ./*.tar.gz ./*.deb | tee SHA256SUMS)
