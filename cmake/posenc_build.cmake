# How posenc's own targets are compiled.
# posenc-budget: a function for each kind of target, which share their settings

include(posenc_kernels)

# Settings shared by library, command line and tests. Those of the same precompiled header have to be identical flag for
# flag, or the compiler rejects it.
function(posenc_define_build_settings)
  # By default g++ fuses multiply-adds if the processor can, which baseline x86-64 cannot; the bits would then differ
  # from those on x86-64.
  set(contract "")
  if(NOT POSENC_COMPILES_X86_64)
    set(contract -ffp-contract=off)
  endif()
  # What errors name as their place is relative: packages name no folder of the machine that built them.
  set(maps "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=" "$<$<BOOL:${TORCH_INSTALL_PREFIX}>:-fmacro-prefix-map=${TORCH_INSTALL_PREFIX}/include/=>")
  foreach(settings posenc_build_settings posenc_plain_settings) # the second for what includes nothing of LibTorch
    add_library(${settings} INTERFACE)
    target_compile_features(${settings} INTERFACE cxx_std_20)
    target_compile_options(${settings} INTERFACE
      -fPIC ${maps} ${contract} -Wall -Wextra -Wpedantic $<$<BOOL:${POSENC_DEVELOPER}>:-Werror>
      $<$<AND:$<BOOL:${POSENC_PCH}>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess> # for ccache
      $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=2000000>) # in KiB: collecting garbage takes g++ a sixth of its time
    target_link_libraries(${settings} INTERFACE nlohmann_json::nlohmann_json)
  endforeach()
  target_compile_options(posenc_build_settings INTERFACE ${POSENC_OPENMP_FLAGS})
  target_link_libraries(posenc_build_settings INTERFACE $<TARGET_NAME_IF_EXISTS:fmt::fmt-header-only> ${POSENC_OPENMP_LIBRARY})
endfunction()

# The folder of the program or library itself, in the paths of those that it loads.
set(POSENC_ORIGIN "$ORIGIN")
if(APPLE)
  set(POSENC_ORIGIN "@loader_path")
endif()

# Where packages look for LibTorch, relative to their prefix (posenc_relocate.cmake): a wheel is beside torch in site-packages.
set(POSENC_TORCH_FOLDER libtorch)
if(SKBUILD)
  set(POSENC_TORCH_FOLDER ../torch)
endif()

# posenc_internal_target(target [owner]): compiles a target of this project with the shared settings, the precompiled
# header of the target `owner`, by default posenc_precompiled, and the private headers.
function(posenc_internal_target target)
  posenc_shared_settings(${target} ${ARGN})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
endfunction()

# posenc_shared_library(target [folder...]): how a library is named and finds others, if it is shared: beside it, and in the folders.
function(posenc_shared_library target)
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE CXX
    INSTALL_RPATH "${POSENC_ORIGIN};${ARGN}"
    INSTALL_RPATH_USE_LINK_PATH ON)
  if(NOT SKBUILD) # a wheel would have a copy for each name
    set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${posenc_compatible})
  endif()
endfunction()

# posenc_plain_objects(target source...): objects of which no source includes anything of LibTorch, so that they compile fast and
# can be tested and fuzzed on their own.
function(posenc_plain_objects target)
  add_library(${target} OBJECT ${ARGN})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:posenc_plain_settings>)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  posenc_unity(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  # g++ 12 at -O3 reports overlaps in std::string's own operator+ where there are none (its bug 105651).
  target_compile_options(${target} PRIVATE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
endfunction()

# posenc_unit(target unit pattern): compiles those of the target's sources that match the pattern at a time, and no others with them.
function(posenc_unit target unit pattern)
  if(NOT POSENC_DEVELOPER)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "${pattern}")
    set_source_files_properties(${sources} PROPERTIES UNITY_GROUP ${unit})
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  endif()
endfunction()

# posenc_shared_settings(target [owner]): the same, for a target that uses public headers only.
function(posenc_shared_settings target)
  set(owner posenc_precompiled ${ARGN})
  list(GET owner -1 owner)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:posenc_build_settings>)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(POSENC_PCH)
    if(target STREQUAL owner)
      target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src/pch.h")
    else()
      target_precompile_headers(${target} REUSE_FROM ${owner})
    endif()
  endif()
endfunction()

# ccache caches files that use a precompiled header only with these settings.
set(POSENC_CCACHE_SETTINGS CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
if(PROJECT_IS_TOP_LEVEL)
  find_program(POSENC_CCACHE ccache)
  if(POSENC_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env ${POSENC_CCACHE_SETTINGS} "${POSENC_CCACHE}")
  endif()
endif()
