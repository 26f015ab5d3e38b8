# What the functions of vcpkg that the port calls do, as far as a port of headers can tell: vcpkg itself comes
# from no package index. cmake -D PORT_DIR=folder -D CURRENT_PACKAGES_DIR=folder -D BUILD=folder -P vcpkg.cmake
cmake_minimum_required(VERSION 3.25)

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${BUILD} -G Ninja ${arg_OPTIONS}
    -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Moves the package to share/furl, and corrects how deep it is below the prefix.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" CONFIG_PATH "")
  set(package ${CURRENT_PACKAGES_DIR}/share/furl)
  file(RENAME ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH} ${package})
  file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/share/cmake)
  set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
  file(READ ${package}/furl-targets.cmake targets)
  string(REPLACE "${up}${up}${up}" "${up}${up}" targets "${targets}")
  file(WRITE ${package}/furl-targets.cmake "${targets}")
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  configure_file(${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/furl/copyright COPYONLY)
endfunction()

include(${PORT_DIR}/portfile.cmake)
