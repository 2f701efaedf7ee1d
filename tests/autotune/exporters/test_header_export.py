"""A header that C and C++ compilers take, and results that Kernel Tuner finds again."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.exporters.c_header import FILE, constants, prefix
from autotune.exporting import export
from autotune.recall import recall
from search_spaces.errors import MissingDependency, NothingValid
from search_spaces.registry import available, load_file

tuned = load_file(Path(__file__).parents[2] / "support" / "tuned.py")
H100 = replace(tuned.H200, name="NVIDIA H100 PCIe")
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
MAIN = """
#include <cstdio>
#include "kernel_autotune.h"
int main() { std::printf("%d %d", PREFIX_BLOCK_M, PREFIX_NUM_WARPS); }
"""


def matmul(device=tuned.H200, seed=1):
    return tuned.entry_on(device, "matmul", "triton.matmul_tiled", axes={"M": 512, "N": 256, "K": 128}, seed=seed)


@needs_cc
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_a_program_gets_the_constants_of_its_device(tmp_path):
    entries = [matmul(seed=1), matmul(H100, seed=2)]
    export(entries, "c-header", tmp_path / "out")
    name = prefix(recall(entries[0]))
    assert name == "MATMUL_M512_N256_K128_TRANS_B0_FLOAT16"
    (tmp_path / "main.cpp").write_text(MAIN.replace("PREFIX", name))
    for entry, target in zip(entries, ("TARGET_NVIDIA_H200", "TARGET_NVIDIA_H100_PCIE"), strict=True):
        options = [f"-D{target}", f"-I{tmp_path / 'out'}", "-o", tmp_path / "main", tmp_path / "main.cpp"]
        subprocess.run(["g++", *options], check=True)
        said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
        assert said == f"{entry.schedule['block_m']} {entry.schedule['num_warps']}"
    done = subprocess.run(
        ["g++", "-fsyntax-only", f"-I{tmp_path / 'out'}", tmp_path / "main.cpp"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "define one of TARGET_NVIDIA_H200, TARGET_NVIDIA_H100_PCIE" in done.stderr


@needs_cc
def test_tuples_and_words_are_constants_too(tmp_path):
    pytest.importorskip("tvm")
    entry = tuned.entry_on(tuned.CPU, "matmul", "tvm.metaschedule", axes={"M": 32, "N": 32, "K": 32})
    made = constants(recall(entry))
    export([entry], "c-header", tmp_path / "out")
    tile = next(name for name, value in entry.schedule.items() if isinstance(value, tuple))
    places = [name for name in made if name.endswith(tuple(f"{tile.upper().replace('.', '_')}_{i}" for i in range(9)))]
    assert [int(made[p]) for p in places] == list(entry.schedule[tile])
    assert "_ORDER_IS_" in " ".join(constants(recall(matmul())))


@needs_cc
def test_nothing_of_a_log_gets_out_of_a_comment_or_a_name(tmp_path):
    hostile = matmul(replace(tuned.H200, name='x*/\n#include "/etc/passwd"\n/*'))
    export([hostile], "c-header", tmp_path / "out")
    text = (tmp_path / "out" / FILE).read_text()
    assert "#include" not in text
    assert "TARGET_X_INCLUDE_ETC_PASSWD" in text


def test_kernel_tuner_finds_the_best_of_each_device(tmp_path):
    pytest.importorskip("kernel_tuner")
    from kernel_tuner.integration import TuneResults, create_device_targets

    entries = [matmul(seed=1), matmul(H100, seed=2)]
    export(entries, "kernel-tuner", tmp_path / "out")
    path = str(tmp_path / "out" / "matmul-float16-triton.matmul-tiled.json")
    for entry in entries:
        best = TuneResults(path).get_best_config(entry.device.name, (512, 256, 128))
        assert best["block_m"] == entry.schedule["block_m"]
    create_device_targets(str(tmp_path / "targets.h"), path)
    assert f"#define block_m {entries[0].schedule['block_m']}" in (tmp_path / "targets.h").read_text()


@pytest.mark.skipif(available("kernel_tuner"), reason="it is installed")
def test_without_kernel_tuner_nothing_is_written(tmp_path):
    with pytest.raises(MissingDependency, match="Kernel Tuner is not installed"):
        export([matmul()], "kernel-tuner", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_schedule_without_knobs_is_no_configuration(tmp_path):
    pytest.importorskip("kernel_tuner")
    pytest.importorskip("tvm")
    untuned = tuned.entry_on(tuned.CPU, "softmax", "tvm.untuned", axes={"M": 8, "N": 8})
    with pytest.raises(NothingValid, match="no knobs"):
        export([untuned], "kernel-tuner", tmp_path / "out")
