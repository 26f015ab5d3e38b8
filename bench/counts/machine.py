#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the machine instructions that the main kernels run, compares them with a checked-in table, and
fails where a number rose.

    machine.py SOURCE TABLE --launcher CMD --nvdisasm CMD NVCC [ARG ...]    compare
    machine.py ... --only 90,100 ... compares for some architectures; --update writes the table anew;
    --parts "compress bf16 2 flat" shows what the instructions of one case do instead

CMD of a launcher takes `--cc N -- PROGRAM ARG ...` and runs the program on a device, real or simulated, of that
compute capability.

The intermediate code runs with counters, once for each case, so it is known how often warps run each of its
lines. The same code is made into machine code that names the lines it came from. sass.py
brings both together. Nothing is known of the kernels beforehand, not even which of them a case runs.
"""

import argparse
import collections
import concurrent.futures
import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import ptx  # noqa: E402
import sass  # noqa: E402
from check_resources import compiler_version  # noqa: E402

ARCHITECTURES = ["80", "90", "100", "120"]
KEYS = ["operation", "type", "bits", "shape", "architecture"]
# Per element, both: of the loop over tiles, or of all where there is none; of all.
NUMBERS = ["instructions", "with_prologue"]
TOLERANCE = 0.005
# Machine instructions of which each comes from a line of its own, with the lines. Loads may be merged.
FIXED = (r"(SHFL|STG|STS|BAR|RED|ATOM)",
         r"\s*(@!?%\w+ )?(shfl|st\.global|st\.shared|bar\.sync|red|atom)\b")

PARTS = {
    "load": ["load_tile", "load_tile_as_f32", "load_rows", "load_row", "load_vector"],
    "means": ["subtract_means", "subtract", "pool_lfc", "pooling", "means_of", "lfc_slots", "store_lfc"],
    "minimum, maximum": ["tile_min_max", "row_min_max"],
    "exchange": ["exchange_rows", "reduce_rows", "for_each_distance", "shuffle_xor"],
    "parameters": ["make_group", "make_groups", "params_of"],
    "broadcast": ["shuffle_in_eight"],
    "metadata": ["store_group", "store_groups", "index", "group_of_lane"],
    "random words": ["random_words", "philox4x32", "get"],
    "quantize": ["to_fixed", "quantize_tile"],
    "round, pack": ["round_row", "pack_columns"],
    "store": ["store_codes", "store_packed", "store_words"],
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


def build(folder, source, compiler, numbers):
    """The host's code, and by architecture the text of the intermediate code."""
    targets = [f"-gencode=arch=compute_{n},code=compute_{n}" for n in numbers]
    subprocess.run([*compiler, "-c", "-lineinfo", "-t2", f"-DFURL_PROFILE={ptx.COUNTERS}",
                    *targets, "--no-compress", "--keep", "--keep-dir", folder,
                    "-o", os.path.join(folder, "program.o"), source], check=True)
    stem = os.path.splitext(os.path.basename(source))[0]
    for number in numbers:
        suffix = f".compute_{number}" if len(numbers) > 1 else ""
        with open(os.path.join(folder, f"{stem}{suffix}.ptx"), encoding="utf-8") as file:
            yield number, ptx.Code(file.read())


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


class Architecture:
    def __init__(self, folder, arguments, number, code):
        self.number, self.code = number, code
        self.at = os.path.join(folder, number)
        self.nvdisasm, self.launcher = arguments.nvdisasm, arguments.launcher
        self.compiler = arguments.nvcc
        self.folder = folder

    def tool(self, name):
        return os.path.join(os.path.dirname(shutil.which(self.compiler[0])), name)

    def profile(self, wanted):
        """By case: the number of elements, and how often warps reached each counter."""
        counted = write(self.at + ".ptx", self.code.with_counters())
        subprocess.run([self.tool("fatbinary"), "-64", "--compress=false", "--create", self.at + ".fatbin",
                        f"--image3=kind=ptx,sm={self.number},file={counted}"], check=True)
        subprocess.run(["objcopy", "--update-section", f".nv_fatbin={self.at}.fatbin",
                        os.path.join(self.folder, "program.o"), self.at + ".o"], check=True)
        subprocess.run([self.compiler[0], "-cudart", "shared", "-o", self.at, self.at + ".o"], check=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(zip(wanted, pool.map(self.run, wanted)))

    def run(self, case):
        ran = subprocess.run([*shlex.split(self.launcher), "--cc", self.number, "--", self.at,
                              *map(str, case)], check=True, stdout=subprocess.PIPE, text=True)
        elements, *counts = ran.stdout.splitlines()
        return int(elements), dict(map(int, line.split()) for line in counts)

    def disassemble(self, kernels):
        marked = write(self.at + ".marked.ptx", self.code.with_marks(kernels))
        subprocess.run([self.tool("ptxas"), f"-arch=sm_{self.number}", "-lineinfo", "-o",
                        self.at + ".cubin", marked], check=True)
        return subprocess.run([self.nvdisasm, "-c", "-g", self.at + ".cubin"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout


def count_of(blocks):
    return sum(block.runs * len(block.instructions) for block in blocks)


def main_part(blocks, loops):
    """The loop over tiles, the outermost of those that hold most of the instructions; or all."""
    most = [inside for inside in loops.values()
            if 2 * count_of(blocks[n] for n in inside) > count_of(blocks)]
    return [blocks[n] for n in max(most, key=len)] if most else blocks


def check_flow(code, kernel, blocks, frequencies):
    """That stores, shuffles and barriers run as often in machine code as in the intermediate code."""
    runs, predicated = collections.Counter(), set()
    for block in blocks:
        for instruction in block.instructions:
            if re.match(FIXED[0], instruction.text):
                runs[instruction.line] += block.runs
                if instruction.predicate:
                    predicated.add(instruction.line)
    lines = [line for line in frequencies if code.kernel[line - 1] == kernel]
    few = max(frequencies[line] for line in lines) / 100
    for line in lines:
        if not re.match(FIXED[1], code.lines[line - 1]):
            continue
        expected = frequencies[line]
        missing, extra = expected - runs[line], runs[line] - expected
        # The lanes of a warp that come in groups count apart in the intermediate code. Warps that skip
        # an instruction by its predicate still spend it.
        if missing > max(few, expected / 4) or extra > max(few, expected / 4) and line not in predicated:
            raise sass.Undecided(f"{code.lines[line - 1].strip()} of line {line} runs {expected} times, "
                                 f"in machine code {runs[line]} times")


def count_kernel(code, kernel, text, frequencies):
    """The blocks of the main part, and all."""
    blocks = sass.read_kernel(text)
    loops = sass.set_runs(blocks, frequencies)
    check_flow(code, kernel, blocks, frequencies)
    return main_part(blocks, loops), blocks


def count(code, listing, elements, profile):
    """The numbers of a case."""
    frequencies = code.frequencies(profile)
    numbers = collections.Counter()
    for kernel in code.launched(profile):
        counted, blocks = count_kernel(code, kernel, listing[kernel], frequencies)
        numbers["instructions"] += count_of(counted) * 32 / elements
        numbers["with_prologue"] += count_of(blocks) * 32 / elements
    return numbers


def count_parts(code, listing, elements, profile):
    """By part of a case its instructions, per element."""
    frequencies = code.frequencies(profile)
    functions = code.functions(code.launched(profile))
    parts = collections.Counter()
    for kernel in code.launched(profile):
        for block in count_kernel(code, kernel, listing[kernel], frequencies)[0]:
            for instruction in block.instructions:
                names = functions.get(instruction.line, ())
                part = next((PART_OF[name] for name in names if name in PART_OF), "loop and rest")
                parts[part] += block.runs * 32 / elements
    return parts


def measure(arguments, folder, wanted, counting):
    """By case and architecture, what counting says."""
    numbers = arguments.only.split(",")
    found = {}
    for number, code in build(folder, arguments.source, arguments.nvcc, numbers):
        architecture = Architecture(folder, arguments, number, code)
        profiles = architecture.profile(wanted)
        kernels = set().union(*(code.launched(profile) for _, profile in profiles.values()))
        listing = sass.split(architecture.disassemble(kernels))
        for case, (elements, profile) in profiles.items():
            key = (*map(str, case), "sm_" + number)
            try:
                found[key] = counting(code, listing, elements, profile)
            except sass.Undecided as reason:
                raise SystemExit(f"{' '.join(key)}: {reason}") from reason
    return found


def read_table(path):
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = {tuple(row[key] for key in KEYS): row for row in reader}
        return reader.fieldnames[-1].split()[1], rows


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
    with tempfile.TemporaryDirectory() as folder:
        if arguments.parts:
            wanted = [tuple(case.split()) for case in arguments.parts.split(",")]
            show_parts(measure(arguments, folder, wanted, count_parts))
            return 0
        rows = measure(arguments, folder, list(cases()), count)
    if arguments.update:
        write_table(arguments.table, version, rows)
        return 0
    table_version, table = read_table(arguments.table)
    if version != table_version:
        print(f"left out: the table is of nvcc {table_version}, this is {version}")
        return 0
    found = list(failures(rows, table))
    print("\n".join([*found, f"{len(rows)} cases, {len(found)} failures"]))
    return 1 if found else 0


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--only", default=",".join(ARCHITECTURES))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--parts")
    parser.add_argument("source")
    parser.add_argument("table")
    parser.add_argument("nvcc", nargs=argparse.REMAINDER)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(parse(sys.argv[1:])))
