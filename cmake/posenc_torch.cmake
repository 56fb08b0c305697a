# How LibTorch is found: for posenc's own build and, once installed, for its users (posencConfig.cmake).

# LibTorch's CUDA build, which pip installs by default, demands a CUDA toolkit: its public/cuda.cmake stops without one.
# Programs that compile no CUDA themselves do not need it, since LibTorch's libraries find CUDA's next to their own.
# That file returns at once if torch::cudart is a target, and nothing else of CUDA is required. So this defines one,
# unless a complete toolkit (nvcc, cuda.h and libcudart in one folder) of a version that PyTorch accepts is installed:
# then PyTorch's own search is not changed, for projects that compile CUDA. LibTorch's CPU build ignores the target.
function(posenc_skip_cuda_toolkit)
  if(TARGET torch::cudart)
    return()
  endif()
  # Looks for nvcc where PyTorch's FindCUDA.cmake does, in its order. NO_CACHE: nothing else should see these results.
  find_program(nvcc nvcc PATHS "${CUDA_TOOLKIT_ROOT_DIR}" ENV CUDA_TOOLKIT_ROOT ENV CUDA_PATH ENV CUDA_BIN_PATH
    PATH_SUFFIXES bin bin64 NO_DEFAULT_PATH NO_CACHE)
  find_program(nvcc nvcc PATHS /usr/local/cuda/bin NO_CACHE)
  get_filename_component(toolkit "${nvcc}" DIRECTORY)
  get_filename_component(toolkit "${toolkit}" DIRECTORY)
  find_file(header cuda.h PATHS "${toolkit}" PATH_SUFFIXES include NO_DEFAULT_PATH NO_CACHE)
  find_library(runtime cudart PATHS "${toolkit}" NO_DEFAULT_PATH NO_CACHE
    PATH_SUFFIXES lib64 lib lib/x64 "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
  if(nvcc AND header AND runtime)
    file(STRINGS "${header}" version REGEX "^#define CUDA_VERSION ")
    string(REGEX REPLACE "[^0-9]" "" version "${version}")
    if(NOT version LESS 12010)
      return()
    endif()
  endif()
  add_library(torch::cudart INTERFACE IMPORTED GLOBAL)
endfunction()

# PyTorch's mkl.cmake lists folders of Intel's library whether they exist or not (/lib/intel64_win among them), and they
# end up in the RUNPATH of every program.
function(posenc_drop_missing_folders)
  if(TARGET caffe2::mkl)
    get_target_property(named caffe2::mkl INTERFACE_LINK_DIRECTORIES)
    set(there "")
    foreach(folder IN LISTS named)
      if(IS_DIRECTORY "${folder}")
        list(APPEND there "${folder}")
      endif()
    endforeach()
    set_property(TARGET caffe2::mkl PROPERTY INTERFACE_LINK_DIRECTORIES ${there})
  endif()
endfunction()

# posenc_check_torch_dir(): sets posenc_torch_problem to what is wrong with the Torch_DIR that is given, or to "".
# find_package would pass over such a folder and take any other LibTorch.
function(posenc_check_torch_dir)
  set(problem "")
  set(given "${Torch_DIR}")
  set(places "")
  if(NOT given) # empty, or not found before: then the environment's, which may also be the folder of the whole LibTorch
    set(given "$ENV{Torch_DIR}")
    set(places "${given}/share/cmake/Torch/TorchConfig.cmake")
  endif()
  file(GLOB found "${given}/TorchConfig.cmake" ${places})
  if(given AND NOT found)
    set(problem "[posenc] Torch_DIR must be the folder of TorchConfig.cmake, such as <LibTorch>/share/cmake/Torch. Got ${given}")
  endif()
  set(posenc_torch_problem "${problem}" PARENT_SCOPE)
endfunction()

# posenc_find_torch(HINTS folder... PYTHONS python...): searches CMAKE_PREFIX_PATH and Torch_DIR first, then the
# folders, then the first Python whose `import torch` works. Sets Torch_FOUND, and posenc_torch_problem if Torch_DIR is
# none. A macro, because TorchConfig.cmake sets variables for its caller.
macro(posenc_find_torch)
  cmake_parse_arguments(posenc_torch "" "" "HINTS;PYTHONS" ${ARGN})
  posenc_check_torch_dir()
  set(Torch_FOUND FALSE)
  if(NOT posenc_torch_problem)
    posenc_search_torch()
  endif()
endmacro()

macro(posenc_search_torch)
  posenc_skip_cuda_toolkit()
  set(kineto_LIBRARY torch) # wheels have no static kineto; without this TorchConfig.cmake warns about it
  find_package(Torch QUIET HINTS ${posenc_torch_HINTS})
  if(NOT Torch_FOUND)
    foreach(posenc_torch_python IN LISTS posenc_torch_PYTHONS)
      execute_process(
        COMMAND "${posenc_torch_python}" -c "import torch; print(torch.utils.cmake_prefix_path)"
        OUTPUT_VARIABLE posenc_torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE
        ERROR_QUIET RESULT_VARIABLE posenc_torch_result)
      if(posenc_torch_result EQUAL 0)
        find_package(Torch QUIET HINTS "${posenc_torch_prefix}")
        break()
      endif()
    endforeach()
  endif()
  unset(kineto_LIBRARY)
  posenc_drop_missing_folders()
endmacro()
