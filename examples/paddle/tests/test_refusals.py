# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What compress_saved refuses. The last file and test: see there."""

import paddle
import pytest
from paddle import nn

from furl_paddle import compress_saved


@pytest.mark.parametrize("settings, text", [
    ({"bits": 0}, "bits is 0: must be an integer from 1 to 4"),
    ({"bits": 5}, "bits is 5: must be an integer from 1 to 4"),
    ({"bits": 2.}, "bits is 2.0: must be an integer"),
    ({"bits": True}, "bits is True: must be an integer"),
    ({"other_bits": 9}, "other_bits is 9: must be an integer from 1 to 8"),
    ({"min_elements": 0}, "min_elements is 0: must be an integer from 1"),
])
def test_arguments(settings, text):
    with pytest.raises(ValueError, match="furl: " + text):
        compress_saved(nn.ReLU(), **settings)


def test_model_must_be_a_layer():
    with pytest.raises(TypeError, match="furl: model is a function: must be a paddle.nn.Layer"):
        compress_saved(lambda x: x)


def test_entered_twice():
    with compress_saved(nn.ReLU()) as context:
        with pytest.raises(RuntimeError, match="furl: this context is entered already"):
            context.__enter__()


def test_layers_of_to_static_are_refused():
    net = nn.Sequential(nn.Linear(64, 64))
    net[0] = paddle.jit.to_static(net[0], full_graph=True)
    with pytest.raises(RuntimeError, match="furl: layer '0' runs in a graph of paddle.jit.to_static"):
        compress_saved(net).__enter__()


def test_functions_of_to_static_are_refused_when_they_are_traced():
    linear = nn.Linear(64, 64)

    @paddle.jit.to_static(full_graph=True)
    def function(x):
        return linear(x)

    with pytest.raises(RuntimeError, match="runs in a graph of paddle.jit.to_static"), compress_saved(linear):
        function(paddle.randn([64, 64]))


# The last test: after an error in a backward pass, Paddle 3.3 records no gradients any more.
def test_what_passes_is_checked_for_modification():
    x = paddle.randn([64, 64])
    x.stop_gradient = False
    y = x * 1
    with compress_saved(nn.ReLU()):
        z = y * y
    y.add_(paddle.ones([64, 64]))
    with pytest.raises(OSError, match=r"shape \[64, 64\] was modified in place: its version is 1, and was 0"):
        z.sum().backward()
