# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Which library is loaded for the torch that runs."""

import os
import shutil
import subprocess
import sys

import pytest
import torch

import furl_torch
from furl_torch._libraries import VARIABLE, find_library, library_name
from furl_torch._ops import HAS_KERNELS, _check_version, _library, _load

pytestmark = pytest.mark.host_only


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Of a wheel for three versions."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("2.15", "2.9", "2.5-pre-cxx11"):
        (tmp_path / f"_library-{name}.so").touch()
    return tmp_path


@pytest.mark.parametrize("version,has_new_strings,name", [
    ("2.15.0", True, "2.15"), ("2.9.1+cu128", True, "2.9"), ("2.5.1+cu124", False, "2.5-pre-cxx11"),
    ("2.9.1+rocm6.4", True, "2.9"), ("2.4.1.post303", True, "2.4"),  # of conda
    ("2.9.0a0+git1a2b", True, "2.9.0a0+git1a2b"), ("2.15.0rc2", True, "2.15.0rc2"),
    ("2.16.0.dev20261130+cpu", True, "2.16.0.dev20261130+cpu")])
def test_names(version, has_new_strings, name):
    assert library_name(version, has_new_strings) == f"_library-{name}.so"


@pytest.mark.parametrize("version,has_new_strings,name", [
    ("2.15.3", True, "2.15"), ("2.9.0+cpu", True, "2.9"), ("2.5.0", False, "2.5-pre-cxx11")])
def test_every_version_has_its_own(folder, version, has_new_strings, name):
    assert find_library(folder, version, has_new_strings).name == f"_library-{name}.so"


@pytest.mark.parametrize("version,has_new_strings,this", [
    ("2.8.0", True, "2.8.0: "), ("2.9.0a0+git1a2b", True, "2.9.0a0.git1a2b: "),  # what led up to a release may differ
    ("2.5.1+cpu", True, "2.5.1.cpu: "), ("2.9.1", False, "2.9.1 with the strings of before C.* .pre-cxx11.: ")])
def test_a_version_without_one_is_refused(folder, version, has_new_strings, this):
    message = f"has operators for torch 2.5-pre-cxx11, 2.9, 2.15, and this is {this}build them .*pip install"
    with pytest.raises(ImportError, match=message):
        find_library(folder, version, has_new_strings)


def test_no_library_at_all(folder):
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(ImportError, match=f"no operators in {folder}: if .* another folder .* else build them"):
        find_library(folder, "2.15.0", True)


def test_the_variable_comes_first(folder, monkeypatch):
    named = folder / "of_cmake.so"
    monkeypatch.setenv(VARIABLE, str(named))
    with pytest.raises(ImportError, match=f"{VARIABLE} is .*of_cmake.so: there is no such file"):
        find_library(folder, "2.15.0", True)
    named.touch()
    assert find_library(folder, "2.15.0", True) == named


def test_a_second_library_is_refused(tmp_path):
    """Torch would end the process."""
    shutil.copy(_library, tmp_path / "_library.so")
    code = f"import torch; torch.ops.load_library('{tmp_path}/_library.so'); import furl_torch"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), VARIABLE: str(_library)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1 and "ImportError: this process has loaded operators of furl" in ended.stderr
    environment[VARIABLE] = "_library.so"  # the same, by a relative path
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)


def test_a_processor_without_the_instructions_is_refused(tmp_path):
    content = _library.read_bytes()
    needs = b"\x02\x80\x00\xc0\x04\x00\x00\x00"  # GNU_PROPERTY_X86_ISA_1_NEEDED, of four bytes
    if needs not in content:
        pytest.skip("this library was built for this machine and does not say what it needs")
    place = content.index(needs) + len(needs)
    later = tmp_path / "later.so"
    later.write_bytes(content[:place] + b"\x00\x00\x00\x80" + content[place + 4:])  # of a level that nobody has
    with pytest.raises(ImportError, match="do not load: .*CPU ISA level is lower than required.*pip install"):
        _load(later)


def test_where_there_is_a_gpu_but_no_kernels_a_warning_says_so(monkeypatch):
    if HAS_KERNELS:
        pytest.skip("this library has kernels")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.warns(UserWarning, match="no kernels for the GPU.* FURL_CUDA=1"):
        furl_torch.compress_saved()


def test_a_library_for_another_version_is_refused():
    made_for = torch.ops.furl.torch_version()
    _check_version(made_for)
    with pytest.raises(ImportError, match="are for torch 1.2.0, and this is " + made_for.partition("+")[0]):
        _check_version("1.2.0")
