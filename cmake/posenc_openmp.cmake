# How OpenMP is found.

# posenc_find_openmp(): finds OpenMP, without which LibTorch's inline at::parallel_for is compiled as a serial loop.
# Sets POSENC_OPENMP_FLAGS, for compiling, and POSENC_OPENMP_LIBRARY, which programs link.
function(posenc_find_openmp)
  if(APPLE)
    posenc_find_openmp_of_torch()
    return(PROPAGATE POSENC_OPENMP_FLAGS POSENC_OPENMP_LIBRARY)
  endif()
  find_package(OpenMP COMPONENTS CXX)
  if(NOT OpenMP_CXX_FOUND)
    set(advice "")
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      string(REGEX MATCH "^[0-9]+" major "${CMAKE_CXX_COMPILER_VERSION}")
      set(advice "; clang needs LLVM's libomp (Debian's libomp-${major}-dev)")
    endif()
    message(FATAL_ERROR "[posenc] the compiler must know OpenMP. Got ${CMAKE_CXX_COMPILER} without it${advice}")
  endif()
  # gcc's library is linked by name, since every compiler searches gcc's folder. With its path, CMake would warn that
  # LibTorch has another library of the same name; with the flag -fopenmp, clang would link its own libomp. At run time
  # only LibTorch's is loaded. LLVM's library is in a separate folder and needs its path.
  set(library ${OpenMP_CXX_LIBRARIES})
  if("gomp" IN_LIST OpenMP_CXX_LIB_NAMES)
    set(library gomp)
  endif()
  set(POSENC_OPENMP_LIBRARY "${library}" PARENT_SCOPE)
  set(POSENC_OPENMP_FLAGS ${OpenMP_CXX_FLAGS} PARENT_SCOPE)
endfunction()

# The same on macOS. Apple's clang compiles OpenMP, but has neither its header nor its library. LibTorch's wheels bring
# both. The library has to be LibTorch's, because two in one program stop it; any LLVM's header will do.
function(posenc_find_openmp_of_torch)
  find_library(POSENC_LIBOMP NAMES omp libomp.dylib PATHS "${TORCH_INSTALL_PREFIX}/lib" NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  find_path(POSENC_OMP_INCLUDE_DIR omp.h NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
    PATHS "${TORCH_INSTALL_PREFIX}/include" /opt/homebrew/opt/libomp/include /usr/local/opt/libomp/include)
  if(NOT POSENC_LIBOMP)
    message(FATAL_ERROR "[posenc] LibTorch must bring libomp.dylib, as PyTorch's own builds for macOS do. Got ${TORCH_INSTALL_PREFIX}/lib without it")
  endif()
  if(NOT POSENC_OMP_INCLUDE_DIR)
    message(FATAL_ERROR "[posenc] OpenMP's header omp.h was found neither in LibTorch nor in Homebrew: "
      "run `brew install libomp`, or set POSENC_OMP_INCLUDE_DIR to its folder")
  endif()
  set(POSENC_OPENMP_LIBRARY "${POSENC_LIBOMP}" PARENT_SCOPE)
  set(POSENC_OPENMP_FLAGS "SHELL:-Xclang -fopenmp" "-isystem${POSENC_OMP_INCLUDE_DIR}" PARENT_SCOPE)
endfunction()
