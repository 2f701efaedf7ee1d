"""What other tuners wrote becomes warm starts, training data and entries that nobody takes for verified."""

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.cli import cli
from autotune.exporting import chosen, export, find_exporter
from autotune.importers.metaschedule import RECORDS, WORKLOADS, read_records
from autotune.importing import proposals_in, read_foreign, write_imported
from autotune.journal import read_journal
from autotune.measurement import Status
from autotune.prior.experience import experience_of
from autotune.recall import recall
from autotune.recognition import plain_trace
from autotune.recordings.finding import find_recordings, read_recording
from autotune.recordings.native import SUFFIX
from autotune.records import TrialRecord
from autotune.tune import Settings, tune
from autotune.tuned_log import best_entries, read_tuned_log, write_entries
from autotune.tuner import WARM_START
from autotune.warm_start import FILE, Proposal, read_warm_start, warm_schedules, write_warm_start
from search_spaces.errors import AutotuneError, BadLog, CannotWrite
from search_spaces.registry import load_file
from tests.support.foreign import write_sample

tuned = load_file(Path(__file__).parents[1] / "support" / "tuned.py")
recorded = load_file(Path(__file__).parents[1] / "support" / "recorded.py")
AXES = {"M": 64, "N": 32, "K": 64}


def invoke(*arguments):
    return CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def matmul():
    return tuned.task_on(tuned.H200, "matmul", M=1024, N=1024, K=1024)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A database of two winners, of different sketches, and the winners."""
    pytest.importorskip("tvm")
    entries = [
        tuned.entry_on(tuned.CPU, "matmul", "tvm.matmul_packed", axes=AXES, seconds=2e-5),
        tuned.entry_on(tuned.CPU, "matmul", "tvm.metaschedule", axes={**AXES, "M": 32}, seconds=1e-5),
    ]
    out = tmp_path_factory.mktemp("database") / "out"
    export(entries, "tvm", out)
    (found,) = out.glob(f"*/*/{RECORDS}")
    return found.parent, entries


@pytest.fixture(scope="module")
def imported(database):
    """What is imported of it."""
    return read_foreign(database[0])


def test_a_cache_of_triton_tells_times_and_failures(tmp_path):
    (recording,) = read_foreign(write_sample("triton", tmp_path), "NVIDIA H200").content.recordings
    assert (recording.kernel, recording.device) == ("mm", "NVIDIA H200")
    assert recording.status == (Status.OK, Status.OK, Status.LAUNCH_ERROR)
    assert recording.seconds[:2].tolist() == pytest.approx([1e-3, 5e-4])
    assert recording.deviation[0] == pytest.approx(1e-4 * 2 / 1.6832)
    assert recording.space.schedules[0].knobs == {
        **{"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 32, "GROUP_M": 8},
        **{"num_warps": 8, "num_stages": 3},
    }


def test_an_engine_s_file_tells_configurations_by_rows_and_no_times(tmp_path):
    content = read_foreign(write_sample("fused_moe", tmp_path)).content
    assert not content.recordings
    assert [p.axes for p in content.proposals] == [{"M": m, "E": 8, "N": 7168} for m in (1, 64, 4096)]
    last = content.proposals[-1]
    assert (last.device, last.dtype, last.seconds) == ("NVIDIA H200", "float8_e4m3fn", None)
    tiles = {"block_m": 128, "block_n": 256, "block_k": 64, "group": 8}
    assert last.knobs == {**tiles, "num_warps": 8, "num_stages": 4}


@pytest.mark.parametrize("name", ["triton", "fused_moe", "kernel_tuner", "t4"])
def test_what_a_sketch_has_knobs_for_starts_a_search(name, tmp_path, matmul):
    proposals = proposals_in(write_sample(name, tmp_path))
    schedules, _ = warm_schedules(matmul, proposals, 16)
    assert schedules
    assert len(set(schedules)) == len(schedules)
    for schedule in schedules:
        assert matmul.space.why_not(schedule) is None
        assert any(all(schedule.knobs[k] == v for k, v in p.knobs.items() if k in schedule.knobs) for p in proposals)


def test_the_most_like_and_the_fastest_come_first(tmp_path, matmul):
    far, near = (Proposal({"block_m": m, "block_n": 64}, "x", axes={"M": m * 16}) for m in (16, 64))
    slow, fast = (Proposal({"block_m": m, "block_n": 64}, "x", seconds=s) for m, s in ((32, 2.0), (128, 1.0)))
    assert [s["block_m"] for s in warm_schedules(matmul, [far, near], 2)[0]] == [64, 16]
    assert [s["block_m"] for s in warm_schedules(matmul, [slow, fast], 2)[0]] == [128, 32]
    assert len(warm_schedules(matmul, [slow, fast], 1)[0]) == 1


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({"bx": 4, "by": 2}, "no sketch of matmul has its parameters (bx, by)"),
        ({"block_m": 48, "block_n": 64}, "block_m=48 is no value of any sketch with that knob"),
        ({"block_m": 256, "block_n": 256, "block_k": 128, "num_stages": 6}, "has no legal schedule with these values"),
        ({"sketch": "triton.nothing", "block_m": 64}, "no sketch of matmul has its parameters (block_m)"),
    ],
)
def test_what_cannot_be_mapped_is_said_once(matmul, knobs, why):
    schedules, reasons = warm_schedules(matmul, [Proposal(knobs, "x")] * 3, 8)
    assert schedules == []
    (line,) = reasons
    assert line.startswith("3 of 3 proposals: ")
    assert line.endswith(why)


def test_an_import_is_one_folder_that_a_prior_and_a_search_read(tmp_path, matmul):
    files = [write_sample(name, tmp_path) for name in ("triton", "fused_moe", "kernel_tuner", "t4")]
    said = invoke("import", *files, "--device", "NVIDIA H200", "--out", tmp_path / "out").output
    assert "mm.autotune.json, autotune cache of Triton: 3 measured configurations, 2 warm starts" in said
    assert "none of it verified here" in said
    assert len(find_recordings([tmp_path / "out"], tmp_path)) == 3
    assert proposals_in(tmp_path / "out") == read_warm_start(tmp_path / "out" / FILE)
    assert warm_schedules(matmul, proposals_in(tmp_path / "out"), 4)[0]
    for path in (tmp_path / "out").glob(f"*{SUFFIX}"):
        recording = read_recording(path)
        assert path.name == f"{recording.name}{SUFFIX}"
        assert experience_of(recording, None).credit["source"]


def test_a_folder_that_is_taken_is_left_alone(tmp_path):
    source = read_foreign(write_sample("triton", tmp_path))
    with pytest.raises(CannotWrite, match="is there already"):
        write_imported(tmp_path, [source])
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite):
        write_imported(tmp_path / "file", [source])


def test_two_recordings_of_one_name_are_two_files(tmp_path):
    source = read_foreign(write_sample("triton", tmp_path))
    written = write_imported(tmp_path / "out", [source, source])
    assert len(written) == len(set(written)) == 3


def test_a_database_gives_the_schedules_that_were_exported(database, imported, tmp_path):
    entries, content = database[1], imported.content
    assert content.left_out == ()
    assert [recall(e).schedule for e in content.entries] == [recall(e).schedule for e in entries]
    for found, was in zip(content.entries, entries, strict=True):
        assert found.task.workload == was.task.workload
        assert (found.device.name, found.samples) == (was.device.name, was.samples)
        assert found.unverified
    assert [r.workload for r in content.recordings] == [e.task.workload for e in entries]
    write_imported(tmp_path / "out", [imported])
    assert read_tuned_log(tmp_path / "out" / "tuned-log.json").entries == content.entries
    assert [p.knobs for p in proposals_in(tmp_path / "out")] == [e.schedule for e in content.entries]


def test_a_workload_that_is_none_of_ours_is_left_out(database, tmp_path):
    folder, _ = database
    (tmp_path / RECORDS).write_bytes((folder / RECORDS).read_bytes())
    lines = [json.loads(line) for line in (folder / WORKLOADS).read_text().splitlines()]
    (tmp_path / WORKLOADS).write_text("".join(json.dumps(["1", "code"]) + "\n" for _ in lines))
    with pytest.raises(BadLog, match=r"no operator here is a function of float32 64x64, float32 64x32"):
        read_foreign(tmp_path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_to_a_database_is_read_or_one_line(database, tmp_path_factory, data):
    folder, _ = database
    place = tmp_path_factory.mktemp("damaged")
    whole = bytearray((folder / RECORDS).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    (place / RECORDS).write_bytes(whole)
    try:
        groups, left_out = read_records(place, ["1"] * 4)
        assert all(plain_trace(*trace) for rows in groups.values() for _, trace in rows)
    except (AutotuneError, msgspec.MsgspecError, ValueError) as error:
        left_out = [str(error)]
    assert not any("\n" in line for line in left_out)


def test_an_import_is_never_preferred_to_what_was_measured_here_nor_exported():
    mine = tuned.entry_on(tuned.H200, "matmul", "triton.matmul_tiled", axes=AXES, seconds=2e-5)
    foreign = msgspec.structs.replace(mine, seconds=1e-9, samples=(1e-9,), raced=True, source="a file")
    assert best_entries([foreign, mine]) == (mine,)
    refused = chosen([foreign], find_exporter("kernel-tuner")).refused
    assert "nobody verified it" in refused[0]
    held = msgspec.structs.replace(foreign, held=True)
    assert best_entries([held, mine]) == (held,)


def test_verify_marks_what_holds_here(imported, tmp_path):
    log, out = tmp_path / "log.json", tmp_path / "verified.json"
    write_entries(log, imported.content.entries[:1])
    done = invoke("verify", log, "--top", 1, "--tolerance", 1e6, "--out", out, "--json")
    states = [row["state"] for row in json.loads(done.output)]
    assert set(states) <= {"holds", "slower"}
    held = read_tuned_log(out).entries
    assert len(held) == states.count("holds")
    for entry in held:
        assert not entry.unverified
        assert entry.source.startswith("MetaSchedule database")
        assert entry.device == tuned.CPU
        assert entry.environment.versions


def test_a_search_measures_its_warm_start_first_and_says_so(tmp_path):
    task = recorded.recorded_task()
    values = dict.fromkeys(recorded.KNOBS, 16)
    warm, _ = warm_schedules(task, [Proposal(values, "x"), Proposal({**values, "k1": 32}, "x")], 8)
    assert [s.knobs["k1"] for s in warm] == [16, 32]
    settings = Settings(
        strategy="random", trials=12, jobs=2, device=recorded.DEVICE_NAME, race=False, warm=(*warm, task.default)
    )
    tune(task, settings, tmp_path)
    trials = [r for r in read_journal(tmp_path) if isinstance(r, TrialRecord)]
    first = [(dict(r.schedule), r.chooser) for r in trials[:3]]
    assert sorted(first, key=str) == sorted(
        [(dict(task.default.items), ""), *((dict(s.items), WARM_START) for s in warm)], key=str
    )
    assert len(trials) == len({str(r.schedule) for r in trials}) == 12
    assert all(r.chooser != WARM_START for r in trials[3:])


def test_run_says_what_became_of_a_warm_start(tmp_path):
    pytest.importorskip("tvm")
    write_warm_start(tmp_path / FILE, [Proposal({"block_m": 32, "block_n": 32}, "x"), Proposal({"bx": 1}, "x")])
    task = ("--op", "matmul", "--target", "llvm -num-cores=2", "--shape", "M=64,N=64,K=64", "--sketch", "tvm.")
    options = ("--strategy", "random", "--compile-only", "--trials", 4, "--warm-start", tmp_path)
    said = invoke("run", *task, *options).output
    assert "left out of the warm start: 1 of 2 proposals: no sketch of matmul has its parameters (bx)" in said
    assert "starting from 1 schedules that 2 proposals" in said


def test_a_warm_start_of_tomorrow_is_told(tmp_path):
    write_warm_start(tmp_path / FILE, [Proposal({"block_m": 1}, "x")])
    data = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**data, "schema": "warm-start/2"}))
    with pytest.raises(BadLog, match="this version reads warm-start/1"):
        read_warm_start(tmp_path / FILE)
