# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Gradients that travel between processes in a few bits per value: a hook for DistributedDataParallel and a
reduce-scatter for FSDP2. Every rank sends each other one that one's shard as codes, adds what it gets to its own
shard, and, in the all-reduce, sends the mean to all as codes again. All decode the same bytes, so that parameters
stay equal, bit for bit.

Codes of 1 to 4 bits are rotated (as in EDEN, Vargaftik et al., ICML 2022), others have a minimum and a step for 256
values. All are right on average. A NaN or an infinity becomes NaN, on all ranks, in the 256 values coded with it.
"""

from contextlib import contextmanager
from typing import Any, Hashable, Iterator, Optional, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.futures import Future

from . import policy
from ._ops import ops
from .codec import CODED, check_bits
from .noise import next_key

__all__ = ["AllReduceState", "ReduceScatter", "all_reduce_hook", "compress_reduce_scatters"]


class _Codes:
    """Shards as codes, and what these lost the last time."""

    def __init__(self, bits: int, error_feedback: bool) -> None:
        check_bits(bits)
        self.bits = bits
        self.error_feedback = error_feedback
        self.bytes_sent = 0  # by this rank, so far; of what is not compressed, as many as a ring sends
        self._group = policy.ROTATED if bits <= policy.MOST_ROTATED_BITS else policy.GROUP
        self._errors: dict[Hashable, Tensor] = {}

    def _blob_bytes(self, num_elements: int) -> int:
        like = torch.empty(num_elements, device="meta")
        return ops.compress(like, self.bits, [], self._group, 0, 0).numel()

    def _compress(self, x: Tensor, error: Optional[Tensor]) -> Tensor:
        """Of x, and what is lost of it. x has the last error in it, if there is one to be kept."""
        blob = ops.compress(x, self.bits, [], self._group, *next_key())
        if error is not None:
            torch.sub(x, self._decompress(blob, x.numel(), torch.float32), out=error)
            error.nan_to_num_(0.0, 0.0, 0.0)  # what is not finite now must not stay so
        return blob

    def _decompress(self, blob: Tensor, num_elements: int, dtype: torch.dtype) -> Tensor:
        return ops.decompress(blob, [num_elements], [1], dtype, self.bits, [], self._group)

    def _error(self, key: Hashable, like: Tensor) -> Optional[Tensor]:
        """What was lost under this key, zeros at first; None if nobody wants it."""
        if not self.error_feedback:
            return None
        if key not in self._errors or self._errors[key].shape != like.shape:
            self._errors[key] = torch.zeros_like(like, dtype=torch.float32)
        return self._errors[key]

    def _sum_of_shards(self, x: Tensor, group: Any, key: Hashable) -> Tensor:
        """x: a shard for each rank, [ranks, n]. Of all ranks' shards for this one, in f32."""
        num_ranks, mine = dist.get_world_size(group), dist.get_rank(group)
        error = self._error((key, "shards"), x)
        x = x if error is None else x + error
        blobs = [self._compress(x[r], None if error is None else error[r]) for r in range(num_ranks) if r != mine]
        sent = torch.cat(blobs)
        got = torch.empty_like(sent)
        num_bytes = blobs[0].numel()
        splits = [num_bytes if r != mine else 0 for r in range(num_ranks)]
        dist.all_to_all_single(got, sent, splits, splits, group=group)
        self.bytes_sent += sent.numel()
        total = x[mine].to(torch.float32, copy=True)  # own values are exact
        for blob in got.view(-1, num_bytes):
            ops.decompress_add_(total, blob, self.bits, [], self._group)
        return total

    def _gather(self, x: Tensor, group: Any, key: Hashable, dtype: torch.dtype) -> Tensor:
        """All ranks' x as their codes give them, one after the other: the same on all ranks."""
        num_ranks = dist.get_world_size(group)
        error = self._error((key, "gathered"), x)
        blob = self._compress(x if error is None else x + error, error)
        blobs = [torch.empty_like(blob) for _ in range(num_ranks)]
        dist.all_gather(blobs, blob, group=group)
        self.bytes_sent += (num_ranks - 1) * blob.numel()
        return torch.cat([self._decompress(b, x.numel(), dtype) for b in blobs])


class AllReduceState(_Codes):
    """For all_reduce_hook.

    bits: of each value of a parameter with two dimensions or more, 1 to 8. Gradients of the others (biases, norms),
        those of other dtypes than f32, f16 and bf16, sparse ones, and those of buckets that codes would not make
        smaller, are averaged as they are: by an all-reduce of their own, if the bucket has others.
    error_feedback: whether what codes lose of a step is added to the next one's gradients (Karimireddy et al., ICML
        2019). It keeps 4 bytes per value, and on n ranks 4 / n more. Not for gradients whose scale changes.
    process_group: as DistributedDataParallel has it; None: the default one.

    Keep one state for each model.
    """

    def __init__(self, bits: int = 4, *, error_feedback: bool = False, process_group: Any = None) -> None:
        super().__init__(bits, error_feedback)
        self.process_group = process_group
        self._layouts: dict[int, tuple[int, ...]] = {}  # parameters of the buckets that errors are of
        self._streams: dict[torch.device, Any] = {}

    def average_(self, bucket: Any) -> Tensor:
        """The bucket's gradients, in their place."""
        buffer, group = bucket.buffer(), self.process_group
        num_ranks = dist.get_world_size(group)
        if num_ranks == 1:
            return buffer
        if buffer.layout != torch.strided:  # of an embedding with sparse=True: it fills a bucket of its own
            buffer.div_(num_ranks)
            kept = buffer._indices(), buffer._values()
            self.bytes_sent += (num_ranks - 1) * sum(t.numel() * t.element_size() for t in kept)
            dist.all_reduce(buffer, group=group)
            return buffer
        layout = tuple(id(p) for p in bucket.parameters())
        if self._layouts.setdefault(bucket.index(), layout) != layout:  # torch makes other ones after the first step
            self._errors.clear()
            self._layouts = {bucket.index(): layout}
        coded, exact = self._parts(bucket, num_ranks)
        if exact:
            values = torch.cat(exact).div_(num_ranks)
            dist.all_reduce(values, group=group)
            self.bytes_sent += 2 * (num_ranks - 1) * values.numel() * values.element_size() // num_ranks
            _copy_to(exact, values)
        if coded:
            values = torch.cat(coded)
            shard = -(-values.numel() // num_ranks)
            padded = nn.functional.pad(values, (0, shard * num_ranks - values.numel())).view(num_ranks, shard)
            mean = self._sum_of_shards(padded, group, bucket.index()).div_(num_ranks)
            _copy_to(coded, self._gather(mean, group, bucket.index(), buffer.dtype))
        return buffer

    def _parts(self, bucket: Any, num_ranks: int) -> tuple[list[Tensor], list[Tensor]]:
        """Slices of the bucket's buffer, one for each parameter: those to be coded, and the others."""
        buffer = bucket.buffer()
        slices = [(p.dim(), buffer[g.storage_offset() - buffer.storage_offset():][:g.numel()])
                  for p, g in zip(bucket.parameters(), bucket.gradients())]
        coded = [s for rank, s in slices if rank > 1 and buffer.dtype in CODED]
        num_elements = sum(s.numel() for s in coded)
        if num_ranks * self._blob_bytes(-(-num_elements // num_ranks)) >= num_elements * buffer.element_size():
            return [], [s for _, s in slices]
        return coded, [s for rank, s in slices if rank <= 1]

    @contextmanager
    def beside(self, x: Tensor) -> Iterator[None]:
        """On a GPU, a stream beside that of the backward pass, so that neither waits for the other."""
        if not x.is_cuda:
            yield
            return
        if x.device not in self._streams:
            self._streams[x.device] = torch.cuda.Stream(x.device)  # type: ignore[no-untyped-call,unused-ignore]
        stream = self._streams[x.device]
        stream.wait_stream(torch.cuda.current_stream(x.device))
        with torch.cuda.stream(stream):
            yield


def _copy_to(slices: Sequence[Tensor], values: Tensor) -> None:
    start = 0
    for s in slices:
        s.copy_(values[start:start + s.numel()])
        start += s.numel()


# torch compares the annotations with the types themselves: strings, as __future__ makes them, would not do.
def all_reduce_hook(state: AllReduceState,
                    bucket: dist.GradBucket) -> Future[Tensor]:  # type: ignore[name-defined,unused-ignore]
    """For DistributedDataParallel: model.register_comm_hook(furl_torch.comm.AllReduceState(bits=4), all_reduce_hook).

    Averages the gradients of a bucket. In host memory it returns when they are there: the second of its collectives,
    begun by whichever thread has finished the first, might meet another bucket's on another rank. On a GPU it waits
    for nothing: the order of its stream is that of the calls."""
    buffer = bucket.buffer()
    future: Future[Tensor] = Future(devices=[buffer.device] if buffer.is_cuda else [])
    with state.beside(buffer):
        future.set_result(state.average_(bucket))
    return future


class ReduceScatter(_Codes):
    """For FSDP2: module.set_custom_reduce_scatter(furl_torch.comm.ReduceScatter(bits=4)), one for each such module.

    FSDP hands over the shards of all parameters of a module as one row. All are compressed, those of biases and norms
    too: a module of their own, by fully_shard without this, keeps them exact.

    bits, error_feedback: as for AllReduceState.
    """

    def __init__(self, bits: int = 4, *, error_feedback: bool = False) -> None:
        super().__init__(bits, error_feedback)

    def allocate(self, size: Sequence[Any], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Memory for an input or an output."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any,
                 async_op: bool = False) -> None:
        """input_tensor: a shard for each rank of the group, f32, f16 or bf16. output_tensor: this rank's, reduced."""
        num_ranks = dist.get_world_size(group)
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            raise ValueError(f"op is {op}: must be SUM or AVG (set_force_sum_reduction_for_comms asks for SUM)")
        if async_op:
            raise ValueError("async_op is True: must be False")
        if input_tensor.numel() != num_ranks * output_tensor.numel():
            raise ValueError(f"input_tensor has {input_tensor.numel()} elements: must have {num_ranks} times the "
                             f"{output_tensor.numel()} of output_tensor")
        if num_ranks == 1 or input_tensor.numel() == 0:
            output_tensor.copy_(input_tensor.reshape(output_tensor.shape))
            return
        total = self._sum_of_shards(input_tensor.view(num_ranks, -1), group, None)
        output_tensor.copy_(total.div_(num_ranks) if op == dist.ReduceOp.AVG else total)


def compress_reduce_scatters(model: nn.Module, bits: int = 4, *, error_feedback: bool = False) -> int:
    """Gives each module of the model that fully_shard was called for a ReduceScatter, and says to how many."""
    modules = [m for m in model.modules() if hasattr(m, "set_custom_reduce_scatter")]
    for m in modules:
        m.set_custom_reduce_scatter(ReduceScatter(bits, error_feedback=error_feedback))  # type: ignore[operator]
    return len(modules)
