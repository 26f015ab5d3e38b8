#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Compares what kernels execute with a checked-in table, and fails where a number rose.

    check_counts.py PROGRAM TABLE LAUNCHER [ARG ...]     compare
    check_counts.py --update PROGRAM TABLE LAUNCHER ...  write the table anew

LAUNCHER is a command that takes `--report FILE -- PROGRAM ARG ...`, runs the program and appends
one JSON line per kernel to FILE.
"""

import concurrent.futures
import csv
import json
import os
import subprocess
import sys
import tempfile

KEYS = ["operation", "type", "bits", "shape"]
# Thread instructions per element; 32-byte sectors over the fewest that the requests could have
# taken, and loaded ones over those of the tensor; shared-memory wavefronts per 1024 elements;
# bytes of local memory.
NUMBERS = ["instructions", "load_sectors", "sectors_of_x", "store_sectors", "shared_wavefronts",
           "local_bytes"]
TOLERANCE = 0.005
PLANES = [56, 112, 224, 28, 14, 7, 75]
TYPE_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "u8": 1}


def cases():
    types = ["f32", "bf16", "f16"]
    for operation in ["compress", "decompress", "decompress_add"]:
        for element in types:
            for bits in range(1, 9):
                yield operation, element, bits, "flat"
            for shape in [*PLANES, 32, "odd", "features", "sequence", "sequence64", "channels_last"]:
                yield operation, element, 2, shape
    for operation in ["compress_rotated", "decompress_rotated", "decompress_add_rotated"]:
        for element in types:
            for bits in [1, 2, 3, 4]:
                yield operation, element, bits, "flat"
        for shape in [56, 75, "odd", "features", "sequence"]:
            yield operation, "f32", 2, shape
    for operation in ["compress_positives", "relu_positives", "decompress_positives",
                      "decompress_add_positives"]:
        for element in types:
            for bits in [1, 2]:
                yield operation, element, bits, "flat"
    for operation in ["compress_lines", "decompress_lines", "decompress_add_lines"]:
        for element in types:
            for shape in ["even_lines", "odd_lines"]:
                yield operation, element, 2, shape
    for operation in ["compress_batch", "decompress_batch"]:
        for element in types:
            yield operation, element, 2, "tensors1024"
        for shape in ["tensors1000", "tensors65536"]:
            yield operation, "f32", 2, shape
        for kind in ["_rotated", "_dithered"] if operation == "decompress_batch" else ["_rotated"]:
            yield operation + kind, "f32", 2, "tensors1024"
    for operation in ["decompress_dithered", "decompress_add_dithered"]:
        for element in types:
            yield operation, element, 2, "flat"
        for shape in [56, "odd", "features", "sequence"]:
            yield operation, "f32", 2, shape
    for operation in ["compress", "decompress", "decompress_add", "compress_rotated",
                      "decompress_rotated", "decompress_add_rotated", "decompress_dithered"]:
        for element in types:
            yield operation, element, 2, "extent768"
        for shape in ["extent1", "extent196"]:
            yield operation, "f32", 2, shape
    for operation in ["compress_mixed", "decompress_mixed", "decompress_add_mixed",
                      "decompress_dithered_mixed", "squared_ranges", "compress_in_ranges", "measure"]:
        for element in types:
            yield operation, element, 2, "flat"
    for shape in [56, 75, "features", "sequence", "channels_last"]:
        yield "compress_in_ranges", "f32", 2, shape
    yield "measure", "f32", 2, 56
    yield "squared_coded_ranges", "f32", 2, "flat"
    for operation in ["allocate_bits", "expand_sensitivity", "index_tiles"]:
        yield operation, "u8", 2, "flat"
    for operation in ["pack", "unpack"]:
        for bits in [1, 4]:
            yield operation, "u8", bits, "flat"
    for operation in ["pack", "pack_stochastic", "unpack", "unpack_multiply"]:
        for element in types:
            for bits in [1, 2, 3, 4, 8]:
                yield operation, element, bits, "flat"
    for operation in ["pack_scaled", "pack_stochastic_scaled", "unpack_scaled",
                      "unpack_multiply_scaled"]:
        for element in types:
            for bits in [4, 8]:
                yield operation, element, bits, "flat"
    for operation in ["relu", "dropout", "dropout_masked"]:
        for element in types:
            yield operation, element, 1, "flat"
    for operation in ["max_pool", "max_pool_backward"]:  # the second with the first
        for element in types:
            for bits in [2, 4]:
                yield operation, element, bits, "flat"


def measure(launcher, program, case):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        arguments = [str(word) for word in case]
        ran = subprocess.run([*launcher, "--report", report, "--", program, *arguments],
                             check=True, stdout=subprocess.PIPE, text=True)
        elements = int(ran.stdout.split()[-1])
        with open(report, encoding="utf-8") as lines:
            kernels = [json.loads(line) for line in lines]

    def total(field):
        return sum(kernel[field] for kernel in kernels)

    def ratio(part, whole):
        return total(part) / total(whole) if total(whole) else 1.0

    return {
        "instructions": total("thread_instructions") / elements,
        "load_sectors": ratio("global_load_sectors", "global_load_ideal_sectors"),
        "sectors_of_x": total("global_load_sectors") * 32 / (elements * TYPE_BYTES[case[1]]),
        "store_sectors": ratio("global_store_sectors", "global_store_ideal_sectors"),
        "shared_wavefronts": total("shared_wavefronts") * 1024 / elements,
        "local_bytes": total("local_bytes"),
    }


def read_table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {tuple(row[key] for key in KEYS): row for row in csv.DictReader(file)}


def write_table(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KEYS + NUMBERS)
        for case, numbers in rows:
            writer.writerow([*case, *(f"{numbers[name]:.4g}" for name in NUMBERS)])


def main(arguments):
    update = arguments[:1] == ["--update"]
    program, table_path, *launcher = arguments[1:] if update else arguments
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = pool.map(lambda case: measure(launcher, program, case), cases())
        rows = list(zip(cases(), measured))
    if update:
        write_table(table_path, rows)
        return 0
    table = read_table(table_path)
    failures = 0
    for case, numbers in rows:
        name = " ".join(str(word) for word in case)
        expected = table.get(tuple(str(word) for word in case))
        if expected is None:
            print(f"{name}: not in the table")
            failures += 1
            continue
        for field in NUMBERS:
            got = f"{numbers[field]:.4g}"  # as in the table
            if float(got) > float(expected[field]) + TOLERANCE:
                print(f"{name}: {field} rose from {expected[field]} to {got}")
                failures += 1
    print(f"{len(rows)} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
