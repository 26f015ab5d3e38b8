# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a language model by LoRA with compressed activations, and says what each way of training keeps:

    python recipes/lora.py --type llama --set num_hidden_layers=4 --set hidden_size=256 --length 256

Needs transformers and peft. The model is made from its configuration, with random weights, and learns to count: put
from_pretrained and your own batches in the place of `subject_of`.
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from typing import Any, Callable

import torch

import furl_torch
from furl_torch import compress_saved
from furl_torch.examine import kept_by
from furl_torch.subjects import Wanted, setting, subject_of

Variant = tuple[Callable[[], Any], str]  # makes a context; which checkpoints
TORCH, FURL = "torch's checkpoints", "furl's checkpoints"


def variants(bits: int) -> dict[str, Variant]:
    """By names. Layers that once have checkpoints keep them: those without come first."""
    return {"none": (nullcontext, ""),
            f"{bits} bits": (lambda: compress_saved(bits), ""),
            f"{bits} bits, offloaded": (lambda: compress_saved(bits, offload=True), ""),
            "torch's checkpoints": (nullcontext, TORCH),
            f"furl's checkpoints, {bits} bits": (lambda: compress_saved(bits), FURL),
            f"furl's checkpoints, {bits} bits, offloaded": (lambda: compress_saved(bits, offload=True), FURL)}


def with_lora(model: Any, rank: int) -> Any:
    """The model, of which only matrices of this rank, beside each linear layer, are trained."""
    peft: Any = __import__("peft")
    return peft.get_peft_model(model, peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear"))


def train(model: Any, draw: Any, make: Callable[[], Any], steps: int) -> tuple[float, float, Any]:
    """The last loss, seconds of a step, and the context."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    context = make()
    begin = time.process_time()
    for _ in range(steps):
        batch = draw()
        with context:
            loss = batch()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return float(loss.detach()), (time.process_time() - begin) / steps, context


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--type", default="llama", help="of transformers' models")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--bits", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    a = parser.parse_args()
    print(f"{'':40} {'kept, MB':>9} {'counted':>8} {'on host':>8} {'at most':>8} {'loss':>7} {'s/step':>7}")
    for name, (make, checkpoints) in variants(a.bits).items():
        torch.manual_seed(0)
        base, draw = subject_of(f"transformers:{a.type}", Wanted(a.batch, 0, a.length, a.device, dict(a.set)))
        model = with_lora(base, a.rank).train()
        if checkpoints:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        if checkpoints == FURL:
            furl_torch.checkpoint_layers(model)
        loss, seconds, context = train(model, draw, make, a.steps)
        kept = kept_by(draw(), torch.device(a.device), context)
        row = [f"{name:40} {kept / 1e6:9.2f}"]
        if isinstance(context, compress_saved):
            with context:
                value = draw()()
            live = context.live
            row.append(f"{(live.now + live.on_host) / 1e6:8.2f} {live.on_host / 1e6:8.2f}")
            live.reset_peak()
            value.backward()
            row.append(f"{live.backward_peak / 1e6:8.2f}")
        else:
            row.append(" " * 26)
        print(" ".join(row), f"{loss:7.3f} {seconds:7.3f}", flush=True)


if __name__ == "__main__":
    main()
