# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What the C++ program `expected` has written: tensors, and what the headers make of them."""
import json
import os
import pathlib
from dataclasses import dataclass

import numpy

KEY = (11, 12)
_directory = pathlib.Path(os.environ["FURL_EXPECTED"])


@dataclass
class Case:
    name: str
    kind: str  # "coded", or "codes" for pack and unpack
    dtype: str  # f32, f16, bf16
    shape: tuple
    codec: dict

    def read(self, part: str) -> numpy.ndarray:
        """The bytes of x, plan, blob or y."""
        return numpy.fromfile(_directory / f"{self.name}.{part}", numpy.uint8)


ALL = [Case(**{**case, "shape": tuple(case["shape"])}) for case in json.loads((_directory / "cases.json").read_text())]
CODED = [case for case in ALL if case.kind == "coded"]
CODES = [case for case in ALL if case.kind == "codes"]
