"""Identity says everything that a time depends on; a reader's policy says what a difference means."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.devices.base import DeviceInfo
from autotune.environment import Environment
from autotune.generators.base import Resources
from autotune.identity import Identity, Reading, judge
from autotune.measurement import Policy
from autotune.records import TaskData, TensorData
from autotune.toolchain import tool_versions
from autotune.tuned_log import Entry
from search_spaces.errors import ExitCode, OtherIdentity
from search_spaces.hardware import cuda_hardware
from search_spaces.operator import TensorSpec, Workload
from search_spaces.target import parse_target
from search_spaces.task import Task

WORKLOAD = Workload("matmul", (("M", 64), ("N", 32), ("K", 16)), "float16")
DEVICE = DeviceInfo("cuda", "NVIDIA H200", "sm_90", 132, 150 << 30, "580.1", 50 << 20)
ENVIRONMENT = Environment({"triton": "3.6.0", "torch": "2.9", "mlflow": "3"}, "3.11", "Linux", {"ptxas": "12.8"})
TASK = TaskData(
    reference="matmul",
    workload=WORKLOAD,
    target="cuda -arch=sm_90",
    only=(),
    key="k",
    space="f",
    tensors=(TensorData.of(TensorSpec("A", (64, 16), "float16")),),
    source="0" * 16,
    sketches={"triton.tiled": "a", "triton.tma": "b"},
)


def entry(schedule_of="triton.tiled/0"):
    return Entry(
        task=TASK,
        device=DEVICE,
        foreign=False,
        environment=ENVIRONMENT,
        policy=Policy(),
        schedule={"sketch": schedule_of, "tile": 4},
        seconds=1e-3,
        samples=(1e-3,),
        raced=False,
        over_default=None,
        over_library=None,
        library="",
        roofline=0.5,
        operations=1.0,
        bytes=1.0,
        resources=Resources(),
        binary="b",
        trials=1,
        strategy="random",
        seed=0,
    )


def identity(task=TASK, device=DEVICE, environment=ENVIRONMENT, policy=None):
    return Identity.of(task, device, environment, policy or Policy())


CHANGES = {
    "operator": {"task": replace(TASK, workload=replace(WORKLOAD, operator="conv"))},
    "axes": {"task": replace(TASK, workload=replace(WORKLOAD, axes=(("M", 65), ("N", 32), ("K", 16))))},
    "dtype": {"task": replace(TASK, workload=replace(WORKLOAD, dtype="bfloat16"))},
    "tensors": {"task": replace(TASK, tensors=(replace(TASK.tensors[0], strides=(1, 64)),))},
    "target": {"task": replace(TASK, target="cuda -arch=sm_80")},
    "sketch triton.tiled": {"task": replace(TASK, sketches={**TASK.sketches, "triton.tiled": "c"})},
    "device kind": {"device": replace(DEVICE, kind="llvm")},
    "device arch": {"device": replace(DEVICE, arch="sm_80")},
    "source": {"task": replace(TASK, source="1" * 16)},
    "space": {"task": replace(TASK, space="g")},
    "sketch triton.tma": {"task": replace(TASK, sketches={"triton.tiled": "a"})},
    "device name": {"device": replace(DEVICE, name="NVIDIA H100 80GB HBM3")},
    "device units": {"device": replace(DEVICE, units=114)},
    "device memory_bytes": {"device": replace(DEVICE, memory_bytes=80 << 30)},
    "device driver": {"device": replace(DEVICE, driver="581.0")},
    "software triton": {"environment": replace(ENVIRONMENT, versions={"torch": "2.9"})},
    "software ptxas": {"environment": replace(ENVIRONMENT, tools={"ptxas": "13.0"})},
    "policy cold": {"policy": Policy(cold=False)},
}
BINDING = list(CHANGES)[:8]


def test_the_same_identity_is_taken_as_it_is_by_every_policy():
    for policy in Reading:
        judgement = judge(entry(), identity(), policy)
        assert judgement.allowed
        assert not judgement.must_verify
        assert judgement.differences == ()


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_is_seen_and_exact_passes_it_over(field):
    here = identity(**CHANGES[field])
    assert here.fingerprint != identity().fingerprint
    judgement = judge(entry(), here, Reading.EXACT)
    assert field in [d.field for d in judgement.differences]
    assert not judgement.allowed
    assert judgement.other_device == field.startswith("device")


@pytest.mark.parametrize("field", CHANGES)
def test_compatible_takes_what_can_be_verified_again_and_nothing_else(field):
    judgement = judge(entry(), identity(**CHANGES[field]), Reading.COMPATIBLE)
    assert judgement.allowed == judgement.must_verify == (field not in BINDING)
    assert judgement.differences[0].binding == (field in BINDING)


@pytest.mark.parametrize("field", CHANGES)
def test_refuse_stops_with_the_fields_that_differ(field):
    with pytest.raises(OtherIdentity, match=field) as error:
        judge(entry(), identity(**CHANGES[field]), Reading.REFUSE)
    assert error.value.exit_code == ExitCode.DOES_NOT_HOLD
    assert "\n" not in str(error.value)


def test_only_the_winners_own_sketch_binds():
    changed = identity(replace(TASK, sketches={**TASK.sketches, "triton.tiled": "c"}))
    assert not judge(entry("triton.tiled/0"), changed, Reading.COMPATIBLE).allowed
    assert judge(entry("triton.tma"), changed, Reading.COMPATIBLE).allowed


def test_software_that_only_searches_or_logs_is_no_part_of_it():
    here = identity(environment=replace(ENVIRONMENT, versions={"triton": "3.6.0", "torch": "2.9", "mlflow": "4"}))
    assert here.fingerprint == identity().fingerprint


def test_the_fingerprint_does_not_depend_on_the_order_of_what_was_read():
    turned = replace(ENVIRONMENT, versions=dict(reversed(ENVIRONMENT.versions.items())))
    assert identity(environment=turned).fingerprint == identity().fingerprint
    assert len(identity().fingerprint) == 64
    assert " " not in identity(device=replace(DEVICE, name="x")).canonical.replace("cuda -arch", "")


def test_it_survives_json():
    assert msgspec.json.decode(identity().canonical, type=Identity) == identity()
    assert msgspec.json.decode(msgspec.json.encode(entry()), type=Entry) == entry()


@given(shape=st.lists(st.integers(1, 50), max_size=4).map(tuple))
def test_strides_are_those_of_a_dense_array(shape):
    numpy = pytest.importorskip("numpy")
    made = TensorData.of(TensorSpec("A", shape, "float32"))
    assert made.strides == tuple(s // 4 for s in numpy.empty(shape, numpy.float32).strides)


def test_a_task_brings_layouts_and_sources():
    workload = Workload("matmul", (("M", 64), ("N", 64), ("K", 64), ("trans_b", 0)), "float16")
    task = Task("matmul", workload, parse_target("cuda -arch=sm_90"), cuda_hardware("sm_90"), ("triton.matmul_tiled",))
    data = TaskData.of(task)
    assert [t.name for t in data.tensors] == ["A", "B", "C"]
    assert data.sketches == {"triton.matmul_tiled": task.sketches["triton.matmul_tiled"].source_hash}
    assert len(data.source) == 16
    pytest.importorskip("triton")
    tools = tool_versions(task)
    assert tools["triton"]
    assert all(tools.values())
