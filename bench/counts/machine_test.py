#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Tests of machine.py on a kernel of a few lines, in intermediate and in machine code."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import machine  # noqa: E402
import ptx  # noqa: E402
import sass  # noqa: E402

KERNEL = """\
.version 9.0
.global .align 8 .b8 _ZN12furl_profileE[64];

.visible .entry {name}(
	.param .u64 {name}_param_0
)
{{
	.reg .b32 %r<9>;
	.loc	1 10 3
	ld.param.u64 	%rd1, [{name}_param_0];

$L__BB0_1:
	.loc	1 11 3
	.loc	2 5 1, function_name $L__info_string0, inlined_at 1 11 3
	setp.eq.s32 	%p1, %r1, 0;
	@%p1 bra 	$L__BB0_3;

	{{ .reg .b32 t;
	mov.u32 %r2, %laneid; }}
	st.global.u32 	[%rd1], %r2;

$L__BB0_3:
	shfl.sync.idx.b32 	%r3|%p2, %r1, 0, 31, -1;
	@%p3 bra 	$L__BB0_1;

	.loc	1 12 3
	ret;
}}
"""
SECTIONS = """
	.section	.debug_str
	{
$L__info_string0:
.b8 95,90,78,52,102,117,114,108,52,115,116,101,112,69,118,0
	}
"""
LD, IF, ST, SHFL, AGAIN, RET = 10, 15, 20, 23, 24, 27  # the lines of instructions


def listing(code):
    """Each row of code is a label with a colon, or the line of an instruction and its text."""
    out = ["\n.text.first:"]
    for row in code.strip().splitlines():
        words = row.split(None, 1)
        if row.endswith(":"):
            out.append(row)
            continue
        out += [f'\t//## File "kernels.ptx", line {words[0]}', f"        /*0010*/    {words[1]} ;"]
    return "\n".join(out) + "\n//---------------------"


def runs(code, frequencies):
    """How often each instruction runs, and the number of loops."""
    blocks = sass.read_kernel(sass.split(listing(code))["first"])
    loops = sass.set_runs(blocks, frequencies)
    return [b.runs for b in blocks for _ in b.instructions], blocks, loops


class IntermediateCode(unittest.TestCase):
    def setUp(self):
        text = KERNEL.format(name="first") + KERNEL.format(name="second").split("[64];\n")[1]
        self.code = ptx.Code(text + SECTIONS)

    def test_one_counter_a_block(self):
        counted = self.code.with_counters()
        self.assertEqual(counted.count("red.global.add.u64 [_ZN12furl_profileE + "), 10)
        before = counted.index("red.global.add.u64 [_ZN12furl_profileE + 24]")
        self.assertLess(before, counted.index("shfl.sync"))
        self.assertGreater(before, counted.index("st.global"))
        self.assertNotIn(".loc", counted)

    def test_each_line_has_the_runs_of_its_block(self):
        profile = {0: 7, 1: 70, 3: 70, 4: 7}
        self.assertEqual(self.code.launched(profile), {"first"})
        frequencies = self.code.frequencies("first", profile)
        self.assertEqual([frequencies[n] for n in (LD, IF, ST, SHFL, AGAIN, RET)],
                         [7, 70, 0, 70, 70, 7])

    def test_marks_name_the_lines_of_some_kernels(self):
        marked = self.code.with_marks({"first"})
        self.assertIn(f".loc 1 {ST} 0\n\tst.global.u32", marked)
        self.assertNotIn("second", marked)

    def test_functions_of_lines(self):
        functions = self.code.functions("first")
        self.assertEqual(functions[LD], ())
        self.assertEqual(functions[ST], ("step",))
        self.assertNotIn(LD + 20, functions)

    def test_names_without_their_surroundings(self):
        self.assertEqual(ptx.short("furl::f<furl::g<int> >(int)"), "f")
        self.assertEqual(
            ptx.short("furl::a::b(c (*)(d))::{lambda(int)#1}::operator()(int) const"), "b")


class MachineCode(unittest.TestCase):
    FREQUENCIES = {LD: 7, IF: 70, ST: 0, SHFL: 70, AGAIN: 70, RET: 7}
    LOOP = f"""
{LD} LDC R1, c[0x0][0x28]
{IF} MOV R7, R8
.L_x_1:
{IF} ISETP P0, R1
{SHFL} MOV R3, R1
{IF} @!P0 BRA `(.L_x_2)
{ST} STG.E [R2], R3
{IF} IADD3 R2, R2, 0x4
{ST} MOV R2, R3
.L_x_2:
{ST} BSYNC B0
{SHFL} BRA.DIV UR6, `(.L_x_3)
{SHFL} SHFL.IDX PT, R3, R1, RZ, 0x1f
.L_x_4:
{AGAIN} @P1 BRA `(.L_x_1)
{RET} EXIT
.L_x_3:
{SHFL} SHFL.IDX PT, R3, R1, RZ, 0x1f
{SHFL} BRA `(.L_x_4)
"""

    def test_loop_with_a_way_that_is_not_taken(self):
        found, blocks, loops = runs(self.LOOP, self.FREQUENCIES)
        self.assertEqual(found, [7, 7, 70, 70, 70, 0, 0, 0, 70, 70, 70, 70, 7, 0, 0])
        self.assertEqual(machine.count_of(blocks), 511)
        self.assertEqual(machine.count_of(machine.main_part(blocks, loops)), 490)

    def test_way_that_some_take(self):
        found, *_ = runs(self.LOOP, {**self.FREQUENCIES, ST: 30})
        self.assertEqual(found[4:9], [70, 30, 30, 30, 70])

    def test_subroutines_of_rare_cases_do_not_run(self):
        found, *_ = runs("""
1 MUFU.RCP R1, R2
1 FCHK P0, R1, R2
1 @!P0 BRA `(.L_x_1)
1 MOV R4, 0x1ba0
1 CALL.REL.NOINC `($__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath)
1 MOV R3, R4
.L_x_1:
2 @P0 CALL.REL.NOINC `(.L_x_2)
3 BRA `(.L_x_3)
.L_x_2:
2 EXIT
.L_x_3:
3 EXIT
$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath:
1 FADD R1, R1, R2
1 RET.REL.NODEC R4 `(first)
""", {1: 5, 2: 5, 3: 1})
        self.assertEqual(found, [5, 5, 5, 0, 0, 0, 5, 1, 5, 1, 0, 0])

    def test_cases_of_a_switch(self):
        found, *_ = runs("""
1 BRX R2 -0x38 (*"BRANCH_TARGETS .L_x_1,.L_x_2,.L_x_1"*)
.L_x_1:
2 STG.E [R2], R3
2 EXIT
.L_x_2:
3 EXIT
""", {1: 9, 2: 8, 3: 1})
        self.assertEqual(found, [9, 8, 8, 1])

    def test_copies_of_a_loop_share_its_runs(self):
        found, *_ = runs("""
1 MOV R1, RZ
.L_x_1:
2 STS [R1], R3
2 STS [R1+0x4], R3
2 IADD3 R1, R1, 0x8
2 @P0 BRA `(.L_x_1)
3 EXIT
""", {1: 1, 2: 8, 3: 1})
        self.assertEqual(found, [1, 4, 4, 4, 4, 1])

    def test_instructions_whose_lines_say_little(self):
        found, *_ = runs("""
1 MOV R1, R2
2 @P0 LDG.E R1, [R2]
2 @P0 LDG.E R3, [R2]
2 BSSY B0, `(.L_x_1)
2 BSYNC B0
1 EXIT
""", {1: 9, 2: 1})
        self.assertEqual(found, [9] * 6)

    def test_the_innermost_loop_that_has_most_counts(self):
        _, blocks, loops = runs("""
1 MOV R1, RZ
.L_x_1:
2 IADD3 R1, R1, 0x8
.L_x_2:
3 IADD3 R2, R2, 0x8
3 @P0 BRA `(.L_x_2)
2 @P1 BRA `(.L_x_1)
1 EXIT
""", {1: 1, 2: 10, 3: 100})
        self.assertEqual(machine.count_of(machine.main_part(blocks, loops)), 200)

    def test_what_cannot_be_decided(self):
        with self.assertRaisesRegex(sass.Undecided, "no way avoids"):
            runs("1 CALL.REL.NOINC `($f)\n1 EXIT", {1: 1})
        with self.assertRaisesRegex(sass.Undecided, "nowhere"):
            runs("1 JMP R2\n1 EXIT", {1: 1})
        with self.assertRaisesRegex(sass.Undecided, "without an end"):
            runs(".L_x_1:\n1 BRA `(.L_x_1)", {1: 1})
        with self.assertRaisesRegex(sass.Undecided, "unequally"):
            runs("1 MOV R1, R2\n2 MOV R3, R2\n3 EXIT", {1: 1, 2: 2, 3: 3})

    def test_stores_run_as_often_as_they_should(self):
        code = ptx.Code(KERNEL.format(name="first"))
        frequencies = {**self.FREQUENCIES, ST: 70}
        _, blocks, _ = runs(self.LOOP, frequencies)
        machine.check_flow(code, blocks, frequencies)
        for wrong in [0, 140]:
            for block in blocks:
                block.runs = wrong
            with self.assertRaisesRegex(sass.Undecided, f"runs 70 times, in machine code {wrong}"):
                machine.check_flow(code, blocks, frequencies)


class Table(unittest.TestCase):
    def test_only_what_rose_fails(self):
        key = ("compress", "f32", "2", "flat", "sm_90")
        table = {key: {"instructions": "16.97", "with_prologue": "18.41"}}

        def found(instructions, key=key):
            row = {"instructions": instructions, "with_prologue": 18.4}
            return list(machine.failures({key: row}, table))

        self.assertEqual(found(16.971), [])
        self.assertEqual(found(12.5), [])
        self.assertEqual(found(17.0),
                         ["compress f32 2 flat sm_90: instructions rose from 16.97 to 17"])
        self.assertEqual(found(1.0, ("x",)), ["x: not in the table"])


if __name__ == "__main__":
    unittest.main()
