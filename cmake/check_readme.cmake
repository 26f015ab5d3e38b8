# Fails unless the README holds the example as it is compiled.
# cmake -D README=... -D SOURCE=... -P check_readme.cmake
file(READ ${README} readme)
file(READ ${SOURCE} source)
string(REGEX MATCH "// \\[quickstart\\]\n(.*)// \\[quickstart\\]" whole "${source}")
set(example "${CMAKE_MATCH_1}")
string(FIND "${readme}" "```cpp\n${example}```" at)
if(example STREQUAL "" OR at EQUAL -1)
  message(FATAL_ERROR "${README} does not hold the example of ${SOURCE}")
endif()
