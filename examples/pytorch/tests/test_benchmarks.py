# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of memory and throughput, on tiny models."""

import gc
import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from furl_torch.examine import allocated

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "memory_and_speed.py"
pytestmark = pytest.mark.host_only


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("memory_and_speed", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    gc.freeze()  # the benchmark collects garbage often: not among all that torch has made
    yield module
    gc.unfreeze()


@pytest.mark.skipif(not allocated(torch.device("cpu")), reason="the C library does not count what is allocated")
def test_tiny_models(benchmark, capsys):
    methods = ["none", "checkpoint", "save_on_cpu", "autocast", "furl, 2 bits", "furl, 2 bits, offload",
               "furl, 2 bits, checkpoint"]
    results = benchmark.main(["--device", "cpu", "--steps", "1", "--length", "64", "--methods", *methods])
    kept = {(r.subject, r.method): r.kept for r in results}
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * (1 + len(methods)) and len(kept) == 2 * len(methods)
    assert all(r.seconds > 0 and r.peak == 0 for r in results)
    for subject, blocks in (("tiny:convolutions", 3), ("tiny:transformer", 8)):
        plain = kept[subject, "none"]
        assert kept[subject, "checkpoint"] < plain / blocks
        assert 0.9 * plain < kept[subject, "save_on_cpu"] < 1.1 * plain
        assert kept[subject, "autocast"] < 0.85 * plain
        assert kept[subject, "furl, 2 bits"] < plain / 7
        assert kept[subject, "furl, 2 bits, offload"] < plain / 6
        assert kept[subject, "furl, 2 bits, checkpoint"] < kept[subject, "checkpoint"] / 2


def test_plot(benchmark, tmp_path):
    pytest.importorskip("matplotlib")
    results = [benchmark.Result("a", name, batch, 1000 * batch * (i + 1), 0, 0.1 * (i + 1))
               for i, name in enumerate(benchmark.METHODS) for batch in (4, 8)]
    benchmark.plot([*results, benchmark.Result("a", "none", 16)], tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_what_has_no_memory_is_said_and_blocks_are_found(benchmark):
    assert benchmark.line_of(benchmark.Result("a", "none", 4), None).endswith("out of memory")

    class Part(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

    parts = [Part(Part(nn.Linear(2, 2))), Part(nn.ReLU())]
    assert benchmark.blocks_of(nn.Sequential(nn.Linear(2, 2), *parts)) == parts
    with pytest.raises(ValueError, match="no blocks to checkpoint in Linear"):
        benchmark.add_checkpoints(nn.Linear(2, 2), True)
