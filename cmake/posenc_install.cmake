# Installation and export: consumers need LibTorch, which posencConfig.cmake finds itself,
# and OpenMP, which is a flag of the compiler's.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/posenc")

install(TARGETS posenc EXPORT posencTargets FILE_SET HEADERS)
install(EXPORT posencTargets NAMESPACE posenc:: DESTINATION "${package_dir}")
if(TARGET posenc-cli)
  install(TARGETS posenc-cli)
endif()

configure_package_config_file(cmake/posencConfig.cmake.in posencConfig.cmake INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(posencConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/posencConfig.cmake"
  "${PROJECT_BINARY_DIR}/posencConfigVersion.cmake"
  DESTINATION "${package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/posenc")
