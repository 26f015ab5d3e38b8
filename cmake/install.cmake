# The headers, and a package for find_package(furl): all of it is the component furl.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME furl)
set(furl_package_dir ${CMAKE_INSTALL_DATADIR}/cmake/furl)
# Not as a file set of the target: CMake before 3.23 finds no header of one.
target_include_directories(furl INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS furl EXPORT furl-targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/furl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.hpp PATTERN *.cuh PATTERN *.md)
install(EXPORT furl-targets NAMESPACE furl:: DESTINATION ${furl_package_dir})
configure_package_config_file(cmake/furl-config.cmake.in ${PROJECT_BINARY_DIR}/furl-config.cmake
  INSTALL_DESTINATION ${furl_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/furl-config-version.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES cmake/furl-requirements.cmake ${PROJECT_BINARY_DIR}/furl-config.cmake
  ${PROJECT_BINARY_DIR}/furl-config-version.cmake DESTINATION ${furl_package_dir})

# For pkg-config; like the package it may be moved.
set(furl_pc_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
file(RELATIVE_PATH furl_include_from_pc ${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/furl.pc.in ${PROJECT_BINARY_DIR}/furl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/furl.pc DESTINATION ${furl_pc_dir})

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# For cpack -G TGZ and cpack -G DEB. Headers are the same on every architecture.
if(furl_top_level)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_PACKAGE_VENDOR "The furl authors")
  set(CPACK_PACKAGE_CONTACT ${CPACK_PACKAGE_VENDOR})
  set(CPACK_PACKAGE_FILE_NAME furl-${PROJECT_VERSION})
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_DEBIAN_PACKAGE_NAME libfurl-dev)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  include(CPack)
endif()
