# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Models by name, with random weights, and batches that they can learn something from. Nothing is downloaded."""

from __future__ import annotations

import ast
import importlib
from dataclasses import dataclass, field
from typing import Any, Callable, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Loss = Callable[[], Tensor]
Draw = Callable[[], Loss]
Subject = Tuple[nn.Module, Draw]  # draws a batch, and returns its loss as a function without arguments
CLASSES = 10


@dataclass
class Wanted:
    """What a user may ask of a model."""

    batch: int = 4
    image_size: int = 96
    length: int = 64        # of sequences
    device: str = "cpu"
    settings: dict[str, Any] = field(default_factory=dict)  # of the model or of its configuration


def setting(text: str) -> tuple[str, Any]:
    """Of name=value, with a value as Python writes it, or else a string."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def images(wanted: Wanted) -> tuple[Tensor, Tensor]:
    """Blurred patterns of ten classes under noise, and their labels."""
    patterns = torch.randn(CLASSES, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(CLASSES, (wanted.batch, ))
    x = F.interpolate(patterns[labels], size=wanted.image_size, mode="bilinear")
    return (x + torch.randn_like(x) / 2).to(wanted.device), labels.to(wanted.device)


def sequences(wanted: Wanted, vocabulary: int) -> Tensor:
    """Tokens in steps of 1 to 4."""
    begin = torch.randint(vocabulary, (wanted.batch, 1))
    step = torch.randint(1, 5, (wanted.batch, 1))
    return ((begin + step * torch.arange(wanted.length)) % vocabulary).to(wanted.device)


def classifier(model: nn.Module, wanted: Wanted) -> Subject:
    """A model of images, under cross entropy."""
    model.to(wanted.device).train()

    def draw() -> Loss:
        x, labels = images(wanted)
        return lambda: F.cross_entropy(model(x), labels)

    return model, draw


def of_torchvision(name: str, wanted: Wanted) -> Subject:
    """A classifier of torchvision.models."""
    make = getattr(importlib.import_module("torchvision.models"), name)
    return classifier(make(**wanted.settings), wanted)


def of_timm(name: str, wanted: Wanted) -> Subject:
    """A classifier of timm. Transformers are made for the size of the images."""
    make = importlib.import_module("timm").create_model
    try:
        return classifier(make(name, img_size=wanted.image_size, **wanted.settings), wanted)
    except TypeError:  # takes images of any size
        return classifier(make(name, **wanted.settings), wanted)


def of_transformers(name: str, wanted: Wanted) -> Subject:
    """A language model of transformers, made from the configuration of a type of models."""
    library = importlib.import_module("transformers")
    config = library.AutoConfig.for_model(name, **wanted.settings)
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = config.pad_token_id
    for kind in ("AutoModelForSeq2SeqLM", "AutoModelForMaskedLM", "AutoModelForCausalLM"):
        if type(config) in getattr(library, kind)._model_mapping.keys():
            model = getattr(library, kind).from_config(config).to(wanted.device).train()
            break
    else:
        raise ValueError(f"transformers has no language model of the type {name!r}")

    def draw() -> Loss:
        tokens = sequences(wanted, config.vocab_size)
        return lambda: model(input_ids=tokens, labels=tokens).loss

    return model, draw


LIBRARIES: dict[str, Callable[[str, Wanted], Subject]] = {
    "torchvision": of_torchvision, "timm": of_timm, "transformers": of_transformers}


def subject_of(spec: str, wanted: Wanted) -> Subject:
    """The model, and what draws its batches."""
    source, _, name = spec.partition(":")
    if not name:
        raise ValueError(f"{spec!r} has no colon: must be like timm:vit_small_patch16_224 or module:function")
    if source in LIBRARIES:
        return LIBRARIES[source](name, wanted)
    made: Subject = getattr(importlib.import_module(source), name)()
    return made
