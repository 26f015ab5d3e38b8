#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Turns the JSON of either benchmark into a Markdown table and a chart of bandwidth beside the copy.

    report.py RESULTS.json      writes RESULTS.md and, where matplotlib is installed, RESULTS.png
"""

import json
import os
import re
import sys
from dataclasses import dataclass

TYPES = {"f32", "f16", "bf16", "u8"}
REFERENCES = {"copy", "add_arrays", "tile_load", "tile_store", "random_bits"}
# The baselines, and which rows each is held against: those of this primitive and path.
PEERS = {
    "cub_min_max": ("block_min_max", "flat"),
    "division_compress": ("compress", "lfc_2d"),
    "division_decompress": ("decompress", "lfc_2d"),
    "actnn_compress": ("compress", "flat"),
    "actnn_decompress": ("decompress", "flat"),
}


@dataclass(frozen=True)
class Key:
    """What a row's name says; "" for what it does not say."""

    primitive: str
    path: str
    type: str
    bits: str = ""
    group: str = ""
    rounding: str = ""
    timing: str = ""
    tensor: str = ""
    threads: str = ""


@dataclass
class Row:
    key: Key
    microseconds: float  # of a call
    gigabytes: float  # moved per second
    elements: float  # per second
    of_copy: float  # fraction of the copy's rate; 0 if there is none


def parse_name(name):
    primitive, path, element, *words = name.split("/")
    if element not in TYPES:
        raise ValueError(f"{name}: no element type in its third place")
    fields = {}
    for word in words:
        label, _, value = word.partition(":")
        if label in ("bits", "group", "threads"):
            fields[label] = value
        elif label in ("nearest", "dithered"):
            fields["rounding"] = label
        elif label in ("hot", "per_call"):
            fields["timing"] = label
        elif label != "manual_time":
            fields["tensor"] = word
    return Key(primitive, path, element, **fields)


def read_rows(results):
    """Rows measured, and (name, message) of those that were not. Medians, where there are any."""
    entries = results["benchmarks"]
    medians = {e["run_name"] for e in entries if e.get("aggregate_name") == "median"}
    rows, failures = [], {}
    for entry in entries:
        name = entry["run_name"]
        if entry.get("error_occurred"):
            failures[name] = entry.get("error_message", "")
        elif name in medians and entry.get("aggregate_name") != "median":
            continue
        elif "GB/s" in entry:
            rows.append(Row(parse_name(name), entry["us/call"], entry["GB/s"],
                            entry["elements/s"], entry.get("of_copy", 0.0)))
    return rows, list(failures.items())


def machine_name(context):
    return context.get("device") or context.get("cpu") or f"{context['num_cpus']} CPUs"


def in_order_of_primitives(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row.key.primitive, []).append(row)
    return groups


# ---- Markdown --------------------------------------------------------------------------------


def table(header, lines):
    rule = ["---"] * len(header)
    return ["| " + " | ".join(cells) + " |" for cells in [header, rule, *lines]] + [""]


def name_cells(key):
    return [key.path, key.type, key.bits, key.group, key.rounding, key.timing, key.tensor, key.threads]


NAME_HEADER = ["path", "type", "bits", "group", "rounding", "timing", "tensor", "threads"]


def is_plain(key):
    return not key.rounding and not key.timing


def comparisons(rows):
    """(row, baseline row) of all pairs that do the same to the same tensor."""
    pairs = []
    for baseline in rows:
        peer = PEERS.get(baseline.key.primitive)
        for row in rows:
            a, b = row.key, baseline.key
            if ((a.primitive, a.path) == peer and a.group in ("", "256") and is_plain(a)
                    and (a.type, a.bits, a.tensor) == (b.type, b.bits, b.tensor)):
                pairs.append((row, baseline))
    return pairs


def markdown(results):
    context = results["context"]
    rows, failures = read_rows(results)
    out = [f"# {machine_name(context)}", "",
           f"{context['date']}. Medians of repetitions; GB/s counts what a call reads and writes.", ""]
    for primitive, members in in_order_of_primitives(rows).items():
        out += [f"## {primitive}", ""]
        out += table(
            NAME_HEADER + ["microseconds", "G elements/s", "GB/s", "of copy"],
            [name_cells(r.key) + [f"{r.microseconds:.1f}", f"{r.elements * 1e-9:.4g}",
                                  f"{r.gigabytes:.4g}", f"{r.of_copy:.2f}" if r.of_copy else ""]
             for r in members])
    pairs = comparisons(rows)
    if pairs:
        out += ["## Beside the baselines", ""]
        out += table(["primitive", *NAME_HEADER[:-1], "baseline", "times as fast"],
                     [[r.key.primitive, *name_cells(r.key)[:-1], b.key.primitive,
                       f"{r.elements / b.elements:.2f}"] for r, b in pairs])
    if failures:
        out += ["## Not measured", "", *(f"- {name}: {message}" for name, message in failures), ""]
    return "\n".join(out)


# ---- Chart -----------------------------------------------------------------------------------


def log2_size(row):
    found = re.fullmatch(r"log2_size:(\d+)", row.key.tensor)
    return int(found[1]) if found else None


def is_usual(key):
    usual = ("4", "64") if key.path == "nf4" else ("2", "256")
    return key.bits in ("", usual[0]) and key.group in ("", usual[1]) and is_plain(key)


def typical_rows(rows):
    """For every primitive, path, type and thread count: 2 bits in groups of 256, or what it has in
    their place, stochastic, on the tensor that took longest."""
    chosen = {}
    for row in rows:
        key = row.key
        if not is_usual(key):
            continue
        place = (key.primitive, key.path, key.type, key.threads)
        if place not in chosen or row.microseconds > chosen[place].microseconds:
            chosen[place] = row
    return list(chosen.values())


def colour(primitive):
    if primitive in PEERS:
        return "#c8641e"
    return "#8a8a8a" if primitive in REFERENCES else "#2f6fb0"


def draw_bars(axes, rows):
    """One bar a row, grouped by primitive, and a mark where the copy of the same tensor is."""
    place, places, labels = 0.0, [], []
    for primitive, members in in_order_of_primitives(rows).items():
        for row in members:
            axes.barh(place, row.gigabytes, color=colour(primitive), height=0.8)
            if row.of_copy > 0:
                axes.plot([row.gigabytes / row.of_copy] * 2, [place - 0.4, place + 0.4],
                          color="black", linewidth=1.5)
            places.append(place)
            threads = f", {row.key.threads} thr." if row.key.threads else ""
            labels.append(f"{primitive} {row.key.path} {row.key.type}{threads}")
            place += 1
        place += 0.6
    axes.set_yticks(places, labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("GB/s read and written; black: copy of the same tensor")


def draw_sizes(axes, rows):
    """Bandwidth over size for what compresses and decompresses f32; the copy is the roof. A colour a
    primitive, a line style a path."""
    # What is measured at one size has no curve.
    styles = {"flat": "-", "lfc_1d": ":", "lfc_2d": "--", "mixed": "-.", "rotated": (0, (3, 1, 1, 1, 1, 1))}
    curves = {}
    for row in rows:
        key = row.key
        shown = key.primitive == "copy" or "compress" in key.primitive
        if not shown or key.path not in styles or key.type != "f32" or log2_size(row) is None:
            continue
        threads = f", {key.threads} thr." if key.threads else ""
        label = f"{key.primitive} {key.path}{threads}"
        curves.setdefault((key.primitive, key.path, label), []).append(
            (log2_size(row), row.gigabytes))
    colours = {}
    for (primitive, path, label), points in curves.items():
        roof = primitive == "copy"
        chosen = "black" if roof else colours.setdefault(primitive, f"C{len(colours)}")
        axes.plot(*zip(*sorted(points)), label=label, color=chosen, linestyle=styles[path],
                  linewidth=3 if roof else 1.2, marker="x" if primitive in PEERS else ".")
    axes.set_yscale("log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("log2 of the number of elements (f32)")
    axes.set_ylabel("GB/s read and written")
    axes.legend(fontsize=7)


def draw(results, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows, _ = read_rows(results)
    bars = typical_rows(rows)
    swept = [row for row in rows if is_usual(row.key)]
    has_sizes = len({log2_size(row) for row in swept} - {None}) > 1
    figure, axes = pyplot.subplots(1, 2 if has_sizes else 1, squeeze=False, layout="constrained",
                                   figsize=(16 if has_sizes else 8, 3 + 0.2 * len(bars)))
    draw_bars(axes[0][0], bars)
    if has_sizes:
        draw_sizes(axes[0][1], swept)
    figure.suptitle(machine_name(results["context"]))
    figure.savefig(path, dpi=120)


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        results = json.load(file)
    base = os.path.splitext(arguments[0])[0]
    with open(base + ".md", "w", encoding="utf-8") as file:
        file.write(markdown(results))
    print(f"wrote {base}.md")
    try:
        draw(results, base + ".png")
        print(f"wrote {base}.png")
    except ModuleNotFoundError:
        print("no chart: matplotlib is not installed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
