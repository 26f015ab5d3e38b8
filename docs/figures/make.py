#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of README.md and FORMAT.md from data in the tree: python3 docs/figures/make.py

Needs matplotlib. The data are demo.csv, gradients.csv and host_speed.csv beside this file, bench/counts/machine.csv, and
test/data/golden.json, whose blobs hold the layout that is drawn. Each figure carries a digest of them and of
this file; with --check, nothing is drawn, and a figure of other data is an error.
"""

import csv
import hashlib
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = [HERE / "make.py", HERE / "demo.csv", HERE / "gradients.csv", HERE / "host_speed.csv", ROOT / "bench/counts/machine.csv"]
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in DATA)).hexdigest()

if "--check" in sys.argv:
    old = [path.name for path in sorted(HERE.glob("*.png")) if DIGEST.encode() not in path.read_bytes()]
    sys.exit(f"drawn from other data: {', '.join(old)}; run docs/figures/make.py" if old else 0)

import matplotlib  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import FancyArrowPatch, Rectangle  # noqa: E402

INK, GREY, PALE = "#222222", "#777777", "#e4e4e4"
BLUE, ORANGE, GREEN = "#1f6f9f", "#d9731a", "#3f8f5f"
ROW_COLOURS = ["#1f6f9f", "#5aa0c8", "#9cc9e2", "#cfe5f2", "#f6dfc9", "#efb988", "#d9731a", "#9c4f0d"]

plt.rcParams.update({
    "font.size": 15, "font.family": "DejaVu Sans", "text.color": INK, "axes.edgecolor": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "figure.facecolor": "white",
    "savefig.facecolor": "white", "savefig.dpi": 110})


def table(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def save(figure, name):
    figure.savefig(HERE / name, bbox_inches="tight", pad_inches=0.2, metadata={"Software": None, "Source": DIGEST})
    plt.close(figure)


def canvas(width, height, x_end, y_end):
    figure, axes = plt.subplots(figsize=(width, height))
    axes.set_xlim(0, x_end)
    axes.set_ylim(y_end, 0)
    axes.axis("off")
    return figure, axes


def box(axes, x, y, width, height, colour, text="", text_colour="white", size=15, **more):
    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor="white", linewidth=1.5, **more))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", color=text_colour, fontsize=size)


def arrow(axes, begin, end):
    axes.add_patch(FancyArrowPatch(begin, end, arrowstyle="-|>", mutation_scale=22, color=INK, linewidth=1.8))


# ---- The format, as it is drawn: checked against blobs from an independent implementation ----------

def place(bits, row, column, bit):
    """Byte of a tile's codes, and bit in it, of a bit of the code at row and column."""
    at = row * bits + bit
    return 128 * (at // 8) + column, at % 8


def check_layout():
    cases = json.loads((ROOT / "test/data/golden.json").read_text())["cases"]
    checked = 0
    for case in cases:
        if case["kind"] != "codes" or not case["input"]:
            continue
        codes, bits = bytes.fromhex(case["input"]), case["bits"]
        blob = bytearray(len(case["blob"]) // 2)
        for i, code in enumerate(codes):
            for bit in range(bits):
                byte, shift = place(bits, i % 1024 // 128, i % 128, bit)
                blob[i // 1024 * 128 * bits + byte] |= (code >> bit & 1) << shift
        assert blob.hex() == case["blob"], case["name"]
        checked += 1
    assert checked >= 3


def part_sizes(shape, bits, group, window):
    """Bytes of codes, metadata (bf16) and LFC (bf16)."""
    def align(size):
        return -(-size // 16) * 16
    n = math.prod(shape)
    cells = math.prod(-(-size // width) for size, width in zip(shape, window))
    return -(-n // 1024) * 128 * bits, align(-(-n // group) * 4), align(cells * 2)


# ---- Figures ---------------------------------------------------------------------------------------

def draw_blob():
    shape, bits, group, window = (64, 256, 56, 56), 2, 256, (1, 1, 8, 8)
    tensor = math.prod(shape) * 4
    codes, meta, lfc = part_sizes(shape, bits, group, window)
    blob = codes + meta + lfc
    figure, axes = canvas(14, 6.6, 140, 66)

    axes.text(0, 3, "a tensor: 64 x 256 x 56 x 56 values in f32", fontsize=17, weight="bold")
    axes.text(140, 3, f"{tensor / 1e6:.1f} MB", fontsize=17, weight="bold", ha="right")
    box(axes, 0, 5, 140, 7, PALE)
    for i in range(1, 28):
        axes.plot([5 * i] * 2, [5, 12], color="white", linewidth=1)
    box(axes, 20, 5, 5, 7, GREY)
    axes.plot([20, 0], [12, 17], color=GREY, linewidth=1)
    axes.plot([25, 61], [12, 17], color=GREY, linewidth=1)
    axes.text(70, 8.6, "tiles of 1024 values, each coded by one warp", ha="center", va="center", fontsize=15)

    box(axes, 0, 17, 61, 9, PALE)
    for i in range(4):
        box(axes, 0.5 + 15.1 * i, 17.6, 14.7, 7.8, [BLUE, "#5a93b7"][i % 2], "a group:\n256 values", size=13)
    steps = ["subtract the mean of the value's 8 x 8 cell", "find the smallest value (lo) and the step of each group",
             "code = (value - lo) / step, rounded up or down at random"]
    for i, text in enumerate(steps):
        axes.text(66, 18.5 + 4.2 * i, str(i + 1), color=BLUE, fontsize=17, weight="bold", va="center")
        axes.text(69, 18.5 + 4.2 * i, text, fontsize=14, va="center")
    arrow(axes, (30, 27), (30, 34.5))
    axes.text(32.5, 31, "the tensor is read from memory once", fontsize=14, va="center", color=GREY)

    axes.text(0, 38.5, "its blob, enlarged", fontsize=17, weight="bold")
    axes.text(140, 38.5, f"{blob / 1e6:.1f} MB:  {tensor / blob:.1f} times smaller", fontsize=17, weight="bold", ha="right")
    x = 0
    for size, colour, name, note, at, align in [
            (codes, BLUE, "codes", "2 bits per value", 59, "center"),
            (meta, ORANGE, "", "metadata: lo and step\nof each group, in bf16", 111, "right"),
            (lfc, GREEN, "", "LFC: the mean of\neach cell, in bf16", 140, "right")]:
        width = 140 * size / blob
        box(axes, x, 40.5, width, 8, colour, name, size=17)
        if colour == ORANGE:
            axes.plot([x + width / 2, x + width / 2, 112], [48.5, 51.6, 51.6], color=ORANGE, linewidth=1.5)
        axes.text(at, 50, f"{size / 1e6:.2f} MB\n{note}", ha=align, va="top", fontsize=14, color=colour, weight="bold")
        x += width
    axes.text(0, 63.5, "to scale:", fontsize=14, va="center", color=GREY)
    box(axes, 12, 62, 128, 3, PALE)
    box(axes, 12, 62, 128 * blob / tensor, 3, BLUE)
    axes.text(12 + 128 * blob / tensor + 1, 63.5, "blob", fontsize=13, va="center", color=BLUE)
    axes.text(139, 63.5, "tensor", fontsize=13, va="center", ha="right", color=GREY)
    save(figure, "blob.png")


def draw_tile():
    figure, axes = canvas(14, 8.6, 140, 86)
    axes.text(0, 3, "A tile: 1024 consecutive elements", fontsize=17, weight="bold")
    columns, left, top, wide, high = [0, 1, 2, 3, None, 126, 127], 13, 10, 13, 4.6
    for j, column in enumerate(columns):
        x = left + wide * j
        if column is None:
            axes.text(x + wide / 2, top + 4 * high, "...", ha="center", va="center", fontsize=20)
            continue
        axes.text(x + wide / 2, top - 1.8, f"column {column}", ha="center", fontsize=12 if column > 99 else 13,
                  weight="bold" if column == 2 else "normal")
        for row in range(8):
            box(axes, x, top + high * row, wide, high, ROW_COLOURS[row], str(128 * row + column),
                INK if 1 < row < 6 else "white", 14)
    for row in range(8):
        axes.text(left - 1.5, top + high * (row + 0.5), f"row {row}", ha="right", va="center", fontsize=13)
    axes.add_patch(Rectangle((left + 2 * wide, top), wide, 8 * high, fill=False, edgecolor=INK, linewidth=3))
    axes.text(107, 16, "The 8 elements of a\ncolumn are packed\ntogether: with 2 bits\ninto 2 bytes.", fontsize=15, va="top")
    arrow(axes, (left + 2.5 * wide, top + 8 * high + 0.5), (left + 2.5 * wide, 55.5))

    bits, column = 2, 2
    for row in range(8):
        byte, shift = place(bits, row, column, 0)
        x = {0: 61, 1: 15}[byte // 128] + (6 - shift) / 2 * 11
        box(axes, x, 57, 11, 6, ROW_COLOURS[row], f"row {row}", INK if 1 < row < 6 else "white", 13)
    axes.text(13, 60, "column 2", ha="right", va="center", fontsize=13, weight="bold")
    axes.text(37, 66, "byte 1", ha="center", fontsize=13)
    axes.text(83, 66, "byte 0", ha="center", fontsize=13)
    axes.text(107.5, 60, "lowest bit on the right", va="center", fontsize=13, color=GREY)

    axes.text(0, 73, "In the blob: 128 x 2 bytes", fontsize=17, weight="bold")
    for k in range(2):
        for j in range(7):
            name = ["0", "1", "2", "3", "...", "126", "127"][j]
            box(axes, 70 * k + 9.8 * j, 75, 9.8, 5, INK if name == "2" else [BLUE, "#5a93b7"][k], name, size=13)
        axes.text(70 * k + 34, 83.4, f"byte {k} of each column: 128 bytes", ha="center", fontsize=14)
    save(figure, "tile.png")


def draw_demo():
    rows = table(HERE / "demo.csv")
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5.6), sharey=True, width_ratios=[3, 2])
    names = [row["kept_as"] for row in rows]
    colours = [GREY] + [BLUE] * (len(rows) - 1)
    sizes = [float(row["saved_megabytes"]) for row in rows]
    left.barh(names, sizes, color=colours, height=0.72)
    left.invert_yaxis()
    for i, row in enumerate(rows):
        ratio = "" if i == 0 else f"   {float(row['ratio']):.1f}x smaller"
        inside = i == 0
        left.text(sizes[i] + (-0.4 if inside else 0.3), i, f"{sizes[i]:.2f} MB{ratio}", va="center", weight="bold",
                  ha="right" if inside else "left", color="white" if inside else INK)
    left.set_title("kept for the backward pass, per step", fontsize=16, loc="left", weight="bold")
    left.set_xticks([])

    accuracy = [float(row["mean_accuracy_percent"]) for row in rows]
    right.axvline(accuracy[0], color=GREY, linewidth=1.5, linestyle=":")
    right.scatter(accuracy, range(len(rows)), s=110, color=colours, zorder=3)
    for i, value in enumerate(accuracy):
        right.text(87.6, i, f"{value:.2f} %", va="center", weight="bold")
    right.set_xlim(87.6, 89.9)
    right.set_title("test accuracy, mean of 3 seeds", fontsize=16, loc="left", weight="bold")
    right.set_xticks([])
    for axes in (left, right):
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
    figure.tight_layout(w_pad=2)
    save(figure, "demo.png")


def plain(axes, names):
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_speed():
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5.6))
    speed = {row["call"]: float(row["one_thread"]) for row in table(HERE / "host_speed.csv")}
    shown = {"memcpy": "memcpy", "compress": "compress, 2 bits, stochastic",
             "compress, means": "compress, 2 bits, 8 x 8 means", "decompress": "decompress, 2 bits",
             "decompress, means": "decompress, 2 bits, 8 x 8 means", "decompress_add": "decompress_add, 2 bits"}
    values = [speed[row] for row in shown.values()]
    left.barh(range(len(shown)), values, color=[GREY] + [BLUE] * 5, height=0.74)
    for i, value in enumerate(values):
        left.text(value - 0.2, i, f"{value:.1f}", va="center", ha="right", weight="bold", color="white")
    left.axvline(speed["memcpy"], color=GREY, linewidth=1.5, linestyle=":")
    left.set_title("CPU, measured:\nGB per second, one thread", fontsize=16, loc="left", weight="bold")
    plain(left, shown)

    counts = {(row["operation"], row["type"], row["bits"], row["shape"]): float(row["instructions"])
              for row in table(ROOT / "bench/counts/machine.csv") if row["architecture"] == "sm_90"}
    calls = [(operation, shape) for operation in ("compress", "decompress", "decompress_add") for shape in ("flat", "56")]
    for i, (operation, shape) in enumerate(calls):
        for j, (kind, colour) in enumerate((("f32", BLUE), ("bf16", ORANGE))):
            value = counts[operation, kind, "2", shape]
            right.barh(i + 0.4 * j - 0.2, value, color=colour, height=0.37)
            right.text(value + 0.3, i + 0.4 * j - 0.2, f"{value:.1f}  {kind}", va="center", fontsize=13, color=colour,
                       weight="bold")
    right.set_title("GPU, counted, not timed: machine\ninstructions per value on sm_90 (H100)", fontsize=16, loc="left", weight="bold")
    plain(right, [operation + (", means" if shape == "56" else "") for operation, shape in calls])
    right.set_xlim(0, 31)
    figure.tight_layout(w_pad=3)
    save(figure, "speed.png")


def draw_gradients():
    rows = table(HERE / "gradients.csv")
    shown = {"means": ("DIVISION: means of 8 x 8, min-max", ORANGE), "min-max": ("ActNN: min-max", GREY),
             "dithered": ("the same bytes, dithered", GREEN), "rotated": ("rotated, after means of 8 x 8", BLUE)}
    figure, axes = plt.subplots(figsize=(12, 5.6))
    for codec, (name, colour) in shown.items():
        points = [(float(row["saved_bytes"]) / 1e6, float(row["error"]), row["bits"]) for row in rows if row["codec"] == codec]
        axes.plot([p[0] for p in points], [p[1] for p in points], "o-", color=colour, linewidth=2.5, markersize=9, label=name)
        for megabytes, error, bits in points:
            axes.annotate(bits, (megabytes, error), xytext=(8, 6), textcoords="offset points", color=colour, weight="bold")
    axes.set_yscale("log")
    axes.set_xlabel("kept for the backward pass, MB a step (numbers: bits of a code)")
    axes.set_title("Squared error of the gradient, in parts of its square", fontsize=16, loc="left", weight="bold")
    axes.grid(axis="y", color=PALE)
    axes.legend(frameon=False, loc="upper right")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    save(figure, "gradients.png")


if __name__ == "__main__":
    check_layout()
    draw_blob()
    draw_tile()
    draw_demo()
    draw_gradients()
    draw_speed()
