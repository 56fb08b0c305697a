# The platforms and tools that posenc can be built with (docs/platforms.md). Each refusal is one line with the value
# found.

# posenc_require_platform(): the system, the processor and the compiler.
function(posenc_require_platform)
  if(WIN32)
    message(FATAL_ERROR "[posenc] Windows is not supported: posenc's files, processes and signals are POSIX's, "
      "and its kernels need GCC's vector types; use WSL. Got ${CMAKE_SYSTEM_NAME} and ${CMAKE_CXX_COMPILER_ID}")
  endif()
  if(NOT CMAKE_SYSTEM_NAME MATCHES "^(Linux|Darwin)$")
    message(FATAL_ERROR "[posenc] the system must be Linux or macOS. Got ${CMAKE_SYSTEM_NAME}")
  endif()
  if(NOT "${CMAKE_SIZEOF_VOID_P} ${CMAKE_CXX_BYTE_ORDER}" STREQUAL "8 LITTLE_ENDIAN")
    math(EXPR bits "8 * ${CMAKE_SIZEOF_VOID_P}")
    message(FATAL_ERROR "[posenc] the processor must have 64 bits and be little-endian, as PyTorch's files are. "
      "Got ${CMAKE_SYSTEM_PROCESSOR} with ${bits} bits, ${CMAKE_CXX_BYTE_ORDER}")
  endif()
  list(LENGTH CMAKE_OSX_ARCHITECTURES slices)
  if(slices GREATER 1)
    message(FATAL_ERROR "[posenc] a build is for one processor, with its kernels: build each slice by itself. "
      "Got CMAKE_OSX_ARCHITECTURES=${CMAKE_OSX_ARCHITECTURES}")
  endif()
  set(least_GNU 12)
  set(least_Clang 14)
  set(least_AppleClang 15)
  set(least "${least_${CMAKE_CXX_COMPILER_ID}}")
  if(NOT least OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS least)
    message(FATAL_ERROR "[posenc] the compiler must be g++ ${least_GNU}, clang ${least_Clang} or Apple's clang "
      "${least_AppleClang}, or newer. Got ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_CXX_COMPILER}")
  endif()
endfunction()

set(posenc_torch_standard 17) # the C++ standard of programs, where no LibTorch asks for more
# posenc_require_torch(): the version and the build of the LibTorch that was found. Sets posenc_torch_standard, the C++ standard that
# programs need for its headers.
function(posenc_require_torch)
  set(oldest 2.12)
  set(newest 2.15) # of those tested: the next one may have changed what src/core/torch_internals/ relies on
  if(Torch_VERSION AND Torch_VERSION VERSION_LESS oldest) # a LibTorch of one's own may not state it
    set(why "")
    if(Torch_VERSION MATCHES "^2[.]11")
      set(why ": libtorch.so of 2.11 exports a part of std::filesystem, and programs that link it jump to address 0 in others, such as remove_all")
    endif()
    message(FATAL_ERROR "[posenc] LibTorch must be ${oldest} or newer. Got ${Torch_VERSION} in ${Torch_DIR}${why}")
  endif()
  string(REGEX MATCH "^[0-9]+[.][0-9]+" series "${Torch_VERSION}")
  if(series VERSION_GREATER newest)
    message(WARNING "[posenc] LibTorch ${series} is newer than those that posenc has been tested with, ${oldest} to ${newest}")
  endif()
  get_target_property(definitions torch_cpu INTERFACE_COMPILE_DEFINITIONS)
  if(NOT "USE_DISTRIBUTED" IN_LIST definitions)
    message(FATAL_ERROR "[posenc] LibTorch must be built with its distributed package (USE_DISTRIBUTED=1), as PyTorch's own builds are. "
      "Got ${Torch_DIR} without it")
  endif()
  set(posenc_torch_definitions "${definitions}" PARENT_SCOPE)
  if(Torch_VERSION VERSION_GREATER_EQUAL 2.14)
    set(posenc_torch_standard 20 PARENT_SCOPE)
  endif()
endfunction()
