"""A tuned log gives functions: the tuned schedule for exactly these arrays, or the reason why not."""

import gc
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

import autotune
from autotune.exporters.base import ExportFault
from autotune.generators.tvm import GENERATOR
from autotune.recall import recall
from autotune.reuse import load as module
from autotune.tuned_log import write_entries
from search_spaces.errors import AutotuneError, ExitCode, InvalidWorkload, NothingValid, OtherIdentity
from search_spaces.registry import load_file

pytest.importorskip("tvm")
tuned = load_file(Path(__file__).parents[2] / "support" / "tuned.py")
TOY = f"{Path(__file__).parents[2] / 'support' / 'toy.py'}:Toy"
MATMUL = {"M": 64, "N": 96, "K": 128}
ATTENTION = {"B": 1, "H": 2, "G": 1, "S": 32, "D": 16}


@pytest.fixture(scope="module")
def matmul():
    return tuned.entry_on(tuned.CPU, "matmul", "tvm.matmul_packed", axes=MATMUL, target="llvm -num-cores=2")


@pytest.fixture
def log(tmp_path):
    def written(*entries, **options):
        write_entries(tmp_path / "log.json", entries)
        return autotune.load(tmp_path / "log.json", **options)

    return written


def arrays(*shapes, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def test_it_computes_and_to_the_bit_what_the_tuned_schedule_computes(log, matmul, tmp_path):
    a, b = arrays((64, 128), (128, 96))
    kernel = log(matmul).kernel("matmul", a, b)
    made = kernel(a, b)
    np.testing.assert_allclose(made, a @ b, rtol=1e-4, atol=1e-4)
    winner = recall(matmul)
    artifact = GENERATOR.build(winner.task, winner.schedule, tmp_path)
    wanted = kernel.allocate((64, 96), "float32")
    given = [kernel.allocate(x.shape, "float32") for x in (a, b)]
    given[0][...], given[1][...] = a, b
    GENERATOR.load(winner.task, winner.schedule, artifact, tmp_path).bind(given, [wanted])()
    np.testing.assert_array_equal(made, wanted)
    assert kernel.winner.schedule == winner.schedule
    assert kernel.judgement.differences == ()
    assert str(winner) in repr(kernel)
    assert len(repr(kernel)) < 400


def test_inputs_need_not_be_aligned(log, matmul):
    a, b = arrays((64, 128), (128, 96))
    kernel = log(matmul).kernel("matmul", a, b)
    for offset in range(0, 64, 4):
        raw = np.empty(a.nbytes + 128, np.int8)
        start = -raw.ctypes.data % 64 + offset
        shifted = raw[start : start + a.nbytes].view(np.float32).reshape(a.shape)
        shifted[...] = a
        np.testing.assert_array_equal(kernel(shifted, b), kernel(a, b))


def test_several_outputs_come_as_a_tuple(log):
    axes = {"M": 16, "N": 64, "residual": 1}
    entry = tuned.entry_on(tuned.CPU, "rms_norm", "tvm.untuned", axes=axes)
    x, w, r = arrays((16, 64), (64,), (16, 64))
    _, total = log(entry).kernel("rms_norm", x, w, r)(x, w, r)
    np.testing.assert_allclose(total, x + r, rtol=1e-6)


def test_flags_that_no_shape_tells_are_named(log):
    entries = [tuned.entry_on(tuned.CPU, "attention", "tvm.untuned", axes={**ATTENTION, "causal": c}) for c in (0, 1)]
    q, k, v = arrays((1, 2, 32, 16), (1, 1, 32, 16), (1, 1, 32, 16))
    found = log(*entries)
    with pytest.raises(InvalidWorkload, match=r"causal=0.* and .*causal=1.*name the axes"):
        found.kernel("attention", q, k, v)
    free, causal = (found.kernel("attention", q, k, v, causal=c)(q, k, v) for c in (0, 1))
    np.testing.assert_allclose(causal[0, 0, 0], v[0, 0, 0], rtol=1e-4)
    assert not np.allclose(free, causal)


@pytest.mark.parametrize(
    ("shapes", "dtype", "why"),
    [
        (((64, 128), (128, 32)), np.float32, "tuned: matmul M=64,N=96,K=128,trans_b=0 float32"),
        (((64, 128), (128, 96)), np.float16, "float16 64x128"),
        (((64, 128),), np.float32, "was not tuned"),
    ],
)
def test_what_was_not_tuned_is_said_with_what_was(log, matmul, shapes, dtype, why):
    with pytest.raises(NothingValid, match=why):
        log(matmul).kernel("matmul", *arrays(*shapes, dtype=dtype))


def test_calls_with_other_arrays_are_refused(log, matmul):
    a, b = arrays((64, 128), (128, 96))
    kernel = log(matmul).kernel("matmul", a, b)
    for wrong, why in (
        ((a, b[:, :32]), "B is float32"),
        ((a,), "takes 3 arrays"),
        ((a, arrays((96, 128))[0].T), "not dense"),
    ):
        with pytest.raises(InvalidWorkload, match=why):
            kernel(*wrong)
    with pytest.raises(InvalidWorkload, match="not aligned"):
        kernel.bind((a, b), (np.empty(64 * 96 + 17, np.float32)[1 : 1 + 64 * 96].reshape(64, 96),))


def elsewhere(entry):
    return msgspec.structs.replace(entry, device=replace(entry.device, name="another CPU"))


def test_compatible_verifies_what_was_recorded_elsewhere(log, matmul, monkeypatch):
    a, b = arrays((64, 128), (128, 96))
    kernel = log(elsewhere(matmul)).kernel("matmul", a, b)
    assert kernel.judgement.must_verify
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-4)
    monkeypatch.setattr(module, "agrees", lambda *_: False)
    with pytest.raises(NothingValid, match="wrong values"):
        log(elsewhere(matmul)).kernel("matmul", a, b)


def test_exact_and_refuse_say_what_differs(log, matmul):
    inputs = arrays((64, 128), (128, 96))
    with pytest.raises(NothingValid, match="device name: another CPU recorded"):
        log(elsewhere(matmul), policy="exact").kernel("matmul", *inputs)
    with pytest.raises(OtherIdentity, match="device name"):
        log(elsewhere(matmul), policy="refuse").kernel("matmul", *inputs)
    assert log(matmul, policy="exact").kernel("matmul", *inputs).judgement.differences == ()


def test_the_entry_of_this_device_comes_first(log, matmul):
    faster = msgspec.structs.replace(elsewhere(matmul), seconds=1e-9)
    kernel = log(faster, matmul).kernel("matmul", *arrays((64, 128), (128, 96)))
    assert kernel.winner.entry.device == tuned.CPU


def test_a_schedule_whose_sketch_has_changed_is_not_used(log, matmul):
    old = msgspec.structs.replace(matmul, task=replace(matmul.task, sketches={"tvm.matmul_packed": "older"}))
    with pytest.raises(NothingValid, match="has changed since"):
        log(old).kernel("matmul", *arrays((64, 128), (128, 96)))
    kernel = log(msgspec.structs.replace(old, seconds=1e-9), matmul).kernel("matmul", *arrays((64, 128), (128, 96)))
    assert kernel.winner.entry == matmul


def test_its_binary_goes_when_nobody_can_launch_it_any_more(log, matmul, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    a, b = arrays((64, 128), (128, 96))
    kernel = log(matmul).kernel("matmul", a, b)
    made = kernel.allocate((64, 96), "float32")
    launch = kernel.bind((a, b), (made,))
    del kernel
    gc.collect()
    assert len(list(tmp_path.glob("autotune-kernel-*"))) == 1
    launch()
    np.testing.assert_allclose(made, a @ b, rtol=1e-4, atol=1e-4)
    del launch
    gc.collect()
    assert list(tmp_path.glob("autotune-kernel-*")) == []


def test_no_file_that_a_log_names_is_run(log, matmul, tmp_path):
    evil = tmp_path / "evil.py"
    evil.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    for reference in (f"{evil}:Op", "this.anything"):
        named = msgspec.structs.replace(matmul, task=replace(matmul.task, reference=reference))
        with pytest.raises(AutotuneError, match="would be imported; trust it") as caught:
            log(named).kernel("matmul", *arrays((64, 128), (128, 96)))
        assert caught.value.exit_code == ExitCode.USAGE
    assert not (tmp_path / "ran").exists()


def test_an_operator_of_ones_own_is_trusted_by_name():
    entry = tuned.entry_on(tuned.CPU, TOY)
    with pytest.raises(AutotuneError, match="trust it"):
        recall(entry)
    assert recall(entry, [TOY]).schedule is not None


@pytest.mark.parametrize(("axis", "extent"), [("M", 2**40), ("M", 2**63), ("N", -5), ("K", 0)])
def test_absurd_extents_are_told_at_once(matmul, axis, extent):
    axes = tuple((n, extent if n == axis else v) for n, v in matmul.task.workload.axes)
    workload = replace(matmul.task.workload, axes=axes)
    with pytest.raises(AutotuneError):
        recall(msgspec.structs.replace(matmul, task=replace(matmul.task, workload=workload)))


def test_faults_have_exit_codes():
    assert ExportFault("x").exit_code == ExitCode.DOES_NOT_HOLD
