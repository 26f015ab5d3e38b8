# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Furl(CMakePackage):
    """Compression primitives for training activations: headers for C++ and CUDA."""

    license("Apache-2.0")

    # From this tree: spack dev-build. For a release: `url` of its archives here, and sha256 of each below.
    version("0.2.0")

    depends_on("cxx", type="build")
    depends_on("cmake@3.18:", type="build")

    def cmake_args(self):
        return [self.define("FURL_BUILD_TESTS", False), self.define("FURL_BUILD_EXAMPLES", False)]
