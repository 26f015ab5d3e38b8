# An overlay port: vcpkg install furl --overlay-ports=packaging/vcpkg. It takes the sources of this tree;
# a port in a registry gets SOURCE_PATH from vcpkg_from_git or vcpkg_from_github with a release's commit.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)  # headers alone
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DFURL_BUILD_TESTS=OFF -DFURL_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/furl)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
