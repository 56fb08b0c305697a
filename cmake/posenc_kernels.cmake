# Kernels: each source is compiled once per instruction set, one of which is chosen at run time. They include no header
# of LibTorch, and contraction is off: a * b + c keeps both roundings.

# posenc_add_kernels(target source...)
function(posenc_add_kernels target)
  set(flags_sse2 -msse2 -Wno-psabi) # vectors wider than a register are passed to inline functions only
  set(flags_avx2 -mavx2 -mfma -mf16c)
  set(flags_avx512 -mavx512f -mfma -mf16c -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
  foreach(isa sse2 avx2 avx512)
    add_library(${target}_${isa} OBJECT ${ARGN})
    target_compile_features(${target}_${isa} PRIVATE cxx_std_20)
    target_compile_options(${target}_${isa} PRIVATE
      -O3 -fPIC -ffp-contract=off -Wall -Wextra ${flags_${isa}} $<$<BOOL:${POSENC_DEVELOPER}>:-Werror>)
    target_compile_definitions(${target}_${isa} PRIVATE POSENC_ISA=${isa})
    target_include_directories(${target}_${isa} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    set_target_properties(${target}_${isa} PROPERTIES UNITY_BUILD OFF) # they compile in half a second each
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${isa}>)
  endforeach()
endfunction()
