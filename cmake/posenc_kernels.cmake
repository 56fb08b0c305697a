# Kernels: each source is compiled once per instruction set, one of which is chosen at run time. They include no header
# of LibTorch, and contraction is off: a * b + c keeps both roundings.

include_guard()
set(posenc_src "${CMAKE_CURRENT_LIST_DIR}/../src")

# The sets of this architecture, as src/kernels/sets.h lists them, and their flags. The target architecture is
# determined by the compiler itself, because toolchain files may leave CMAKE_SYSTEM_PROCESSOR empty or use any name.
include(CheckCXXSymbolExists)
check_cxx_symbol_exists(__x86_64__ "" POSENC_COMPILES_X86_64)
check_cxx_symbol_exists(__aarch64__ "" POSENC_COMPILES_ARM64)
set(POSENC_SETS generic)
set(posenc_narrow_sets "") # those that add products in 8 or 16 bits to another set: for kernels of these only
set(posenc_flags_generic -DPOSENC_GENERIC -Wno-psabi) # vectors wider than a register are passed to inline functions only
if(POSENC_COMPILES_X86_64)
  list(APPEND POSENC_SETS sse2 avx2 avx512)
  set(posenc_narrow_sets avx2vnni avx512vnni avx512bf16)
  list(APPEND posenc_flags_generic -O1) # every such processor has SSE2: here `generic` only serves tests
  set(posenc_flags_sse2 -msse2 -Wno-psabi)
  set(posenc_flags_avx2 -mavx2 -mfma -mf16c)
  set(posenc_flags_avx512 -mavx512f -mfma -mf16c -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
  set(posenc_flags_avx2vnni ${posenc_flags_avx2} -mavxvnni)
  set(posenc_flags_avx512vnni ${posenc_flags_avx512} -mavx512vnni)
  set(posenc_flags_avx512bf16 ${posenc_flags_avx512vnni} -mavx512bf16)
elseif(POSENC_COMPILES_ARM64)
  list(APPEND POSENC_SETS neon) # every such processor has NEON
  # Lets g++ vectorise loops with a condition: otherwise it keeps a branch around arithmetic whose exception flags could
  # be observed.
  set(posenc_flags_neon -fno-trapping-math)
  set(posenc_narrow_sets neondot)
  set(posenc_flags_neondot ${posenc_flags_neon} -march=armv8.2-a+dotprod)
  # Here `generic` only serves tests, so it is compiled as for a processor without vectors.
  list(APPEND posenc_flags_generic $<$<CXX_COMPILER_ID:GNU>:-march=armv8-a+nosimd>)
else()
  message(STATUS "posenc has no kernels of its own for ${CMAKE_SYSTEM_PROCESSOR}: the generic ones are used")
endif()

list(APPEND POSENC_SETS ${posenc_narrow_sets})

# posenc_unity(target): compiles many sources at a time where neither a preset nor the user decides: LibTorch's headers
# take seconds per source, and the library would take ten minutes on two cores. Intrinsics take half a second.
function(posenc_unity target)
  if(NOT POSENC_DEVELOPER AND NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 48)
  endif()
endfunction()

# posenc_kernel_settings(target set): the settings of a target whose sources are compiled for that set.
function(posenc_kernel_settings target isa)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE
    -O3 -fPIC -ffp-contract=off -Wall -Wextra ${posenc_flags_${isa}} $<$<BOOL:${POSENC_DEVELOPER}>:-Werror>)
  target_compile_definitions(${target} PRIVATE POSENC_ISA=${isa})
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../src")
  posenc_unity(${target})
endfunction()

# posenc_add_kernels(GROUP [NARROW source...] FLOATS source...): objects of the component kernels. NARROW are those of kernels/int8.h and kernels/bfloat16.h.
function(posenc_add_kernels group)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "NARROW;FLOATS")
  foreach(isa IN LISTS POSENC_SETS)
    set(sources ${arg_NARROW})
    if(NOT isa IN_LIST posenc_narrow_sets)
      list(APPEND sources ${arg_FLOATS})
    endif()
    if(sources)
      add_library(posenc_kernels_${group}_${isa} OBJECT ${sources})
      posenc_kernel_settings(posenc_kernels_${group}_${isa} ${isa})
      set_property(GLOBAL APPEND PROPERTY posenc_objects_kernels $<TARGET_OBJECTS:posenc_kernels_${group}_${isa}>)
    endif()
  endforeach()
endfunction()

# posenc_kernels_alone(target): adds all kernels to a library of a project without LibTorch. A macro, since the list of the kernels'
# sources calls posenc_component().
macro(posenc_kernels_alone target)
  set(POSENC_BUILT kernels inference)
  function(posenc_component)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;FILES;LINKS")
    add_library(posenc_kernels_files OBJECT ${arg_FILES})
    target_compile_features(posenc_kernels_files PRIVATE cxx_std_20)
    target_include_directories(posenc_kernels_files PRIVATE "${posenc_src}")
  endfunction()
  add_subdirectory("${posenc_src}/kernels" kernels)
  get_property(posenc_kernels GLOBAL PROPERTY posenc_objects_kernels)
  target_sources(${target} PRIVATE ${posenc_kernels} $<TARGET_OBJECTS:posenc_kernels_files>)
endmacro()
