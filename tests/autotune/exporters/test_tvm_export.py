"""MetaSchedule databases: Relax and MetaSchedule themselves find the tuned schedules in them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune.exporting import export
from autotune.recall import recall
from autotune.relax_form import is_scheduled, relax_key, relax_module, same_program
from autotune.reuse.tvm import database_folder, tuned_database
from search_spaces.errors import BadLog, NothingValid
from search_spaces.registry import load_file
from search_spaces.sketches.tvm.base import tvm_target, workload_module

tvm = pytest.importorskip("tvm")
from tvm import relax  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402

tuned = load_file(Path(__file__).parents[2] / "support" / "tuned.py")
CASES = [
    ("matmul", "tvm.matmul_packed", {"M": 64, "N": 96, "K": 128}),
    ("softmax", "tvm.metaschedule", {"M": 32, "N": 64}),
    ("layer_norm", "tvm.untuned", {"M": 32, "N": 64}),
    ("rms_norm", "tvm.metaschedule", {"M": 16, "N": 32, "residual": 1}),
]
IDS = [case[0] for case in CASES]


def exported(tmp_path, *cases, device=tuned.CPU, **fields):
    entries = [tuned.entry_on(device, op, only, axes=axes, **fields) for op, only, axes in cases]
    return export(entries, "tvm", tmp_path / "out"), [recall(e) for e in entries]


def own_operator(task):
    """The workload written with TVM's own operators."""
    tensors = [t for t in task.operator.tensors(task.workload) if not t.output]
    inputs = [relax.Var(t.name, relax.TensorType(t.shape, t.dtype)) for t in tensors]
    calls = {
        "matmul": relax.op.matmul,
        "softmax": lambda x: relax.op.nn.softmax(x, axis=-1),
    }
    builder = relax.BlockBuilder()
    with builder.function("main", inputs):
        with builder.dataflow():
            output = builder.emit_output(builder.emit(calls[task.workload.operator](*inputs)))
        builder.emit_func_output(output)
    return builder.get()


def results(task, executable):
    """What a compiled program gives, and what it should give."""
    rng = np.random.default_rng(5)
    tensors = task.operator.tensors(task.workload)
    inputs = [rng.standard_normal(t.shape, dtype=np.float32) for t in tensors if not t.output]
    made = relax.VirtualMachine(executable, tvm.cpu())["main"](*map(tvm.runtime.tensor, inputs))
    made = list(made) if sum(t.output for t in tensors) > 1 else [made]
    wanted = task.operator.reference(task.workload, np, *(i.astype(np.float64) for i in inputs))
    return [m.numpy() for m in made], wanted


def scheduled(module):
    return [f for _, f in module.functions_items() if isinstance(f, tvm.tirx.PrimFunc) and is_scheduled(f)]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_relax_applies_the_tuned_schedule_and_its_program_is_right(case, tmp_path):
    made, (winner,) = exported(tmp_path, case)
    assert made.refused == ()
    task, work_dir = winner.task, str(tmp_path / "out" / database_folder(winner))
    target = tvm_target(task)
    pipeline = relax.get_pipeline("static_shape_tuning", total_trials=0, target=target, work_dir=work_dir)
    with target:
        module = pipeline(relax_module(task))
    (function,) = scheduled(module)
    replayed = tvm.s_tir.Schedule(relax_key(task))
    trace = task.sketch_of(winner.schedule).scheduled(task, winner.schedule).trace
    tvm.s_tir.Trace.apply_json_to_schedule(trace.as_json(), replayed)
    assert same_program(function, replayed.mod["main"])
    assert not same_program(function, relax_key(task)["main"]), "it is scheduled at all"
    for got, right in zip(*results(task, tvm.compile(module, target)), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("case", CASES[:2], ids=IDS[:2])
def test_a_program_of_tvms_own_operators_gets_the_schedule_too(case, tmp_path):
    _, (winner,) = exported(tmp_path, case)
    task, target = winner.task, tvm_target(winner.task)
    with target:
        before = relax.get_pipeline("zero")(own_operator(task))
    assert scheduled(before) == []
    with target, tuned_database(tmp_path / "out"):
        after = relax.get_pipeline("zero")(own_operator(task))
    assert len(scheduled(after)) == 1
    database = ms.database.JSONDatabase(work_dir=str(tmp_path / "out" / database_folder(winner)))
    executable = ms.relax_integration.compile_relax(database, own_operator(task), target, params=None)
    for got, right in zip(*results(task, executable), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-3, atol=1e-4)


def test_query_schedule_gives_the_function_as_it_was_tuned(tmp_path):
    _, winners = exported(tmp_path, *CASES)
    database = ms.database.JSONDatabase(work_dir=str(tmp_path / "out" / database_folder(winners[0])))
    assert len(database) == 2 * len(CASES)
    for winner in winners:
        found = database.query_schedule(workload_module(winner.task), tvm_target(winner.task), "main")
        tuned_schedule = winner.task.sketch_of(winner.schedule).scheduled(winner.task, winner.schedule)
        assert same_program(found.mod["main"], tuned_schedule.mod["main"])


@pytest.mark.parametrize(("op", "only"), [("matmul", "tvm.metaschedule"), ("softmax", "tvm.untuned")])
def test_gpu_schedules_are_applied_without_a_gpu(op, only, tmp_path):
    axes = {"M": 128, "N": 128, "K": 64} if op == "matmul" else {"M": 64, "N": 128}
    made, (winner,) = exported(tmp_path, (op, only, axes), device=tuned.H200, dtype="float16")
    assert made.refused == ()
    assert "NVIDIA-H200" in str(database_folder(winner))


def test_the_database_tells_devices_apart(tmp_path):
    axes = {"M": 64, "N": 96, "K": 128}
    first = tuned.entry_on(tuned.CPU, "matmul", "tvm.matmul_packed", axes=axes, seed=1)
    elsewhere = tuned.entry_on(
        replace(tuned.CPU, name="Another CPU"),
        "matmul",
        "tvm.matmul_packed",
        axes=axes,
        seed=2,
        seconds=1e-6,
    )
    export([first, elsewhere], "tvm", tmp_path / "out")
    task = recall(first).task
    for model, entry in ((tuned.CPU.name, first), ("Another CPU", elsewhere), ("", elsewhere)):
        found = tuned_database(tmp_path / "out", model).query_tuning_record(
            workload_module(task), tvm_target(task), "main"
        )
        assert [float(s) for s in found.run_secs] == pytest.approx(list(entry.samples))
    nowhere = tuned_database(tmp_path / "out", "A third CPU")
    assert nowhere.query_tuning_record(workload_module(task), tvm_target(task), "main") is None


def test_a_new_process_without_this_project_opens_it(tmp_path):
    _, (winner,) = exported(tmp_path, CASES[0])
    code = (
        "import sys\n"
        "from tvm.s_tir import meta_schedule as ms\n"
        "d = ms.database.JSONDatabase(work_dir=sys.argv[1], allow_missing=False)\n"
        "print(len(d), [r.target.kind.name for r in d.get_all_tuning_records()], 'autotune' in sys.modules)"
    )
    folder = tmp_path / "out" / database_folder(winner)
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.split() == ["2", "['llvm',", "'llvm']", "False"]


def test_a_triton_schedule_is_no_trace(tmp_path):
    entry = tuned.entry_on(tuned.H200, "softmax", "triton.softmax_rows", axes={"M": 64, "N": 128})
    with pytest.raises(NothingValid, match=r"triton.softmax_rows is made by triton"):
        export([entry], "tvm", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_export_for_another_tvm_is_told(tmp_path):
    (tmp_path / "tvm-0.1").mkdir()
    with pytest.raises(BadLog, match="no database for TVM"):
        tuned_database(tmp_path)


def test_what_was_tuned_with_vectors_of_exponentials_is_said(tmp_path):
    made, _ = exported(tmp_path, CASES[1])
    assert any("vectorise_exponential" in note for note in made.notes)
