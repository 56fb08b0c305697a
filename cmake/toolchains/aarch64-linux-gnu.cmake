# ARM64 Linux, built by Debian's cross compiler and run by qemu: ctest and gtest_discover_tests start its programs by
# CMAKE_CROSSCOMPILING_EMULATOR. tools/arm64/sysroot.sh makes the folder that it needs.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(POSENC_ARM64_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../../build/arm64_sysroot" CACHE PATH "What tools/arm64/sysroot.sh has made")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES POSENC_ARM64_SYSROOT)
cmake_path(ABSOLUTE_PATH POSENC_ARM64_SYSROOT NORMALIZE OUTPUT_VARIABLE posenc_arm64)
if(NOT EXISTS "${posenc_arm64}/root/proc/cpuinfo")
  message(FATAL_ERROR "[posenc] POSENC_ARM64_SYSROOT must be a folder that tools/arm64/sysroot.sh has made. Got ${posenc_arm64}")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# The cross compiler brings the C and C++ libraries, the root all others.
set(posenc_arm64_include "${posenc_arm64}/root/usr/include")
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES "${posenc_arm64_include}" "${posenc_arm64_include}/aarch64-linux-gnu")
set(posenc_arm64_lib "${posenc_arm64}/root/usr/lib/aarch64-linux-gnu")
string(CONCAT posenc_arm64_link "-L${posenc_arm64_lib} -Wl,-rpath-link,${posenc_arm64_lib}"
  " -Wl,-rpath-link,${posenc_arm64}/root/lib/aarch64-linux-gnu -Wl,-rpath-link,${posenc_arm64}/site/nvidia/cu13/lib")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "${posenc_arm64_link}")
endforeach()

set(CMAKE_FIND_ROOT_PATH "${posenc_arm64}/root" "${posenc_arm64}/site")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()

# A processor without SVE, whose features root/proc/cpuinfo lists.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu neoverse-n1 -L "${posenc_arm64}/root")
