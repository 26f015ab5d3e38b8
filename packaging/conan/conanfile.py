# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""For Conan 2: conan create packaging/conan. It takes the sources of this tree; a recipe in another repository has
`version` instead of set_version, and source() with get() of a release's archive instead of export_sources."""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Furl(ConanFile):
    name = "furl"
    description = "Compression primitives for training activations"
    license = "Apache-2.0"
    topics = ("compression", "cuda", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def set_version(self):
        header = Path(self.recipe_folder, "../../include/furl/config.hpp").read_text()
        self.version = ".".join(re.findall(r"^#define FURL_VERSION_[A-Z]+ (\d+)$", header, re.MULTILINE))

    def export_sources(self):
        tree = str(Path(self.recipe_folder, "../..").resolve())
        for pattern in ("include/*", "cmake/*", "CMakeLists.txt", "LICENSE"):
            copy(self, pattern, tree, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(FURL_BUILD_TESTS=False, FURL_BUILD_EXAMPLES=False)
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, str(Path(self.package_folder, "licenses")))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # find_package(furl) reads furl's own package, which knows what projects of CUDA alone need.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/furl"]
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
