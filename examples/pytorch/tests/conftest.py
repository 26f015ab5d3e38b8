# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Every test starts from the same seeds: what it draws depends neither on the others nor on their order.
Where there is a GPU and the library has kernels, it runs there, too."""

import pytest
import torch

import furl_torch
from furl_torch._ops import HAS_KERNELS

HAS_CUDA = (torch.cuda.is_available() and hasattr(torch, "set_default_device")
            and HAS_KERNELS)


def pytest_configure(config):
    config.addinivalue_line("markers", "host_only: what it tests does not depend on the device")


@pytest.fixture(autouse=True, params=["cpu", "cuda"] if HAS_CUDA else ["cpu"])
def device(request):
    """Where torch makes the tensors and modules of the test."""
    if request.param == "cpu":
        yield request.param
        return
    if request.node.get_closest_marker("host_only"):
        pytest.skip("does not depend on the device")
    torch.set_default_device(request.param)
    yield request.param
    torch.set_default_device(None)


@pytest.fixture(autouse=True)
def seeds(device):
    torch.manual_seed(0)
    furl_torch.manual_seed(0)
