#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the machine instructions that the main kernels run, compares them with a checked-in
table, and fails where a number rose.

    machine.py [--only 90,100] SOURCE TABLE NVDISASM LAUNCHER NVCC [ARG ...]  compare
    machine.py --update ...                  write the table anew
    machine.py --parts OPERATION TYPE BITS SHAPE ...  what the instructions of a case are for

LAUNCHER takes `--cc N -- PROGRAM ARG ...` and runs the program on a device, a real or a simulated
one, of that compute capability.

The intermediate code runs with counters, once for each case, so that it is known how often warps
run each of its lines. The same code is compiled to machine code that names the lines it came from,
and sass.py brings both together. Nothing is known of the kernels beforehand, not even which of
them a case runs. The numbers depend on the compiler, which the table names.
"""

import argparse
import collections
import concurrent.futures
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import ptx  # noqa: E402
import sass  # noqa: E402
from check_resources import compiler_version, read_table  # noqa: E402

ARCHITECTURES = ["80", "90", "100", "120"]
KEYS = ["operation", "type", "bits", "shape", "architecture"]
# Per element, both: of the loop over tiles, or of all where there is none; of all.
NUMBERS = ["instructions", "with_prologue"]
TOLERANCE = 0.005
# Machine instructions that come from one line each, and those lines; loads may be merged.
FIXED = re.compile(r"SHFL|STG|STS|BAR|RED|ATOM")
FIXED_LINE = re.compile(r"\s*(@!?%\w+ )?(shfl|st\.global|st\.shared|bar\.sync|red|atom)\b")

# The parts of the work, and the functions that do it with all that they call.
PARTS = {
    "load": ["load_tile", "load_tile_as_f32", "load_rows", "load_row", "load_vector"],
    "means": ["subtract_means", "subtract", "pool_lfc", "pooling", "means_of", "lfc_slots",
              "store_lfc"],
    "minimum, maximum": ["tile_min_max", "row_min_max", "wide_min_max", "row_pair_ranges"],
    "exchange": ["exchange_rows", "reduce_rows", "for_each_distance", "shuffle_xor",
                 "divide_words", "exchange_wide"],
    "parameters": ["make_group", "make_groups", "make_usual_group"],
    "broadcast": ["shuffle_in_eight"],
    "metadata": ["store_group", "index", "group_of_lane"],
    "random words": ["random_words", "philox4x32", "words", "get"],
    "quantize": ["to_fixed", "quantize_tile", "quantize"],
    "round, pack": ["round_row", "pack_columns"],
    "store": ["store_codes", "store_packed", "store_words", "store"],
}
PART_OF = {name: part for part, names in PARTS.items() for name in names}


def cases():
    for element in ["f32", "bf16"]:
        for shape in ["flat", 56, 112, 224, 28, 14, 7, 75, "sequence"]:
            yield "compress", element, 2, shape
        for operation in ["decompress", "decompress_add"]:
            for shape in ["flat", 56]:
                yield operation, element, 2, shape
        for operation in ["compress_rotated", "decompress_rotated"]:
            for bits in [1, 2]:
                yield operation, element, bits, "flat"
        for operation in ["relu_positives", "compress_mixed", "decompress_mixed"]:
            yield operation, element, 2, "flat"
    for operation in ["compress", "decompress"]:
        yield operation, "f16", 2, "flat"


class Program:
    """The program that runs the cases, compiled for some architectures in a folder."""

    def __init__(self, folder, arguments):
        self.folder, self.arguments = folder, arguments
        self.numbers = arguments.only.split(",")
        targets = [f"-gencode=arch=compute_{n},code=compute_{n}" for n in self.numbers]
        subprocess.run([*arguments.nvcc, "-c", "-lineinfo", f"-DFURL_PROFILE={ptx.COUNTERS}",
                        *targets, f"--threads={os.cpu_count()}", "--keep", "--keep-dir", folder,
                        "-o", self.at("program.o"), arguments.source],
                       check=True)

    def at(self, name):
        return os.path.join(self.folder, name)

    def tool(self, name):
        return os.path.join(os.path.dirname(shutil.which(self.arguments.nvcc[0])), name)

    def code(self, number):
        stem = os.path.splitext(os.path.basename(self.arguments.source))[0]
        suffix = f".compute_{number}" if len(self.numbers) > 1 else ""
        with open(self.at(f"{stem}{suffix}.ptx"), encoding="utf-8") as file:
            return ptx.Code(file.read())

    def write(self, name, text):
        with open(self.at(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.at(name)

    def profile(self, code, number, wanted):
        """By case: the number of elements, and how often warps reached each counter."""
        counted = self.write("counted.ptx", code.with_counters())
        binary, linked, program = map(self.at, ["counted.fatbin", "counted.o", "counted"])
        subprocess.run([self.tool("fatbinary"), "-64", "--compress=false", "--create", binary,
                        f"--image3=kind=ptx,sm={number},file={counted}"], check=True)
        subprocess.run(["objcopy", "--update-section", f".nv_fatbin={binary}", self.at("program.o"),
                        linked], check=True)
        subprocess.run([self.arguments.nvcc[0], "-cudart", "shared", "-o", program, linked],
                       check=True)

        def run(case):
            ran = subprocess.run([self.arguments.launcher, "--cc", number, "--", program,
                                  *map(str, case)], check=True, stdout=subprocess.PIPE, text=True)
            elements, *counts = ran.stdout.splitlines()
            return int(elements), dict(map(int, line.split()) for line in counts)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(zip(wanted, pool.map(run, wanted)))

    def disassemble(self, code, number, kernels):
        """By kernel, its machine code."""
        marked = self.write("marked.ptx", code.with_marks(kernels))
        subprocess.run([self.tool("ptxas"), f"-arch=sm_{number}", "-lineinfo", "-o",
                        self.at("marked.cubin"), marked], check=True)
        return sass.split(subprocess.run(
            [self.arguments.nvdisasm, "-c", "-g", self.at("marked.cubin")], check=True, text=True,
            stdout=subprocess.PIPE).stdout)


def count_of(blocks):
    return sum(block.runs * len(block.instructions) for block in blocks)


def main_part(blocks, loops):
    """The loop over tiles, the innermost of those that hold most of the instructions; or all."""
    most = [inside for inside in loops.values()
            if 2 * count_of(blocks[n] for n in inside) > count_of(blocks)]
    return [blocks[n] for n in min(most, key=len)] if most else blocks


def check_flow(code, blocks, frequencies):
    """That stores, shuffles and barriers run as often in machine code as in intermediate code."""
    runs, predicated = collections.Counter(), set()
    for block in blocks:
        for instruction in block.instructions:
            if FIXED.match(instruction.text):
                runs[instruction.line] += block.runs
                if instruction.predicate:
                    predicated.add(instruction.line)
    most = max(frequencies.values())
    for line, got in runs.items():  # not of a shuffle that was merged with an equal one
        if not FIXED_LINE.match(code.lines[line - 1]):
            continue
        # Of a warp whose lanes come in groups, each group counts in the intermediate code. Warps
        # that skip an instruction by its predicate spend it nevertheless.
        expected = frequencies[line]
        allowed = max(most / 100, expected / 4)
        if got < expected - allowed or got > expected + allowed and line not in predicated:
            raise sass.Undecided(f"{code.lines[line - 1].strip()} of line {line} runs {expected} "
                                 f"times, in machine code {got} times")


def count_kernel(code, kernel, listing, profile):
    """The blocks of the main part, and all."""
    frequencies = code.frequencies(kernel, profile)
    blocks = sass.read_kernel(listing[kernel])
    loops = sass.set_runs(blocks, frequencies)
    check_flow(code, blocks, frequencies)
    return main_part(blocks, loops), blocks


def count(code, listing, elements, profile):
    """The numbers of a case."""
    numbers = collections.Counter()
    for kernel in code.launched(profile):
        counted, blocks = count_kernel(code, kernel, listing, profile)
        numbers["instructions"] += count_of(counted) * 32 / elements
        numbers["with_prologue"] += count_of(blocks) * 32 / elements
    return numbers


def count_parts(code, listing, elements, profile):
    """By part of a case its instructions, per element."""
    parts = collections.Counter()
    for kernel in code.launched(profile):
        functions = code.functions(kernel)
        for block in count_kernel(code, kernel, listing, profile)[0]:
            for instruction in block.instructions:
                names = functions.get(instruction.line, ())
                part = next((PART_OF[name] for name in names if name in PART_OF), "loop and rest")
                parts[part] += block.runs * 32 / elements
    return parts


def measure(arguments, wanted, counting):
    """By case and architecture, what counting says."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Program(folder, arguments)
        for number in program.numbers:
            code = program.code(number)
            profiles = program.profile(code, number, wanted)
            kernels = set().union(*(code.launched(profile) for _, profile in profiles.values()))
            listing = program.disassemble(code, number, kernels)
            for case, (elements, profile) in profiles.items():
                key = (*map(str, case), "sm_" + number)
                try:
                    found[key] = counting(code, listing, elements, profile)
                except sass.Undecided as reason:
                    raise SystemExit(f"{' '.join(key)}: {reason}") from reason
    return found


def write_table(path, version, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*KEYS, *NUMBERS, "nvcc " + version])
        for key, numbers in rows.items():
            writer.writerow([*key, *(f"{numbers[name]:.4g}" for name in NUMBERS)])


def failures(rows, table):
    for key, numbers in rows.items():
        name = " ".join(key)
        if key not in table:
            yield f"{name}: not in the table"
            continue
        for field in NUMBERS:
            got = f"{numbers[field]:.4g}"  # as in the table
            if float(got) > float(table[key][field]) + TOLERANCE:
                yield f"{name}: {field} rose from {table[key][field]} to {got}"


def show_parts(found):
    for key, parts in found.items():
        print(" ".join(key), f"{sum(parts.values()):.2f}")
        for part, number in parts.most_common():
            print(f"  {part:18}{number:6.2f}")


def main(arguments):
    version = compiler_version(arguments.nvcc)
    if arguments.parts:
        show_parts(measure(arguments, [tuple(arguments.parts)], count_parts))
        return 0
    if arguments.update:
        write_table(arguments.table, version, measure(arguments, list(cases()), count))
        return 0
    table_version, table = read_table(arguments.table, KEYS)
    if version != table_version:
        print(f"left out: the table is of nvcc {table_version}, this is {version}")
        return 0
    rows = measure(arguments, list(cases()), count)
    found = list(failures(rows, table))
    print("\n".join([*found, f"{len(rows)} cases, {len(found)} failures"]))
    return 1 if found else 0


def parse(words):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default=",".join(ARCHITECTURES))
    parser.add_argument("--parts", nargs=4)
    for name in ["source", "table", "nvdisasm", "launcher"]:
        parser.add_argument(name)
    parser.add_argument("nvcc", nargs=argparse.REMAINDER)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(parse(sys.argv[1:])))
