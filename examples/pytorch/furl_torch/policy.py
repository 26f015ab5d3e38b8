# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What an operator that saves a tensor lets it lose. What it needs depends on the operator that saves, not
on the one that made the tensor. An operator that is not in the table takes the context's codec."""

from __future__ import annotations

import math
from typing import Mapping, NamedTuple, Optional, Sequence, Union

import torch
from torch import Tensor

SHAPE, SIGNS, EXACT = -2, -1, 99  # in place of a number of bits, in this order of strictness


class Need(NamedTuple):
    """Of one operator for one tensor."""

    bits: int = 0        # at least; 0: the context's. Or SHAPE, SIGNS, EXACT
    tokens: bool = False  # groups end with the last dimension, and no means are taken across it
    exponentials: bool = False  # what is kept is exp(x): the operator reads nothing else
    channels: bool = False  # more bits where a channel, which is dimension 1, has few values


Rule = Union[Need, Mapping[int, Need]]  # for all that it saves, or by position of the argument
OUTPUT = -1    # position of outputs
OTHERS = -2    # of all arguments that the rule does not name
ROTATED = 0  # in place of a group's size: rotated codes, whose error is that of one bit more
ROTATED_POSITIVES = -1  # likewise: those of the output of a ReLU, with the mask and the mean of what is above 0
MOST_ROTATED_BITS = 4
GROUP = 256  # of values that share a minimum and a step, where codes are not rotated
# At least, of what norms of tokens save. Trained ones (BERT) have an error of .7 at 2 bits and .3 at 3, and with
# rotated codes of normalised tokens .38 at 2.
TOKEN_BITS = 3
NORMALISED_WIDTH = 128  # of a token at least: its mean and deviation take 64 bits
LAST_GROUP_BITS = 8  # where no group ends with the token
MANY_CLASSES = 64  # probabilities of fewer would not be much smaller than their logarithms: these are exact
# Bits of a channel with fewer values than this. The backward pass of batch norm multiplies what is saved by a mean
# of what is saved: noise of variance v takes v / n of the gradient away, and its norm grows by v / n in each
# layer. ResNet-50, two images of 64 x 64: projection .48 and norm 10.4 without this, .98 and 1.18 with it.
FEW_VALUES = ((8, EXACT), (16, 8), (256, 4))
MEANS_OF = 32  # values at least: a mean has 16 bits, which are better spent on codes where it is of fewer

_TOKENS = Need(tokens=True)
# Output and log-sums are computed again (attention.py). What is left are other weights between tokens, of q and k that
# are a bit off: at logits of deviation 8 the gradient's error is .36. A loud token is one here too, so that groups end
# with a head.
_ATTENTION: Rule = {0: Need(6, True), 1: Need(6, True), 2: Need(3, True), OUTPUT: Need(SHAPE), OTHERS: Need(EXACT)}
# Where they are not: noise in q and k leaves exp(q k - lse) no longer normalised, at 2 bits and logits of deviation 8
# without end. v and the output enter linearly.
_KEPT_ATTENTION: Rule = {0: Need(8, True), 1: Need(8, True), 2: Need(4, True), OUTPUT: Need(4, True),
                         OTHERS: Need(EXACT)}


def _all(rule: Rule, names: str) -> dict[str, Rule]:
    return {f"aten::{name}": rule for name in names.split()}


TABLE: dict[str, Rule] = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": _ATTENTION,
    "aten::_scaled_dot_product_flash_attention": _ATTENTION,
    "aten::_scaled_dot_product_efficient_attention": _ATTENTION,
    "aten::_scaled_dot_product_cudnn_attention": _ATTENTION,
    "aten::attention with kept results": _KEPT_ATTENTION,  # which elements it drops cannot be asked for again
    # One token with 50 times the norm of the others, as transformers have them, must not set their scale.
    "aten::native_layer_norm": _TOKENS,
    "aten::_fused_rms_norm": _TOKENS,
    "aten::rms_norm": _TOKENS,  # where it is not fused: the products that it is made of
    # They read the sign of their output.
    "aten::relu": Need(SIGNS),
    "aten::relu_": Need(SIGNS),
    # They read the indices, which are exact as all integers, and of their input no more than its shape.
    "aten::max_pool2d_with_indices": {0: Need(SHAPE)},
    "aten::max_pool3d_with_indices": {0: Need(SHAPE)},
    "aten::mean": {0: Need(SHAPE)},  # of torch 2.0 and 2.1; later ones save nothing
    "aten::leaky_relu": Need(SIGNS),
    "aten::leaky_relu_": Need(SIGNS),
    # Attention that is written out multiplies probabilities, most of them far below the largest. Logits of deviation 8
    # (T5): error 1.02 at 2 bits.
    "aten::bmm": Need(4),
    # Over all that a cuDNN, MIOpen or native one saves, and instance norm, which is one of few values.
    "aten::batch_norm": Need(channels=True),
    # Their slope bends within a step of 2 bits. Normal values, projection and error at 2 bits: hardswish .99, .42;
    # elu .89, .31; silu .96, .45; at 4 bits 1.00 and .10. Before a batch norm of few values it is much more: two images
    # of 64 x 64, EfficientNet-B0: .35 and 3.9, at 3 bits .76 and 1.2, at 4 bits .90 and .94. MobileNetV3, 16 images:
    # .73 and 1.7; at 4 bits .96 and .82. gelu, before a residual in most models, has .99 and .52 in ViT-S.
    "aten::hardswish": Need(4),
    "aten::hardswish_": Need(4),
    "aten::silu": Need(4),
    "aten::silu_": Need(4),
    "aten::elu": Need(4),
    "aten::elu_": Need(4),
    # Their slope jumps, so that values near the edge are taken for others: .70, .69 (hardtanh) and .63, .86 (abs)
    # at 2 bits, .95, .30 and .90, .45 at 4, 1.00, .08 and 1.00, .10 at 8.
    **_all(Need(8), "hardtanh hardtanh_ hardsigmoid hardsigmoid_ hardshrink softshrink threshold threshold_ "
           "_prelu_kernel prelu clamp clamp_min clamp_max abs maximum minimum smooth_l1_loss huber_loss"),
    # Products of what is saved: 8 bits are within a hundredth of it, and a restored value stays in its range.
    "aten::_softmax": Need(8),
    "aten::_safe_softmax": Need(8),  # of attention that is not fused
    "aten::sigmoid": Need(8),
    "aten::sigmoid_": Need(8),
    "aten::tanh": Need(8),
    "aten::tanh_": Need(8),
    # It reads exp of its output, which is a probability: kept as such, the gradient has no bias. With the
    # largest of each row exact, gradients of 1000 and of 32,000 classes are off by 0.003 to 0.02, at any loss.
    "aten::_log_softmax": Need(4, exponentials=True),
    # They read the shape of the logarithms.
    "aten::nll_loss_forward": {0: Need(SHAPE), OTHERS: Need(EXACT)},
    "aten::nll_loss2d_forward": {0: Need(SHAPE), OTHERS: Need(EXACT)},
    # exp of what is saved: small differences are the gradient.
    "aten::logsumexp": Need(EXACT),
    "aten::logcumsumexp": Need(EXACT),
    # They find their maximum again by comparing for equality.
    **_all(Need(EXACT), "amax amin max min median nanmedian aminmax _aminmax scatter_reduce scatter_reduce_ "
           "index_reduce index_reduce_ segment_reduce dist _cdist_forward _euclidean_dist _pdist_forward"),
    "aten::norm of another power": Need(EXACT),
    # Linear in their input, and divided by their output.
    **_all({OUTPUT: Need(EXACT)}, "norm linalg_vector_norm std"),
    # Singular somewhere in what they saved, or products of quotients by it.
    **_all(Need(EXACT), "acos acosh asin atanh erfinv logit xlogy special_xlog1py special_entr special_log_ndtr "
           "digamma polygamma lgamma mvlgamma igamma igammac addcdiv hypot atan2 copysign prod cumprod _ctc_loss"),
    "aten::pow of a fraction": Need(EXACT),
    # Their grid says which pixels there are.
    **_all({1: Need(EXACT)}, "grid_sampler_2d grid_sampler_3d cudnn_grid_sampler"),
    # What follows is computed from them again: their noise is that of every value in there.
    "furl::checkpoint": Need(8, tokens=True),
    # Where gradients have gradients: it reads the exponentials of logarithms.
    "aten::_log_softmax_backward_data": Need(EXACT),
    # They divide by what they saved, or by one less it: at the ends of its range any error is too much.
    "aten::binary_cross_entropy": Need(EXACT),
    "aten::div": {1: Need(EXACT)},
    "aten::div_": {1: Need(EXACT)},
    "aten::reciprocal": Need(EXACT),
    "aten::sqrt": Need(EXACT),
    "aten::rsqrt": Need(EXACT),
    "aten::log": Need(EXACT),
    "aten::log2": Need(EXACT),
    "aten::log10": Need(EXACT),
    "aten::log1p": Need(EXACT),
    # Nobody sees which of the operators in a fused graph saves what, nor which made it.
    "torchscript": {OUTPUT: Need(EXACT)},
}

# Operators by the position of their input. What they save there is data, also where it has no gradient. All else
# that is saved without a gradient is a frozen weight, a mask, a statistic, or somebody's matrix.
INPUT: dict[str, int] = {
    "aten::convolution": 0, "aten::native_batch_norm": 0, "aten::cudnn_batch_norm": 0,
    "aten::_batch_norm_with_update": 0, "aten::native_group_norm": 0, "aten::native_layer_norm": 0,
    "aten::_fused_rms_norm": 0,
}
INPUT_OF_LINEAR: dict[str, int] = {"aten::linear": 0, "aten::addmm": 1, "aten::mm": 0}


def is_input(operators: Sequence[str], argument: int) -> bool:
    """Whether this argument of operators[0] is data, whatever its gradient."""
    if not operators:
        return False
    table = INPUT_OF_LINEAR if "aten::linear" in operators else INPUT
    return table.get(operators[0]) == argument


class Demand(NamedTuple):
    """How one tensor is kept at least, once context, operator and shape are known."""

    bits: int           # or SHAPE, SIGNS, EXACT
    window: list[int]
    group: int
    by_rows: bool = False  # in the order of the dimensions, also where memory has another
    classes: Optional[int] = None  # codes are of exp(x), which are probabilities along this dimension
    signs: bool = False  # who asks reads no more than what is above 0; joined: somebody does
    token: int = 0  # elements that are normalised by their own mean and deviation before they are rotated; 0: none are

    def joined(self, other: "Demand") -> "Demand":
        """The least that satisfies both."""
        more, less = (other, self) if other.bits > self.bits else (self, other)
        if more.bits == EXACT:
            return more
        signs = self.signs or other.signs
        if less.bits <= 0:  # no codes: its window and group say nothing
            return more._replace(signs=signs)
        if more.classes != less.classes:
            return Demand(EXACT, [], 0)
        group = min(more.group, less.group) or max(more.group, less.group)  # rotated if both are
        by_rows = more.by_rows or less.by_rows
        token = min(more.token, less.token) or max(more.token, less.token)
        if token and max(more.token, less.token) % token:  # neither is whole tokens of the other
            return Demand(max(more.bits, LAST_GROUP_BITS), [], group or GROUP, by_rows, signs=signs)
        return Demand(more.bits, more.window if less.window and not token else [], group, by_rows, more.classes, signs,
                      token if group == ROTATED else 0)


AS_IS = Demand(EXACT, [], 0)
EXACTLY = Demand(EXACT, [], 1)  # but packed, if it is indices of max pooling, or zeros and one positive number


def rule_of(table: Mapping[str, Rule], name: str) -> Optional[Rule]:
    """The table's line for one operator, if it has one."""
    rule = table.get(name)
    if rule is None and name.startswith(("aten::linalg_", "aten::_linalg_")):
        return Need(EXACT)  # decompositions divide by differences
    return rule


def need_of(table: Mapping[str, Rule], operators: Sequence[str], argument: int) -> Need:
    """Of the innermost operator that the table has, or else none. Positions are those of the arguments of
    operators[0]: further out they are not known."""
    for i, name in enumerate(operators):
        rule = rule_of(table, name)
        if isinstance(rule, Need):
            return rule
        if rule is not None and i == 0:
            return rule.get(argument, rule.get(OTHERS, Need()) if argument >= 0 else Need())
    return Need()


def reads_signs(operators: Sequence[str]) -> bool:
    """Whether what is above 0 is all that is read of what is being saved, whatever is kept of it."""
    return need_of(TABLE, operators, OUTPUT).bits == SIGNS


def is_scale(operators: Sequence[str], x: Tensor) -> bool:
    """Whether x is one number for each row, by which the row is multiplied: noise in it is noise of all."""
    return bool(operators) and operators[0] in ("aten::mul", "aten::mul_") and x.dim() > 1 and x.shape[-1] == 1


def _divisor(row: int, most: int, least: int) -> Optional[int]:
    """The largest group from least to most that ends where a row ends."""
    group = most
    while group >= least:
        if row % group == 0:
            return group
        group //= 2
    return None


def _row(x: Tensor) -> int:
    """Elements of the dimension that is innermost in memory."""
    inner = [(stride, size) for size, stride in zip(x.shape, x.stride()) if size > 1]
    return min(inner)[1] if inner else 1


def _bits_of_few(x: Tensor) -> int:
    """By how many values a channel of x has."""
    count = x.numel() // x.shape[1] if x.dim() > 1 else x.numel()
    return next((bits for most, bits in FEW_VALUES if count < most), 0)


def _means_of(x: Tensor, window: list[int]) -> int:
    """Values of one window."""
    return math.prod(min(width, size) for width, size in zip(window, x.shape))


def demand_of(need: Need, x: Tensor, bits: int, window: list[int], group: int, normalises: bool = False) -> Demand:
    """What to keep of x, with the context's codec where the operator does not need more. normalises: whether who
    compresses can normalise tokens."""
    wanted = max(need.bits, _bits_of_few(x)) if need.channels else need.bits
    if wanted < 0 or wanted == EXACT:
        return Demand(wanted, [], group)
    bits = max(bits, wanted)
    if need.tokens and normalises and group == ROTATED and bits <= MOST_ROTATED_BITS and x.dim() > 0 \
            and x.shape[-1] >= NORMALISED_WIDTH:
        return Demand(max(bits, TOKEN_BITS), [], ROTATED, not x.is_contiguous(), token=x.shape[-1])
    if need.tokens:
        bits, group = max(bits, TOKEN_BITS), group or GROUP  # a rotation would mix tokens
        fitting = _divisor(x.shape[-1], group, 32) if x.dim() > 0 else None
        if fitting is None:
            return Demand(max(bits, LAST_GROUP_BITS), [], group)
        return Demand(bits, [], fitting, not x.is_contiguous())
    if bits > MOST_ROTATED_BITS or need.bits:  # a rotation gives a loud token's error to all around it
        group = group or GROUP
    row = _row(x)
    if group and group % row and row % group:  # groups straddle rows: smaller ones that do not cost up to 1/2 bit
        group = _divisor(row, group, 64) or group
    if need.bits or window and _means_of(x, window) < MEANS_OF:  # means move what lies at an edge of the range
        window = []
    return Demand(bits, window, group)


def demand_of_logarithms(need: Need, x: Tensor, dimension: int, bits: int, group: int) -> Demand:
    """What to keep of the output of a log-softmax over this dimension."""
    if need.bits == EXACT or x.shape[dimension] < MANY_CLASSES:
        return Demand(EXACT, [], group)
    return Demand(max(bits, need.bits), [], group or GROUP, classes=dimension)


def without_largest(x: Tensor, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """exp(x) with 0 in place of the largest of each row; this one's logarithm; and its place. It is kept
    exactly: what it lacks to 1 may be the gradient, and without it the others have a finer step."""
    largest, place = x.max(classes, keepdim=True)
    return x.exp().scatter_(classes, place, 0.0), largest, place.to(torch.int32)


def with_largest(others: Tensor, classes: int, largest: Tensor, place: Tensor) -> Tensor:
    """The inverse."""
    least = -44.0  # rather than minus infinity; less, and gradients would be subnormal numbers, which are slow
    return others.log_().clamp_min_(least).scatter_(classes, place.to(torch.int64), largest)
