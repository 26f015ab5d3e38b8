# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""conda.py RECIPE SOURCE FOLDER: builds the recipe in FOLDER, without the packages that it asks for, which no package
index has: with the compiler and CMake of this machine."""

import sys

from rattler_build import Stage0Recipe, ToolConfiguration

recipe, source, folder = sys.argv[1:]
parts = Stage0Recipe.from_file(recipe).to_dict()
del parts["requirements"]
for part in parts["source"]:
    part["path"] = source
results = Stage0Recipe.from_dict(parts).run_build(output_dir=folder, channels=[], package_format="tar-bz2",
                                                  tool_config=ToolConfiguration(test_strategy="native"))
print(results[0].packages[0])
