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
    """The text of a module, the lines of each kernel, and for each line its counter."""

    def __init__(self, text):
        code, *self.sections = text.split("\n\t.section")
        self.lines = code.splitlines()
        self.counters = re.search(r"\.global \S+ \S+ \S+ (\w*furl_profile\w*)\[", text).group(1)
        self.kernels, self.counter = {}, []
        self.kernel_of = []  # by counter
        kernel = starts = None
        for number, line in enumerate(self.lines):
            entry = re.search(r"\.entry (\w+)\(", line)
            if entry:
                kernel, begin = entry.group(1), number
            instruction = kernel and is_instruction(line)
            if line == "{" or re.match(r"\$\w+:", line):
                starts = True
            if instruction and starts:
                self.kernel_of.append(kernel)
                starts = False
            if instruction and re.match(r"\s*(@!?%\w+ )?(bra|brx|ret|exit)\b", line):
                starts = True
            self.counter.append(len(self.kernel_of) - 1 if instruction else None)
            if kernel and line == "}":
                self.kernels[kernel] = range(begin, number + 1)
                kernel = None
        if len(self.kernel_of) > COUNTERS:
            raise SystemExit(f"{len(self.kernel_of)} blocks, more than there are counters")

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
        left_out = {n for k, numbers in self.kernels.items() if k not in kernels for n in numbers}
        out = []
        for number, line in enumerate(self.lines):
            if number in left_out:
                continue
            if self.counter[number] is not None:
                out.append(f".loc 1 {number + 1} 0")
            if not re.match(r"\s*\.(loc|file)\b", line):
                out.append(line)
        return "\n".join(out) + '\n.file 1 "kernels.ptx"\n'

    def launched(self, profile):
        return {self.kernel_of[counter] for counter in profile}

    def frequencies(self, kernel, profile):
        """By number of a line of a kernel: how often warps ran it."""
        return {number + 1: profile.get(self.counter[number], 0)
                for number in self.kernels[kernel] if self.counter[number] is not None}

    def functions(self, kernel):
        """By number of a line of a kernel: the functions that it is in, the innermost first."""
        names = self.names()
        found, inlined, here = {}, {}, ()
        for number in self.kernels[kernel]:
            place = re.match(LOCATION, self.lines[number])
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
