# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""How often warps run each block of machine code (SASS), from how often they run the lines of
intermediate code that it was made from.

Most instructions of a block, which run one after another, come from lines that run as often as it
does; some were moved from elsewhere. So blocks that run equally often, by the flow of control, are
taken together, and the frequency of most of their instructions is theirs.

Never run, whatever their lines say: the subroutines of rare cases of divisions and roots, with all
that leads nowhere else, and what warps do whose lanes have diverged at a shuffle (BRA.DIV).
"""

import collections
import re

Instruction = collections.namedtuple("Instruction", ["predicate", "text", "line"])
ENDS = r"(BRA|BRXU?|JMP|JMXU?|EXIT|RET|CALL)\b"
FIRM, WEAK = 10, 0.1
DOUBT = 0.04  # the share of what runs of which it need not be clear how often


class Undecided(Exception):
    """The frequencies contradict each other."""


class Block:
    def __init__(self):
        self.instructions = []
        self.next = []  # numbers of blocks
        self.runs = 0


def split(listing):
    """By name of a kernel its part of a listing."""
    parts = [part.split(":\n", 1) for part in re.split(r"\n\.text\.(?=\w+:\n)", listing)[1:]]
    return {name: body.split("\n//----")[0] for name, body in parts}


def read_kernel(body):
    """The blocks of a kernel, the entry first."""
    blocks, at = [Block()], {}
    line = None
    for text in body.splitlines():
        label = re.match(r"([.$][\w$]+):$", text)
        mark = re.match(r'\s*//## File "[^"]*", line (\d+)', text)
        code = re.match(r"\s*/\*[0-9a-f]+\*/ +(@!?U?P\w+ )? *(\w.*?) *;?(?: +/\* .*)?$", text)
        if label:
            if blocks[-1].instructions:
                blocks.append(Block())
            at[label.group(1)] = len(blocks) - 1
        elif mark:
            line = int(mark.group(1))
        elif code:
            blocks[-1].instructions.append(
                Instruction((code.group(1) or "").strip(), code.group(2), line))
            if re.match(ENDS, code.group(2)):
                blocks.append(Block())
    for number, block in enumerate(blocks):
        if block.instructions:
            block.next = successors(block.instructions[-1], number + 1, at)
    return blocks


def successors(last, following, at):
    """The blocks that may come after an instruction, the last of a block."""
    name = last.text.split()[0]
    if not re.match(ENDS, name) or name.startswith("BRA.DIV"):
        return [following]
    if is_call(last) or name.startswith("RET"):
        return []
    if name.startswith("EXIT"):
        return [following] if last.predicate else []
    targets = [at[label] for label in re.findall(r"\.L_x_\d+", last.text)]
    if not targets:
        raise Undecided(f"a branch to nowhere: {last.text}")
    conditional = last.predicate or re.search(r" !?U?P\d", last.text)
    return targets + ([following] if conditional and not name.startswith(("BRX", "JMX")) else [])


def is_call(instruction):
    """Whether it calls a subroutine: a CALL of a label leaves a loop on sm_80."""
    return instruction.text.startswith("CALL") and ".L_x" not in instruction.text


def remove_slow(blocks):
    """Cuts the ways that lead to nothing but subroutines."""
    slow = {n for n, b in enumerate(blocks) if b.instructions and is_call(b.instructions[-1])}
    while True:
        for block in blocks:
            block.next = [n for n in block.next if n not in slow]
        ends = {n for n, b in enumerate(blocks) if b.instructions and not b.next and n not in slow
                and not b.instructions[-1].text.startswith(("EXIT", "RET"))}
        if not ends:
            break
        slow |= ends
    if 0 in slow:
        raise Undecided("no way avoids subroutines")


def weight_of(instruction):
    """How much the line of an instruction says of the block that it is in."""
    if re.match(r"(BRA\.DIV|BSSY|BSYNC|UMOV|NOP|WARPSYNC|BREAK)", instruction.text):
        return WEAK  # has the line of any neighbour
    if re.match(ENDS, instruction.text):
        return 1
    if instruction.predicate:
        return WEAK  # may have been a block of its own
    return FIRM if re.match(r"(SHFL|LDG|STG|LDS|STS|BAR|RED|ATOM|VOTE)", instruction.text) else 1


def reached(first, edges):
    found, todo = {first}, [first]
    while todo:
        for n in edges[todo.pop()]:
            if n not in found:
                found.add(n)
                todo.append(n)
    return found


def dominators(first, edges, nodes):
    """By node: the nodes on every way from the first one to it, itself included."""
    previous = collections.defaultdict(list)
    for node in nodes:
        for n in edges[node]:
            previous[n].append(node)
    found = {node: set(nodes) for node in nodes}
    found[first] = {first}
    changed = True
    while changed:
        changed = False
        for node in nodes:
            if node != first:
                new = set.intersection(*(found[p] for p in previous[node])) | {node}
                if new != found[node]:
                    found[node], changed = new, True
    return found


def find_loops(edges, before):
    """By the block that a loop begins with: its blocks."""
    previous = collections.defaultdict(list)
    for node in before:
        for n in edges[node]:
            previous[n].append(node)
    loops = collections.defaultdict(set)
    for node in before:
        for head in edges[node]:
            if head in before[node]:
                inside = {n: [] if n == head else previous[n] for n in before}
                loops[head] |= reached(node, inside) | {head}
    return loops


def set_runs(blocks, frequencies):
    """Sets how often warps run each block, and returns the loops."""
    remove_slow(blocks)
    edges = {n: list(b.next) for n, b in enumerate(blocks)}
    nodes = sorted(reached(0, edges))
    end = len(blocks)
    backward = {n: [] for n in [*nodes, end]}
    for node in nodes:
        if blocks[node].instructions[-1].text.startswith("EXIT"):
            backward[end].append(node)
        for n in edges[node]:
            backward[n].append(node)
    if not reached(end, backward).issuperset(nodes):
        raise Undecided("a loop without an end")
    before = dominators(0, edges, nodes)
    after = dominators(end, backward, [end, *reversed(nodes)])
    loops = find_loops(edges, before)

    # Of blocks that always run together, in as many turns of loops, the first stands for all.
    first = {}
    for node in nodes:
        inside = [h for h in loops if node in loops[h]]
        same = [n for n in before[node]
                if node in after[n] and inside == [h for h in loops if n in loops[h]]]
        first[node] = min(same, key=lambda n: len(before[n]))
    copies = collections.Counter(i.line for node in nodes for i in blocks[node].instructions
                                 if weight_of(i) == FIRM)
    votes = collections.defaultdict(collections.Counter)
    for node in nodes:
        for i in blocks[node].instructions:
            weight = weight_of(i)
            runs = frequencies.get(i.line, 0)
            votes[first[node]][runs // copies[i.line] if weight == FIRM else runs] += weight
    doubtful = 0
    for node in nodes:
        here = votes[first[node]]
        blocks[node].runs, weight = here.most_common(1)[0]
        if 2 * weight <= sum(here.values()):
            doubtful += max(here) * len(blocks[node].instructions)
    total = sum(b.runs * len(b.instructions) for b in blocks)
    if doubtful > DOUBT * total:
        raise Undecided(f"lines that run unequally often share blocks, of {doubtful / total:.1%}")
    return loops
