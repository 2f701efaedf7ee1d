"""Compiled kernels run without this project; what their binaries take is what their launch data say."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.exporters.artifact import EXPORTER
from autotune.exporters.base import ExportFault
from autotune.exporting import SIDE_FILE, Exported, export
from autotune.recall import recall
from autotune.reuse.artifact import FILE, read_artifact
from search_spaces.errors import BadLog, NothingValid
from search_spaces.registry import load_file

tuned = load_file(Path(__file__).parents[2] / "support" / "tuned.py")
EXAMPLES = Path(__file__).parents[3] / "experiments" / "examples"
CPU_CASES = [
    ("matmul", "tvm.matmul_packed", {"M": 64, "N": 96, "K": 128}),
    ("rms_norm", "tvm.untuned", {"M": 16, "N": 64, "residual": 1}),
    ("softmax", "tvm.metaschedule", {"M": 32, "N": 64}),
]
GPU_CASES = [
    ("softmax", "triton.softmax_rows", {"M": 64, "N": 128}),
    ("matmul", "triton.matmul_tma", {"M": 512, "N": 512, "K": 256}),
    ("matmul", "triton.matmul_tiled", {"M": 300, "N": 520, "K": 256}),
]


def folder_of(out):
    (found,) = out.rglob(FILE)
    return found.parent


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    pytest.importorskip("tvm")
    out = tmp_path_factory.mktemp("artifact") / "out"
    op, only, axes = CPU_CASES[0]
    export([tuned.entry_on(tuned.CPU, op, only, axes=axes)], "artifact", out)
    return folder_of(out)


@pytest.mark.parametrize("case", CPU_CASES, ids=lambda case: case[0])
def test_ctypes_alone_runs_a_shared_object(case, tmp_path):
    pytest.importorskip("tvm")
    op, only, axes = case
    entry = tuned.entry_on(tuned.CPU, op, only, axes=axes)
    export([entry], "artifact", tmp_path / "out")
    task = recall(entry).task
    rng = np.random.default_rng(2)
    specs = task.operator.tensors(task.workload)
    inputs = {t.name: rng.standard_normal(t.shape, dtype=np.float32) for t in specs if not t.output}
    np.savez(tmp_path / "in.npz", **inputs)
    command = [EXAMPLES / "run_shared_object.py", folder_of(tmp_path / "out"), tmp_path / "in.npz", tmp_path / "o.npz"]
    subprocess.run([sys.executable, "-I", *command], check=True, timeout=120, cwd=tmp_path)
    wanted = task.operator.reference(task.workload, np, *(x.astype(np.float64) for x in inputs.values()))
    made = np.load(tmp_path / "o.npz")
    assert list(made) == [t.name for t in specs if t.output]
    for name, right in zip(made, wanted, strict=True):
        np.testing.assert_allclose(made[name], right, rtol=1e-4, atol=1e-4)


def test_the_example_refuses_another_file(library, tmp_path):
    (tmp_path / FILE).write_bytes((library / FILE).read_bytes())
    (tmp_path / "kernel.so").write_bytes((library / "kernel.so").read_bytes() + b"\0")
    done = subprocess.run(
        [sys.executable, "-I", EXAMPLES / "run_shared_object.py", tmp_path, "in.npz", "out.npz"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "not the exported file" in done.stderr
    with pytest.raises(BadLog, match="not the file that was exported"):
        read_artifact(tmp_path)


@pytest.mark.parametrize("case", GPU_CASES, ids=lambda case: case[1])
def test_the_launch_data_name_every_parameter_of_the_binary(case, tmp_path):
    pytest.importorskip("triton")
    op, only, axes = case
    entry = tuned.entry_on(tuned.H200, op, only, dtype="float16", axes=axes)
    export([entry], "artifact", tmp_path / "out")
    artifact, code = read_artifact(folder_of(tmp_path / "out"))
    winner = recall(entry)
    launch = winner.task.sketch_of(winner.schedule).launch(winner.task, winner.schedule)
    assert code[:4] == b"\x7fELF"
    assert artifact.grid == launch.grid
    assert artifact.block == (32 * launch.num_warps, 1, 1)
    named = [p.tensor for p in artifact.parameters if hasattr(p, "tensor")]
    # What the workload lacks has another tensor in its place.
    assert list(dict.fromkeys(named)) == [t.name for t in artifact.tensors]


def test_a_kernel_with_memory_of_its_own_is_refused(tmp_path):
    pytest.importorskip("triton")
    axes = {"B": 1, "H": 8, "G": 2, "S": 4096, "T": 1, "D": 64}
    entry = tuned.entry_on(tuned.H200, "attention_decode", "triton.attention_decode_pieces", dtype="float16", axes=axes)
    with pytest.raises(NothingValid, match="memory of its own"):
        export([entry], "artifact", tmp_path / "out")


def test_launch_data_that_are_not_the_binarys_are_refused(tmp_path):
    pytest.importorskip("triton")
    op, only, axes = GPU_CASES[0]
    entry = tuned.entry_on(tuned.H200, op, only, dtype="float16", axes=axes)
    export([entry], "artifact", tmp_path / "out")
    place = folder_of(tmp_path / "out")
    artifact, _ = read_artifact(place)
    wrong = msgspec.structs.replace(artifact, parameters=artifact.parameters[1:])
    (place / FILE).write_bytes(msgspec.json.encode(wrong))
    with pytest.raises(ExportFault, match="the binary takes parameters of 8, 8, 8, 8 bytes, not 8, 8, 8"):
        EXPORTER.reopen([recall(entry)], tmp_path / "out")


def test_a_cuda_kernel_of_tvm_is_left_to_tvm(tmp_path):
    pytest.importorskip("tvm")
    entry = tuned.entry_on(tuned.H200, "softmax", "tvm.untuned", axes={"M": 64, "N": 128})
    with pytest.raises(NothingValid, match="launched by TVM alone"):
        export([entry], "artifact", tmp_path / "out")


def test_the_side_file_says_where_it_is_from(library):
    side = msgspec.json.decode((library.parents[1] / SIDE_FILE).read_bytes(), type=Exported)
    assert side.format == "artifact"
    assert sorted(side.files) == sorted(str((library / n).relative_to(library.parents[1])) for n in (FILE, "kernel.so"))
    assert [e.task.workload.operator for e in side.entries] == ["matmul"]


def told_or_read(folder):
    """A line where it is refused."""
    try:
        read_artifact(folder)
    except BadLog as error:
        return str(error)
    return ""


@settings(deadline=None)
@given(st.data())
def test_any_damage_is_one_line(library, tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "damaged-artifact"
    folder.mkdir(exist_ok=True)
    (folder / "kernel.so").write_bytes((library / "kernel.so").read_bytes())
    whole = bytearray((library / FILE).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    (folder / FILE).write_bytes(whole)
    assert "\n" not in told_or_read(folder)


@pytest.mark.parametrize("name", ["/etc/passwd", "../kernel.so", "..", ""])
def test_a_file_elsewhere_is_never_read(library, tmp_path, name):
    about = json.loads((library / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**about, "file": name}))
    assert "no artifact" in told_or_read(tmp_path)
