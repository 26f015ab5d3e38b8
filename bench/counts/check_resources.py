#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Compares what kernels take of a multiprocessor with a checked-in table, and fails where a number
rose, or where registers are spilled.

    check_resources.py SOURCE TABLE NVCC [ARG ...]     compare
    check_resources.py --only compute_90,... SOURCE TABLE NVCC [ARG ...]  compare for some architectures
    check_resources.py --update SOURCE TABLE NVCC ...  write the table anew

The numbers depend on the compiler, which the table names: with another one only spills count.
"""

import concurrent.futures
import csv
import os
import re
import struct
import subprocess
import sys
import tempfile

# By the architecture of the intermediate code, which takes most of the time to make: the headers tell
# no more of them apart. sm_89 had the numbers of sm_86 throughout.
ARCHITECTURES = {
    "compute_75": ["sm_75"],
    "compute_80": ["sm_80", "sm_86"],
    "compute_90": ["sm_90"],
    "compute_100": ["sm_100"],
    "compute_120": ["sm_120"],
}
KEYS = ["kernel", "architecture"]
# Registers a thread; bytes of shared memory that the kernel itself declares; bytes of machine code.
NUMBERS = ["registers", "shared_bytes", "code_bytes"]
CODE_TOLERANCE = 1.02  # places in a cache line are no matter


def section_sizes(cubin):
    """Name and size of every section of a 64-bit ELF file."""
    with open(cubin, "rb") as file:
        data = file.read()
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, start + i * size) for i in range(count)]
    strings = headers[names][4]

    def name(offset):
        return data[strings + offset:data.index(b"\0", strings + offset)].decode()

    return {name(header[0]): header[5] for header in headers}


def short(mangled):
    """furl's own name of a kernel, without its parameters."""
    demangled = subprocess.run(["c++filt", mangled], check=True, stdout=subprocess.PIPE,
                               text=True).stdout.strip()
    demangled = re.sub(r"^void ", "", demangled)
    demangled = re.sub(r"\(furl::(?:kernel::)?(\w+)\)(\d+)", r"\1 \2", demangled)
    demangled = re.sub(r"(, )?furl::kernel::architecture_list<.*?> *", "", demangled)
    name = re.sub(r"\(.*", "", demangled).replace("furl::kernel::", "").replace("furl::", "")
    return name.replace("<>", "")


def measure(compiler, source, intermediate):
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        ptx = os.path.join(folder, "kernels.ptx")
        subprocess.run([*compiler, "-ptx", f"-arch={intermediate}", "-o", ptx, source], check=True)
        for architecture in ARCHITECTURES[intermediate]:
            cubin = os.path.join(folder, architecture)
            log = subprocess.run([*compiler, "-cubin", f"-arch={architecture}", "-Xptxas", "-v", "-o",
                                  cubin, ptx], check=True, stderr=subprocess.PIPE, text=True).stderr
            rows.update(read_log(log, section_sizes(cubin), architecture))
    return rows


def read_log(log, sizes, architecture):
    rows = {}
    for part in log.split("Compiling entry function '")[1:]:
        mangled = part.split("'", 1)[0]
        if not mangled.startswith("_ZN4furl"):  # of CUB
            continue
        shared = re.search(r"(\d+) bytes smem", part)
        rows[short(mangled), architecture] = {
            "registers": int(re.search(r"Used (\d+) registers", part).group(1)),
            "shared_bytes": int(shared.group(1)) if shared else 0,
            "code_bytes": sizes[".text." + mangled],
            "spills": int(re.search(r"(\d+) bytes spill stores", part).group(1)),
        }
    return rows


def compiler_version(compiler):
    said = subprocess.run([compiler[0], "--version"], check=True, stdout=subprocess.PIPE, text=True)
    return re.search(r"V(\d+\.\d+\.\d+)", said.stdout).group(1)


def write_table(path, version, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KEYS + NUMBERS + ["nvcc " + version])
        for key in sorted(rows):
            writer.writerow([*key, *(rows[key][name] for name in NUMBERS)])


def read_table(path, keys):
    """The version of the compiler that a table is of, and its rows by their keys."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = {tuple(row[key] for key in keys): row for row in reader}
        return reader.fieldnames[-1].split()[1], rows


def failures(rows, table, same_compiler):
    for key, numbers in sorted(rows.items()):
        name = " ".join(key)
        if numbers["spills"] > 0:
            yield f"{name}: spills {numbers['spills']} bytes"
        if not same_compiler:
            continue
        if key not in table:
            yield f"{name}: not in the table"
            continue
        for field in NUMBERS:
            tolerance = CODE_TOLERANCE if field == "code_bytes" else 1
            if numbers[field] > int(table[key][field]) * tolerance:
                yield f"{name}: {field} rose from {table[key][field]} to {numbers[field]}"


def main(arguments):
    update = arguments[:1] == ["--update"]
    intermediates = list(ARCHITECTURES)
    if arguments[:1] == ["--only"]:
        intermediates = arguments[1].split(",")
        arguments = arguments[2:]
    source, path, *compiler = arguments[1:] if update else arguments
    version = compiler_version(compiler)
    rows = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda a: measure(compiler, source, a), intermediates):
            rows.update(found)
    if update:
        write_table(path, version, rows)
        return 0
    table_version, table = read_table(path, KEYS)
    found = list(failures(rows, table, version == table_version))
    print("\n".join([*found, f"{len(rows)} kernels, {len(found)} failures"]))
    return 1 if found or not rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
