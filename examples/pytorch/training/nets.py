# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Ordinary networks, which know nothing of compression: a small ResNet-18, ViT and GPT."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Block(nn.Module):
    """A basic block of ResNet (He et al., 2016)."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.relu2 = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False),
                                          nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu1(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        y += self.shortcut(x)
        return self.relu2(y)


def resnet(width: int = 8) -> nn.Module:
    """ResNet-18 with `width` channels in its first stage, and no pooling before it: images of
    28 x 28 become 28, 14, 7 and 4."""
    layers: list[nn.Module] = [nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width),
                               nn.ReLU(inplace=True)]
    channels = width
    for stage in range(4):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Block(channels, width << stage, stride))
            channels = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


class Layer(nn.Module):
    """A layer of a transformer, normalised before its parts."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attention(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        split = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        return self.out(self.mix(q, k, v).transpose(1, 2).reshape(batch, tokens, width))

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Every token sees all."""
        return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1) @ v

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """A vision transformer (Dosovitskiy et al., 2021): 16 patches of 7 x 7 pixels, of whose results
    the mean is taken."""

    def __init__(self, width: int = 64, depth: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 7, 7)
        self.positions = nn.Parameter(0.02 * torch.randn(1, 16, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.layers(x)).mean(1))


class CausalLayer(Layer):
    """Every token sees those before it: by fused attention, which torch 1 lacks."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        return scores.masked_fill(later, float("-inf")).softmax(-1) @ v


class GPT(nn.Module):
    """A language model of characters (Radford et al., 2019), for texts of up to 64."""

    def __init__(self, width: int = 128, depth: int = 3, heads: int = 4, characters: int = 128) -> None:
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Parameter(0.02 * torch.randn(1, 64, width))
        self.layers = nn.Sequential(*[CausalLayer(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(self.characters(x) + self.positions[:, :x.shape[1]])))


NETS = {"resnet": resnet, "vit": ViT, "gpt": GPT}
