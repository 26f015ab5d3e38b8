# What furl's own programs are built with; never exported.
add_library(furl_options INTERFACE)
target_compile_options(furl_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow>)
if(FURL_WARNINGS_AS_ERRORS)
  target_compile_options(furl_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(FURL_SANITIZERS)
  target_compile_options(furl_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${FURL_SANITIZERS} -fno-sanitize-recover=all
    -fno-omit-frame-pointer>)
  target_link_options(furl_options INTERFACE -fsanitize=${FURL_SANITIZERS})
endif()
target_link_libraries(furl_options INTERFACE furl::furl)
