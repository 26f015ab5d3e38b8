# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Intermediate code (PTX) with counters or with marks: how often warps run each of its lines, and
which machine instruction comes from which line.

A line is known by its number in the text that the compiler wrote.
"""

import re
import subprocess

COUNTERS = 1 << 17
LOCATION = r"\s*\.loc\s+(\d+ \d+ \d+)(?:, function_name (\S+), inlined_at (\d+ \d+ \d+))?"
DECLARE = ".reg .b32 %furl_a, %furl_b; .reg .pred %furl_p;\n"
# One lane of those that run it counts: warps are what is counted.
COUNT = """mov.u32 %furl_a, %lanemask_lt; activemask.b32 %furl_b; and.b32 %furl_a, %furl_a, %furl_b;
setp.eq.u32 %furl_p, %furl_a, 0; @%furl_p red.global.add.u64 [{counters} + {offset}], 1;
"""


class Code:
    """The text of a module, and for each line the kernel that it is in and its counter."""

    def __init__(self, text):
        code, *self.sections = text.split("\n\t.section")
        self.lines = code.splitlines()
        self.counters = re.search(r"\.global \S+ \S+ \S+ (\w*furl_profile\w*)\[", text).group(1)
        self.kernel, self.counter = [], []
        kernel = starts = None
        count = -1
        for line in self.lines:
            entry = re.search(r"\.entry (\w+)\(", line)
            if entry:
                kernel = entry.group(1)
            instruction = kernel and is_instruction(line)
            if line == "{" or re.match(r"\$\w+:", line):
                starts = True
            if instruction and starts:
                count += 1
                starts = False
            if instruction and re.match(r"\s*(@!?%\w+ )?(bra|brx|ret|exit)\b", line):
                starts = True
            self.kernel.append(kernel)
            self.counter.append(count if instruction else None)
            if line == "}":
                kernel = None
        if count >= COUNTERS:
            raise SystemExit(f"{count} places, more than the program has counters")

    def with_counters(self):
        out = []
        last = None
        for line, counter in zip(self.lines, self.counter):
            if counter is not None and counter != last:
                out.append(COUNT.format(counters=self.counters, offset=8 * counter))
                last = counter
            if not re.match(r"\s*\.(loc|file)\b", line):
                out.append(line)
            if line == "{":
                out.append(DECLARE)
        return "\n".join(out) + "\n"

    def with_marks(self, kernels):
        """Some of the kernels, with the number of each line in place of the place in the source."""
        out = []
        for number, line in enumerate(self.lines):
            if self.kernel[number] and self.kernel[number] not in kernels:
                continue
            if self.counter[number] is not None:
                out.append(f".loc 1 {number + 1} 0")
            if not re.match(r"\s*\.(loc|file)\b", line):
                out.append(line)
        return "\n".join(out) + '\n.file 1 "kernels.ptx"\n'

    def launched(self, profile):
        counters = set(profile)
        return {k for k, c in zip(self.kernel, self.counter) if c in counters}

    def frequencies(self, profile):
        """By number of a line: how often warps ran it."""
        return {number + 1: profile.get(counter, 0)
                for number, counter in enumerate(self.counter) if counter is not None}

    def functions(self, kernels):
        """By number of a line: the functions that it is in, the innermost first."""
        names = self.names()
        found, inlined, here = {}, {}, ()
        for number, line in enumerate(self.lines):
            if self.kernel[number] not in kernels:
                continue
            place = re.match(LOCATION, line)
            if place:
                at, name, call = place.groups()
                here = (names[name], *inlined.get(call, ())) if name else ()
                inlined[at] = here[:32]
            elif self.counter[number] is not None:
                found[number + 1] = here
        return found

    def names(self):
        """By label: the name of a function, without what it is in and its parameters."""
        strings = re.findall(r"^(\$L__info_string\d+):\n((?:\.b8 .*\n?)+)",
                             "".join(self.sections), re.M)
        mangled = [bytes(map(int, re.findall(r"\d+", digits.replace(".b8", ""))))[:-1].decode()
                   for _, digits in strings]
        plain = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines()
        return {label: short(name) for (label, _), name in zip(strings, plain)}


def short(name):
    """furl::f<T>::g(int)::{lambda(int)#1}::operator()(int) const becomes g."""
    name = name.replace("operator()", "").replace("(anonymous namespace)", "")
    previous = None
    while name != previous:
        previous = name
        name = re.sub(r"<[^<>]*>|\([^()]*\)|\{[^{}]*\}", "", name)
    words = re.findall(r"\w+", name.replace(" const", ""))
    return words[-1] if words else "?"


def is_instruction(line):
    stripped = line.strip()
    return bool(re.match(r"(@|\w)", stripped)) and stripped.endswith(";")
