#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the calls of the CUDA runtime that a call of furl makes beside its launch, and fails where
they are too many: each takes time of the thread that also has the next kernels to launch.

    check_calls.py PROGRAM [LAUNCHER [ARG ...]]

PROGRAM is furl_call_counts. LAUNCHER is a command that takes `--report FILE --api -- PROGRAM ...`,
runs the program and appends the counts to FILE as a line of JSON. Without it nothing is counted.
"""

import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
# The most calls beside the one launch, where the driver is asked about pointers: one for the device,
# for a batch once more, and one for each pointer. Without that there are none.
CASES = {
    ("compress", "flat"): 3,
    ("compress", "tile"): 3,
    ("compress", "planes"): 3,
    ("decompress", "flat"): 3,
    ("decompress", "planes"): 3,
    ("compress_batch", "tile"): 202,
    ("decompress_batch", "tile"): 202,
}


def count(launcher, program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        subprocess.run([*launcher, "--report", report, "--api", "--", program, *arguments],
                       check=True)
        with open(report, encoding="utf-8") as lines:
            return json.loads(list(lines)[-1])["api_calls"]


def calls_of_one(launcher, program, case):
    """By what two calls make more than one does, so that what a process does once is left out."""
    once = count(launcher, program, [*case, "1"])
    twice = count(launcher, program, [*case, "2"])
    return {name: times - once.get(name, 0) for name, times in twice.items()
            if times > once.get(name, 0)}


def main(program, *launcher):
    if not launcher:
        print("left out: nothing here counts calls of the CUDA runtime")
        return SKIPPED
    failures = 0
    for (operation, shape), most_checked in CASES.items():
        for checks, most in [("checked", most_checked), ("unchecked", 0)]:
            calls = calls_of_one(launcher, program, [operation, shape, checks])
            launches = sum(n for name, n in calls.items() if name.startswith("cudaLaunch"))
            others = sum(calls.values()) - launches
            failed = launches != 1 or others > most
            failures += failed
            print(f"{operation} {shape} {checks}: {launches} launches, {others} others"
                  f"{f', not at most {most}: {calls}' if failed else ''}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
