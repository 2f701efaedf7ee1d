"""An explanation is worked out from the journal alone, and every number in it can be recomputed by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from autotune.devices.base import DeviceInfo
from autotune.environment import Environment
from autotune.explanation import explain
from autotune.generators.base import Resources
from autotune.journal import RunLog
from autotune.knob_effects import Trials, knob_effects, sketch_effects
from autotune.measurement import Measurement, Policy, Status
from autotune.records import SCHEMA, RaceRecord, Ratio, Roof, RunRecord, TaskData
from autotune.trial_index import TrialIndex
from search_spaces.hardware import cuda_hardware
from search_spaces.schedule import Schedule
from search_spaces.target import parse_target
from search_spaces.task import Task, find_operator

TOY = f"{Path(__file__).parents[1] / 'support' / 'toy.py'}:Toy"


def run_record(data, device, roof, **more):
    return RunRecord(
        schema=SCHEMA,
        run="r1",
        started="2026-01-01T00:00:00+00:00",
        task=data,
        device=device,
        foreign=False,
        environment=Environment({}, "3.11", "Linux"),
        policy=Policy(),
        strategy="random",
        seed=0,
        trials=4,
        minutes=None,
        floor_seconds=more.pop("floor", 1e-3),
        operations=more.pop("operations", 2e9),
        bytes=more.pop("bytes", 1e6),
        roof=roof,
    )


def toy_record():
    workload = find_operator(TOY).workload("llvm")
    data = TaskData(TOY, workload, "llvm", (), "k", "f")
    return run_record(data, DeviceInfo("llvm", "cpu", "x86_64", 2, 1), Roof("cpu", 2e12, 2e9, "measured"))


def schedule(tile=8, width=1, order=0, sketch="toy.loops"):
    return Schedule((("sketch", sketch), ("tile", tile), ("width", width), ("order", order)))


def ok(made, seconds, binary=""):
    return Measurement(made, Status.OK, (seconds,) * 3, binary=binary)


def failed(made, detail, status=Status.WRONG_RESULT):
    return Measurement(made, status, detail=detail)


def log_of(*trials, race=None, record=None):
    return RunLog([record or toy_record()], TrialIndex(trials), [race] if race else [])


def race(winner, default, **medians_by_tile):
    schedules = [schedule(tile=int(name[1:])) for name in medians_by_tile]
    return RaceRecord(
        run="r1",
        winner=dict(winner.items),
        default=dict(default.items),
        schedules=tuple(dict(s.items) for s in schedules),
        samples=tuple((m,) * 5 for m in medians_by_tile.values()),
        library={},
        over_default=Ratio(2.0, 1.9, 2.1),
        over_library=None,
        tied=0,
    )


def others(effect):
    return [(e.value, None if e.percent is None else round(e.percent, 6), e.alone, e.trials) for e in effect.others]


def test_a_knob_changed_alone_is_evidence_and_else_the_best_with_that_value():
    log = log_of(
        ok(schedule(8, 1), 1.0),
        ok(schedule(4, 1), 1.5),
        ok(schedule(4, 2), 1.2),
        ok(schedule(2, 2, 1), 3.0),
        ok(schedule(2, 4, 1), 2.0),
        failed(schedule(8, 4), "off"),
        ok(schedule(8, 1, sketch="other"), 4.0),
    )
    tile, width, order = sorted(knob_effects(Trials.of(log), schedule(8, 1)), key=lambda e: "two".index(e.knob[0]))[:3]
    assert (tile.knob, width.knob, order.knob) == ("tile", "width", "order")
    assert others(tile) == [(4, 50.0, True, 2), (2, 100.0, False, 2)]
    assert tile.cost == 75.0
    assert others(width) == [(2, 20.0, False, 2), (4, None, True, 2)]
    assert width.others[1].failed == "wrong result"
    assert others(order) == [(1, 100.0, False, 2)]


def test_the_knobs_whose_other_values_cost_most_come_first_and_untried_ones_last():
    log = log_of(ok(schedule(8, 1), 1.0), ok(schedule(4, 1), 1.1), ok(schedule(8, 2), 2.0))
    assert [e.knob for e in knob_effects(Trials.of(log), schedule(8, 1))] == ["width", "tile", "order"]


def test_a_race_settles_times_and_scales_the_trials_that_did_not_race():
    log = log_of(
        ok(schedule(8), 2.0, "a"),
        ok(schedule(4), 2.2, "b"),
        ok(schedule(4, order=1), 9.0, "b"),
        ok(schedule(2), 4.0, "c"),
        race=race(schedule(8), schedule(4), t8=1.0, t4=1.1),
    )
    trials = Trials.of(log)
    assert trials.seconds[schedule(8)] == 1.0
    assert trials.seconds[schedule(4, order=1)] == 1.1, "the same binary"
    assert trials.seconds[schedule(2)] == pytest.approx(2.0)
    log.races[0] = replace_run(log.races[0], "earlier")
    assert Trials.of(log).seconds[schedule(8)] == 2.0, "a race of an earlier run knows nothing of the later trials"


def replace_run(record, run):
    return RaceRecord(**{f: getattr(record, f) for f in record.__struct_fields__} | {"run": run})


def test_sketches_are_compared_by_their_best_trial():
    log = log_of(
        ok(schedule(8), 1.0),
        ok(schedule(8, sketch="b"), 2.0),
        failed(schedule(4, sketch="b"), "x"),
        failed(schedule(4, sketch="c"), "x"),
    )
    found = [(e.sketch, e.trials, e.failed, e.percent) for e in sketch_effects(Trials.of(log), schedule(8))]
    assert found == [("toy.loops", 1, 0, 0.0), ("b", 2, 1, 100.0), ("c", 1, 1, None)]


def test_the_roofline_says_what_binds_and_how_much_of_it_is_reached():
    explained = explain(log_of(ok(schedule(8), 4e-3)))
    roofline = explained.roofline
    assert (roofline.compute_seconds, roofline.memory_seconds) == (1e-3, 5e-4)
    assert roofline.binds == "arithmetic"
    assert (roofline.share, roofline.mfu, roofline.bandwidth_share) == (0.25, 0.25, 0.125)
    assert explained.residency is None


def test_a_roof_that_is_not_known_gives_no_share():
    record = replace_roof(toy_record(), Roof("cpu", None, 2e9, "measured"))
    roofline = explain(log_of(ok(schedule(8), 4e-3), record=record)).roofline
    assert (roofline.binds, roofline.mfu, roofline.bandwidth_share) == ("memory", None, 0.125)


def replace_roof(record, roof):
    return RunRecord(**{f: getattr(record, f) for f in record.__struct_fields__} | {"roof": roof})


def test_failures_are_counted_by_reason_whatever_their_numbers():
    log = log_of(
        ok(schedule(8), 1.0),
        failed(schedule(1), "deviates 3.5 times"),
        failed(schedule(2), "deviates 1.2e+10 times"),
        failed(schedule(4), "too large", Status.BUILD_ERROR),
    )
    assert explain(log).failures == {"wrong result: deviates 3.5 times": 2, "build error: too large": 1}


def test_nothing_verified_explains_nothing():
    assert explain(log_of(failed(schedule(1), "x"))) is None


@pytest.fixture
def on_gpu():
    workload = find_operator("matmul").workload("cuda", "float16", M=4096, N=4096, K=4096)
    task = Task("matmul", workload, parse_target("cuda -arch=sm_90"), cuda_hardware("sm_90", "NVIDIA H200"))
    task = replace(task, only=("triton.matmul_tiled",))
    cost = task.operator.cost(workload)
    device = DeviceInfo("cuda", "NVIDIA H200", "sm_90", 132, 1, "580", 1)
    roof = Roof.of(task.hardware, "float16")
    record = run_record(
        TaskData.of(task), device, roof, floor=task.floor_seconds, operations=cost.operations, bytes=cost.bytes
    )
    return task, record


def test_on_a_gpu_it_tells_occupancy_and_waves_with_no_gpu_here(on_gpu):
    task, record = on_gpu
    used = Resources(registers=128, shared_bytes=64 << 10, spill_bytes=0, threads=128)
    trial = replace(ok(task.default, 3e-4), resources=used)
    explained = explain(log_of(trial, record=record))
    assert explained.missing == ""
    assert explained.derived["log2_programs"] > 0
    residency = explained.residency
    assert residency.blocks_per_sm == min(65536 // (128 * 128), (228 << 10) // (65 << 10))
    assert residency.occupancy == residency.blocks_per_sm * 128 / 2048
    blocks = (4096 // task.default.integer("block_m")) * (4096 // task.default.integer("block_n"))
    assert residency.blocks == blocks
    assert residency.waves == blocks / (132 * residency.blocks_per_sm)
    assert explained.roofline.roof.model == "NVIDIA H200"


def test_an_operator_that_has_another_axis_since_derives_nothing(on_gpu):
    task, record = on_gpu
    fewer = replace(task.workload, axes=task.workload.axes[:3])
    record = RunRecord(
        **{f: getattr(record, f) for f in record.__struct_fields__} | {"task": replace(record.task, workload=fewer)}
    )
    explained = explain(log_of(ok(task.default, 3e-4), record=record))
    assert explained.derived == {}
    assert "has other axes since" in explained.missing


def test_a_sketch_that_has_changed_since_derives_nothing(on_gpu):
    task, record = on_gpu
    old = replace(record.task, sketches={"triton.matmul_tiled": "older"})
    record = RunRecord(**{f: getattr(record, f) for f in record.__struct_fields__} | {"task": old})
    explained = explain(log_of(ok(task.default, 3e-4), record=record))
    assert explained.derived == {}
    assert "has changed since" in explained.missing
