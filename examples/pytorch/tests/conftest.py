# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Every test starts from the same seeds: what it draws depends neither on the others nor on their order."""

import pytest
import torch

import furl_torch


@pytest.fixture(autouse=True)
def seeds():
    torch.manual_seed(0)
    furl_torch.manual_seed(0)
