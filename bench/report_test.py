#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of report.py, on what a real run of the host's benchmark wrote."""

import copy
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import report  # noqa: E402

RUN = os.path.join(HERE, "testdata", "host_run.json")


def load():
    with open(RUN, encoding="utf-8") as file:
        return json.load(file)


def with_baseline(results):
    """The run with a baseline of half the speed of each compress/lfc_2d row."""
    for entry in list(results["benchmarks"]):
        if entry["run_name"].startswith("compress/lfc_2d/"):
            slower = copy.deepcopy(entry)
            name = entry["run_name"].replace("compress/", "division_compress/", 1)
            slower["run_name"] = name.replace("/group:256", "")
            slower["elements/s"] /= 2
            results["benchmarks"].append(slower)
    return results


class Names(unittest.TestCase):
    def test_parts(self):
        key = report.parse_name(
            "compress/lfc_2d/bf16/bits:4/group:32/nearest/resnet50_56x56/threads:2/manual_time")
        self.assertEqual(key, report.Key("compress", "lfc_2d", "bf16", "4", "32", "nearest", "",
                                         "resnet50_56x56", "2"))
        key = report.parse_name("random_bits/flat/u8/log2_size:26/manual_time")
        self.assertEqual(key, report.Key("random_bits", "flat", "u8", tensor="log2_size:26"))
        key = report.parse_name("compress/flat/f32/bits:2/group:256/hot/log2_size:20/manual_time")
        self.assertEqual(key, report.Key("compress", "flat", "f32", "2", "256", timing="hot",
                                         tensor="log2_size:20"))

    def test_others_are_refused(self):
        with self.assertRaises(ValueError):
            report.parse_name("compress/flat/int7/log2_size:26")


class Rows(unittest.TestCase):
    def test_one_row_a_name_from_its_median(self):
        results = load()
        rows, failures = report.read_rows(results)
        medians = [e for e in results["benchmarks"] if e["aggregate_name"] == "median"]
        self.assertEqual(len(rows), 8)
        self.assertEqual([r.gigabytes for r in rows], [e["GB/s"] for e in medians])
        self.assertEqual([r.microseconds for r in rows], [e["us/call"] for e in medians])
        self.assertEqual(failures, [])

    def test_a_run_without_repetitions(self):
        results = load()
        results["benchmarks"] = [e for e in results["benchmarks"]
                                 if e["aggregate_name"] == "median"]
        for entry in results["benchmarks"]:
            del entry["aggregate_name"]
        self.assertEqual(len(report.read_rows(results)[0]), 8)

    def test_a_row_that_failed(self):
        results = load()
        results["benchmarks"] = [{"run_name": "copy/flat/f32/log2_size:28", "error_occurred": True,
                                  "error_message": "out of memory"}]
        self.assertEqual(report.read_rows(results)[0], [])
        self.assertIn("- copy/flat/f32/log2_size:28: out of memory", report.markdown(results))


class Markdown(unittest.TestCase):
    def test_every_row_under_its_primitive(self):
        lines = report.markdown(load()).split("\n")
        rows, _ = report.read_rows(load())
        self.assertEqual([line for line in lines if line.startswith("## ")],
                         ["## copy", "## compress", "## relu"])
        found = [line for line in lines if "log2_size" in line]
        self.assertEqual(len(found), len(rows))
        for line, row in zip(found, rows):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            self.assertEqual(cells[6], row.key.tensor)
            self.assertEqual(cells[10], f"{row.gigabytes:.4g}")
            self.assertEqual(cells[11], f"{row.of_copy:.2f}")

    def test_baselines(self):
        self.assertNotIn("Beside the baselines", report.markdown(load()))
        text = report.markdown(with_baseline(load()))
        self.assertIn("| compress | lfc_2d | f32 | 2 | 256 |  |  | log2_size:16 | division_compress "
                      "| 2.00 |", text)
        self.assertEqual(text.count("| 2.00 |"), 2)


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
class Chart(unittest.TestCase):
    def draw(self, results):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "chart.png")
            report.draw(results, path)
            with open(path, "rb") as file:
                image = file.read()
        self.assertEqual(image[:8], b"\x89PNG\r\n\x1a\n")
        return int.from_bytes(image[16:20], "big")  # width

    def test_sizes_get_a_panel_of_their_own(self):
        one_size = load()
        one_size["benchmarks"] = [e for e in one_size["benchmarks"]
                                  if "log2_size:20" in e["run_name"]]
        self.assertEqual(self.draw(with_baseline(load())), 2 * self.draw(one_size))


class Command(unittest.TestCase):
    def test_writes_beside_its_input(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "card.json")
            shutil.copy(RUN, path)
            self.assertEqual(report.main([path]), 0)
            with open(os.path.join(folder, "card.md"), encoding="utf-8") as file:
                self.assertEqual(file.read(), report.markdown(load()))

    def test_needs_one_argument(self):
        self.assertEqual(report.main([]), 2)


if __name__ == "__main__":
    unittest.main()
