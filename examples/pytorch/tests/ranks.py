# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that run in several processes at once, and what they call."""

import datetime
import functools
import multiprocessing
import traceback

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import furl_torch

_context = multiprocessing.get_context("forkserver")  # one process imports torch; the ranks are its children
_context.set_forkserver_preload(["torch", "furl_torch", "ranks"])
SECONDS = 120  # at most


def run(num_ranks, path, function, *arguments, **settings):
    """What the function gives on each rank of a gloo group, which meets in a new file of the folder."""
    function = functools.partial(function, *arguments, **settings)
    results = _context.Queue()
    ranks = [_context.Process(target=_be_rank, args=(r, num_ranks, str(path / "store"), results, function))
             for r in range(num_ranks)]
    for rank in ranks:
        rank.start()
    found = dict(results.get(timeout=SECONDS) for _ in ranks)
    for rank in ranks:  # all have given what they found
        rank.join(10)
        rank.kill()
    (path / "store").unlink(missing_ok=True)
    for r in range(num_ranks):
        assert not isinstance(found[r], str), f"rank {r}: {found[r]}"
    return [found[r] for r in range(num_ranks)]


def _be_rank(rank, num_ranks, store, results, function):
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=num_ranks,
                                timeout=datetime.timedelta(seconds=SECONDS))
        dist.barrier()  # lest one is done before another is connected
        furl_torch.manual_seed(0)
        results.put((rank, _as_numpy(function())))
    except BaseException:
        results.put((rank, traceback.format_exc()))
        raise
    results.close()
    results.join_thread()
    dist.destroy_process_group()  # in torch 2.0 and 2.4, gloo may wait for the interpreter then, and that for gloo


def _as_numpy(x):
    """Tensors would need shared memory to travel."""
    if isinstance(x, torch.Tensor):
        return x.detach().double().numpy()
    return [_as_numpy(v) for v in x] if isinstance(x, (list, tuple)) else x


def gradient_of(rank, shape, dtype=torch.float32):
    """Of one rank: one value in 16, at the same places on all, is ten times as large."""
    large = torch.rand(shape, generator=torch.Generator().manual_seed(999)) < 1 / 16
    return (torch.randn(shape, generator=torch.Generator().manual_seed(1000 + rank)) * (1 + 9 * large)).to(dtype)


class Given(nn.Module):
    """Its parameters have the gradients that it is called with."""

    def __init__(self, shapes, dtype):
        super().__init__()
        self.all = nn.ParameterList([nn.Parameter(torch.zeros(s, dtype=dtype)) for s in shapes])

    def forward(self, *gradients):
        return sum((p * g).sum() for p, g in zip(self.all, gradients))


def averages(shapes, bits, steps=1, dtype=torch.float32, change=None, group_size=None, **settings):
    """For each step, all averages, as one rank has them."""
    from furl_torch import comm
    rank, group = dist.get_rank(), None
    if group_size is not None:
        for first in range(0, dist.get_world_size(), group_size):
            ranks = list(range(first, first + group_size))
            new = dist.new_group(ranks)
            group = new if rank in ranks else group
    model = DistributedDataParallel(Given(shapes, dtype), process_group=group)
    state = comm.AllReduceState(bits, process_group=group, **settings)
    model.register_comm_hook(state, comm.all_reduce_hook)
    found = []
    for step in range(steps):
        model.zero_grad()
        given = [gradient_of(rank, s, dtype) for s in shapes]
        if change is not None:
            change(step, rank, given)
        model(*given).backward()
        found.append([p.grad.clone() for p in model.module.all])
    return found


def sparse_averages(bits):
    """For each of two steps, the averages of an embedding's gradient, which is sparse, and of a layer's, without the
    hook and with it, and the bytes that the state counts."""
    from furl_torch import comm
    found, state = [], comm.AllReduceState(bits)
    for has_hook in (False, True):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Sequential(nn.Embedding(50, 6, sparse=True), nn.Linear(6, 6)))
        if has_hook:
            model.register_comm_hook(state, comm.all_reduce_hook)
        for _ in range(2):
            model.zero_grad()
            model(torch.arange(10) + dist.get_rank()).square().mean().backward()
            found.append([model.module[0].weight.grad.to_dense(), model.module[1].weight.grad.clone()])
    return found, state.bytes_sent


def no_gradient(step, rank, given):
    for g in given:
        g.zero_()


def nan_of_rank_1(step, rank, given):
    if rank == 1 and step == 1:  # after the first, buckets are others, and errors begin anew
        given[0].view(-1)[5000] = float("nan")
        given[0].view(-1)[9000] = float("inf")


def traffic(shape, bits):
    """Bytes that the processes of the group write for one average, and those that the state counts."""
    from furl_torch import comm
    model = DistributedDataParallel(Given([shape], torch.float32))
    state = comm.AllReduceState(bits)
    model.register_comm_hook(state, comm.all_reduce_hook)
    given = gradient_of(dist.get_rank(), shape)
    model(given).backward()  # the first step makes connections
    dist.barrier()
    sent, written = state.bytes_sent, _bytes_written()
    model(given).backward()
    return _bytes_written() - written, state.bytes_sent - sent


def _bytes_written():
    """By this process: gloo writes to sockets."""
    with open("/proc/self/io") as file:
        return int(dict(line.split(": ") for line in file)["wchar"])


def reduce_scatters(shapes, bits, dtype, steps):
    """Of FSDP2: the shards of the gradients of each step, as one rank has them, whole."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from furl_torch import comm
    model = Given(shapes, dtype)
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(), )))
    num_modules = comm.compress_reduce_scatters(model, bits) if bits else 1
    assert num_modules == 1
    found = []
    for _ in range(steps):
        model.zero_grad()
        model(*[gradient_of(dist.get_rank(), s, dtype) for s in shapes]).backward()
        found.append([p.grad.full_tensor() for p in model.all])
    return found


def refusals():
    """What a reduce-scatter says to wrong arguments."""
    from furl_torch import comm
    found = []
    most, total = dist.ReduceOp.MAX, dist.ReduceOp.SUM
    for size, op, async_op in ((8, most, False), (8, total, True), (5, total, False)):
        try:
            comm.ReduceScatter(4)(torch.zeros(4), torch.zeros(size), None, op, async_op)
        except ValueError as refused:
            found.append(str(refused))
    comm.ReduceScatter(4)(torch.zeros(0), torch.zeros(0), None, total)  # nothing is an ordinary size
    return found


def keys():
    """The first of one rank."""
    return [furl_torch.noise.next_key() for _ in range(3)]


def training(bits, error_feedback, steps):
    """Parameters after some steps, and the loss, of two layers that learn from other examples on each rank."""
    from furl_torch import comm
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 96), nn.LayerNorm(96), nn.ReLU(), nn.Linear(96, 8))
    model = DistributedDataParallel(net, bucket_cap_mb=0.01)
    if bits:
        model.register_comm_hook(comm.AllReduceState(bits, error_feedback=error_feedback), comm.all_reduce_hook)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    random = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(steps):
        x = torch.randn(32, 64, generator=random)
        loss = nn.functional.cross_entropy(model(x), x[:, :8].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.cat([p.detach().flatten() for p in net.parameters()]), sum(losses[-10:]) / 10
