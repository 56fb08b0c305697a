# An overlay port, in posenc's own sources: vcpkg install posenc --overlay-ports=packaging/vcpkg
# Not run: vcpkg downloads its tools and ports from places that could not be reached where this was written. The options are
# those that the packages of `make package` are built with, which are tested.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES oniguruma POSENC_WITH_ONIGURUMA)
set(components tokenizers)
if("torch" IN_LIST FEATURES)
  set(components all)
  list(APPEND options "-DTorch_DIR=$ENV{Torch_DIR}")
endif()
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS
  "-DPOSENC_COMPONENTS=${components}" -DPOSENC_BUILD_CLI=OFF -DPOSENC_BUILD_EXAMPLES=OFF -DPOSENC_BUILD_TESTS=OFF -DPOSENC_PCH=OFF ${options})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME posenc CONFIG_PATH lib/cmake/posenc)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
