# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""python -m furl_headers: prints what a build needs to find furl."""

import argparse
from importlib.metadata import version

from . import cmake_dir, include_dir


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m furl_headers")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--includes", action="store_const", dest="text", const="-I" + include_dir(),
                      help="print the flag of the compiler for the headers")
    what.add_argument("--cmakedir", action="store_const", dest="text", const=cmake_dir(),
                      help="print the folder for furl_DIR of CMake")
    what.add_argument("--version", action="store_const", dest="text", const=version("furl-headers"),
                      help="print the version")
    print(parser.parse_args().text)


if __name__ == "__main__":
    main()
