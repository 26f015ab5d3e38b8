# CUDA for tests and examples, where nvcc is found; the library itself needs none to be used.
option(FURL_CUDA "Build what needs CUDA, if nvcc is found" ${furl_top_level})
set(FURL_TEST_LAUNCHER "" CACHE STRING
  "Command, as a list, that device tests are run under")
set(FURL_COUNT_LAUNCHER "" CACHE STRING
  "Command, as a list, that takes --report FILE -- PROGRAM and counts what kernels execute")

set(FURL_HAS_CUDA OFF)
if(FURL_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80 90 100)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(FURL_HAS_CUDA ON)
  endif()
endif()
message(STATUS "furl: CUDA ${FURL_HAS_CUDA}")

if(FURL_HAS_CUDA)
  # What furl's own CUDA programs are built with; never exported.
  add_library(furl_cuda_options INTERFACE)
  target_link_libraries(furl_cuda_options INTERFACE furl_options)
  target_include_directories(furl_cuda_options SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_options(furl_cuda_options INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
  if(FURL_WARNINGS_AS_ERRORS)
    target_compile_options(furl_cuda_options INTERFACE
      $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
  endif()
endif()

# furl_share_kernels(target): where there are tests, the kernels are theirs, which are compiled once for all.
function(furl_share_kernels target)
  if(FURL_BUILD_TESTS)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:SHELL:-include device/library.cuh>)
    target_link_libraries(${target} PRIVATE furl_device_library)
  endif()
endfunction()

# furl_add_device_test(name target [argument ...]): a test that runs a program on the device, and
# shows as skipped where there is none.
function(furl_add_device_test name target)
  add_test(NAME ${name} COMMAND ${FURL_TEST_LAUNCHER} $<TARGET_FILE:${target}> ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "no CUDA device" LABELS device)
endfunction()
