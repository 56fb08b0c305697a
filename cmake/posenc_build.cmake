# How posenc's own targets are compiled, and where LibTorch is looked for.

# LibTorch: the user's CMAKE_PREFIX_PATH or Torch_DIR, else a Python whose `import torch` works
# (.venv first). A macro, because TorchConfig.cmake leaves variables for its caller.
macro(posenc_find_torch)
  set(kineto_LIBRARY torch) # wheels have no static kineto; without this TorchConfig.cmake warns about it
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON) # who uses posenc by add_subdirectory has to see LibTorch's targets
  find_package(Torch QUIET)
  if(NOT Torch_FOUND)
    foreach(python "${POSENC_PYTHON}" "${PROJECT_SOURCE_DIR}/.venv/bin/python" python3)
      execute_process(
        COMMAND "${python}" -c "import torch; print(torch.utils.cmake_prefix_path)"
        OUTPUT_VARIABLE posenc_torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE
        ERROR_QUIET RESULT_VARIABLE posenc_torch_result)
      if(posenc_torch_result EQUAL 0)
        break()
      endif()
    endforeach()
    if(NOT posenc_torch_result EQUAL 0)
      message(FATAL_ERROR "[posenc] LibTorch was not found: pass -DCMAKE_PREFIX_PATH=<folder of LibTorch>, "
        "or -DPOSENC_PYTHON=<a Python with torch>, or run `make setup`")
    endif()
    find_package(Torch REQUIRED HINTS "${posenc_torch_prefix}")
  endif()
  unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
  if(NOT posenc_torch_said STREQUAL "${Torch_DIR}")
    message(STATUS "LibTorch ${Torch_VERSION}: ${Torch_DIR}")
    set(posenc_torch_said "${Torch_DIR}" CACHE INTERNAL "")
  endif()
endmacro()

# Settings shared by library, command line and tests. They have to be identical flag for flag, or
# the compiler refuses the shared precompiled header.
function(posenc_define_build_settings)
  add_library(posenc_build_settings INTERFACE)
  target_compile_features(posenc_build_settings INTERFACE cxx_std_20)
  target_compile_options(posenc_build_settings INTERFACE
    -fPIC -Wall -Wextra -Wpedantic $<$<BOOL:${POSENC_DEVELOPER}>:-Werror>
    $<$<AND:$<BOOL:${POSENC_PCH}>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess> # for ccache
    ${OpenMP_CXX_FLAGS})
  target_link_libraries(posenc_build_settings INTERFACE fmt::fmt-header-only nlohmann_json::nlohmann_json)
endfunction()

# posenc_own_target(target): compile a target of this project with the shared settings.
function(posenc_own_target target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:posenc_build_settings>)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  if(POSENC_PCH)
    if(target STREQUAL "posenc")
      target_precompile_headers(posenc PRIVATE "${PROJECT_SOURCE_DIR}/src/pch.h")
    else()
      target_precompile_headers(${target} REUSE_FROM posenc)
    endif()
  endif()
endfunction()

# ccache keeps files that use a precompiled header only with these settings.
set(POSENC_CCACHE_SETTINGS CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
if(PROJECT_IS_TOP_LEVEL)
  find_program(POSENC_CCACHE ccache)
  if(POSENC_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env ${POSENC_CCACHE_SETTINGS} "${POSENC_CCACHE}")
  endif()
endif()
