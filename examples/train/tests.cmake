# The tests of the trainer; included where tests are registered. The imported targets are visible
# only in the folder that looked for them, so it looks again.
find_package(Eigen3 REQUIRED)
find_package(ZLIB REQUIRED)

add_executable(train_tests
  ${CMAKE_CURRENT_LIST_DIR}/bit_budget_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gradient_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/idx_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/ranges_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/saved_tensors_test.cpp)
target_link_libraries(train_tests PRIVATE train_parts ZLIB::ZLIB GTest::gtest_main)
gtest_discover_tests(train_tests TEST_PREFIX train. DISCOVERY_TIMEOUT 60)

set(cases same_result_with_any_number_of_threads same_seed_same_result missing_data
  truncated_data bad_options csv_whole_or_not_at_all)
if(FURL_HAS_CUDA)
  list(APPEND cases same_result_on_the_device no_cuda_device)
else()
  list(APPEND cases no_cuda_in_this_build)
endif()
foreach(case IN LISTS cases)
  add_test(NAME train.command.${case}
    COMMAND ${CMAKE_COMMAND} -D train=$<TARGET_FILE:train> -D case=${case}
      -D folder=${CMAKE_CURRENT_BINARY_DIR}/train_${case} -D "launcher=${FURL_TEST_LAUNCHER}"
      -P ${CMAKE_CURRENT_LIST_DIR}/command_test.cmake)
endforeach()
if(FURL_HAS_CUDA)
  set_tests_properties(train.command.same_result_on_the_device PROPERTIES
    SKIP_REGULAR_EXPRESSION "no CUDA device" LABELS device)
endif()

add_test(NAME example.residual COMMAND residual 20)
set_tests_properties(example.residual PROPERTIES PASS_REGULAR_EXPRESSION
  "uncompressed, shared .* MB +1.00x.*2 bits, shared .* MB +1[12]\\.[0-9]+x")
