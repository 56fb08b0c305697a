# Installation and export. Consumers need LibTorch, which posencConfig.cmake finds itself.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/posenc")

install(TARGETS posenc posenc_identify EXPORT posencTargets FILE_SET HEADERS)
install(EXPORT posencTargets NAMESPACE posenc:: DESTINATION "${package_dir}")
if(TARGET posenc-cli)
  install(TARGETS posenc-cli)
  set(share "${PROJECT_SOURCE_DIR}/src/cli/share") # written by tools/command_line_doc.py
  install(FILES "${share}/posenc.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${share}/posenc.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME posenc)
  install(FILES "${share}/_posenc" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
endif()

string(REGEX MATCH "^[0-9]+[.][0-9]+" posenc_torch_series "${Torch_VERSION}")
string(REPLACE "." "[.]" posenc_torch_pattern "${posenc_torch_series}")
configure_package_config_file(cmake/posencConfig.cmake.in posencConfig.cmake INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(posencConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/posencConfig.cmake"
  "${PROJECT_BINARY_DIR}/posencConfigVersion.cmake"
  cmake/posenc_torch.cmake
  DESTINATION "${package_dir}")
# For builds without CMake. LibTorch is the one that posenc was built with; all of it is loaded, so that a GPU is seen.
if(POSENC_OPENMP_LIBRARY STREQUAL "gomp") # LLVM's has no name that every linker finds
  file(RELATIVE_PATH posenc_pc_up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /prefix)
  configure_file(cmake/posenc.pc.in posenc.pc @ONLY)
  configure_file(cmake/posenc_identify.pc.in posenc_identify.pc @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/posenc.pc" "${PROJECT_BINARY_DIR}/posenc_identify.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/posenc")

# What is installed needs this LibTorch wherever it stands, and .venv inside the source folder is easily deleted with it.
set(note "posenc uses the LibTorch in $<TARGET_FILE_DIR:torch_cpu>")
cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${Torch_DIR}" NORMALIZE inside)
if(inside)
  string(APPEND note ", which is in the source folder: keep that, or build with another LibTorch (Torch_DIR)")
endif()
install(CODE "message(STATUS \"${note}\")")
