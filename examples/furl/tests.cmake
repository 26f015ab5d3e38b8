# Included by the tests' CMakeLists.txt: they run the tool as a user does.
if(TARGET furl_cli)
  add_executable(furl_cli_tests
    ${CMAKE_CURRENT_LIST_DIR}/cli_golden_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cli_inspect_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cli_npy_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cli_test.cpp)
  target_compile_definitions(furl_cli_tests PRIVATE
    FURL_CLI="$<TARGET_FILE:furl_cli>"
    FURL_TEST_DATA="${CMAKE_CURRENT_LIST_DIR}/../../test/data")
  target_link_libraries(furl_cli_tests PRIVATE furl_options GTest::gtest_main
    nlohmann_json::nlohmann_json)
  add_dependencies(furl_cli_tests furl_cli)
  gtest_discover_tests(furl_cli_tests DISCOVERY_TIMEOUT 60 TEST_FILTER -*/cuda)
  if(FURL_HAS_CUDA)
    list(TRANSFORM FURL_TEST_LAUNCHER REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE literals)
    list(JOIN literals "," literals)
    target_compile_definitions(furl_cli_tests PRIVATE FURL_TEST_DEVICE
      "FURL_TEST_LAUNCHER=${literals}")
    gtest_discover_tests(furl_cli_tests DISCOVERY_TIMEOUT 60 TEST_FILTER */cuda
      TEST_LIST furl_cli_device_tests PROPERTIES LABELS device)
  endif()
endif()
