"""Segments, packed or not, are one journal: nothing lost, nothing twice, whatever moment a kill chose."""

import gzip
import shutil

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune import journal as journal_module
from autotune import segments
from autotune.commands.compact import command
from autotune.journal import FILE, Journal, load_runs, read_journal, read_on
from autotune.records import TrialRecord
from autotune.segments import LineReader, lines, pack, parts
from autotune.trial_table import frame
from search_spaces.errors import BadLog, CannotWrite
from tests.support.journals import measurements, race_of, run_record, write_journal
from tests.support.recorded import tune_recorded

SMALL = 4096


@pytest.fixture(autouse=True)
def small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", SMALL)
    monkeypatch.setattr(journal_module, "SEGMENT_BYTES", SMALL)


@pytest.fixture(scope="module")
def records():
    made = measurements(60)
    trials = [TrialRecord.of("r1", number, float(number), m, "prior", 1e-3) for number, m in enumerate(made)]
    return [run_record(60), *trials, race_of(made)]


def write(folder, records):
    with Journal(folder) as journal:
        for record in records:
            journal.append(record)


def compact(folder):
    with Journal(folder) as journal:
        return journal.compact()


def names(folder):
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("journal"))


def test_segments_are_closed_while_writing_and_read_as_one(tmp_path, records):
    write(tmp_path, records)
    assert len(parts(tmp_path / FILE)) > 3
    assert all(part.size < 2 * SMALL for part in parts(tmp_path / FILE)[:-1])
    assert list(read_journal(tmp_path)) == records


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(1, 25), st.booleans()), min_size=1, max_size=6))
def test_what_was_written_is_read_whenever_it_was_compacted(tmp_path, records, stretches):
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    written = []
    for count, packed in stretches:
        written += records[len(written) :][:count]
        write(folder, written[len(list(read_journal(folder)) if folder.exists() else []) :])
        if packed:
            compact(folder)
        assert list(read_journal(folder)) == written


def test_a_second_compaction_changes_nothing_and_equal_journals_give_equal_files(tmp_path, records):
    for folder in (tmp_path / "one", tmp_path / "other"):
        write(folder, records)
        assert compact(folder) > 0
        assert compact(folder) == 0
        assert not [n for n in names(folder) if n.endswith(".partial")]
    files = names(tmp_path / "one")
    assert files == names(tmp_path / "other")
    assert all((tmp_path / "one" / f).read_bytes() == (tmp_path / "other" / f).read_bytes() for f in files)


def test_places_stay_what_they_are(tmp_path, records):
    write(tmp_path, records)
    before = list(lines(tmp_path / FILE))
    open_before = LineReader(tmp_path / FILE)
    open_before.line(before[5][0])
    compact(tmp_path)
    assert list(lines(tmp_path / FILE)) == before
    reader = LineReader(tmp_path / FILE)
    for place, line in [*before[::-7], *before[::5]]:
        assert reader.line(place) == line
        assert open_before.line(place) == line


def test_reading_goes_on_over_a_compaction(tmp_path, records):
    taken, place = [], 0
    for end in range(0, len(records) + 1, 9):
        write(tmp_path, records[len(taken) : end])
        if end % 2:
            compact(tmp_path)
        for after, record in read_on(tmp_path, place):
            taken.append(record)
            place = after
        assert taken == records[:end]


class Killed(BaseException):
    """Where a SIGKILL would have ended the process."""


@pytest.mark.parametrize("step", range(12))
def test_a_kill_at_any_step_of_a_compaction_leaves_every_record_once(tmp_path, records, monkeypatch, step):
    """Every step changes the folder by one call, so that these are all the moments there are."""
    write(tmp_path, records[:40])
    steps = []

    def counted(name):
        real = getattr(segments.Path, name)

        def call(*arguments, **named):
            if arguments[0].name.startswith("journal"):
                steps.append(name)
                if len(steps) > step:
                    raise Killed
            return real(*arguments, **named)

        monkeypatch.setattr(segments.Path, name, call)

    for name in ("rename", "replace", "unlink"):
        counted(name)
    with pytest.raises(Killed):
        compact(tmp_path)
    monkeypatch.undo()
    assert list(read_journal(tmp_path)) == records[:40]
    write(tmp_path, records[40:])
    compact(tmp_path)
    assert list(read_journal(tmp_path)) == records


def test_a_kill_between_closing_a_segment_and_the_next_line_is_no_loss(tmp_path, records):
    write(tmp_path, records[:20])
    segments.rotate(tmp_path / FILE)
    assert not (tmp_path / FILE).exists()
    assert list(read_journal(tmp_path)) == records[:20]
    assert len(load_runs(tmp_path)[0].trials) == 19


def test_a_torn_last_line_is_left_out_and_then_cut_off(tmp_path, records):
    write(tmp_path, records[:20])
    compact(tmp_path)
    write(tmp_path, records[20:22])
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"kind":"trial","run":"r')
    assert list(read_journal(tmp_path)) == records[:22]
    write(tmp_path, records[22:])
    assert list(read_journal(tmp_path)) == records


@pytest.mark.parametrize("damage", ["byte", "cut", "empty", "gone", "foreign"])
def test_a_damaged_segment_is_one_clear_line(tmp_path, records, damage):
    write(tmp_path, records)
    compact(tmp_path)
    victim = parts(tmp_path / FILE)[2].path
    data = victim.read_bytes()
    if damage == "byte":
        middle = len(data) // 2
        victim.write_bytes(data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :])
    elif damage == "cut":
        victim.write_bytes(data[: len(data) // 2])
    elif damage == "empty":
        victim.write_bytes(b"")
    elif damage == "gone":
        victim.unlink()
    else:
        victim.write_bytes(gzip.compress(b'{"kind":"something"}\n'))
    for read in (lambda: list(read_journal(tmp_path)), lambda: load_runs(tmp_path), lambda: frame(tmp_path)):
        with pytest.raises(BadLog) as error:
            read()
        assert "\n" not in str(error.value)
        assert error.value.hint


def test_a_plain_segment_that_ends_within_a_line_is_damaged(tmp_path, records):
    write(tmp_path, records)
    first = parts(tmp_path / FILE)[0].path
    first.write_bytes(first.read_bytes()[:-5])
    with pytest.raises(BadLog, match="ends within a line"):
        list(read_journal(tmp_path))


def test_the_command_packs_and_says_what_it_saved(tmp_path):
    write_journal(tmp_path / "run", 60)
    before = list(read_journal(tmp_path / "run"))
    run = CliRunner()
    assert ", now 0.0 MiB" in run.invoke(command, [str(tmp_path / "run")], catch_exceptions=False).stdout
    assert "packed already" in run.invoke(command, [str(tmp_path / "run")], catch_exceptions=False).stdout
    assert list(read_journal(tmp_path / "run")) == before
    with pytest.raises(BadLog, match="no journal in"):
        run.invoke(command, [str(tmp_path)], catch_exceptions=False)


def test_a_run_that_goes_on_is_not_compacted(tmp_path):
    write_journal(tmp_path, 20)
    with Journal(tmp_path), pytest.raises(CannotWrite, match=r"another run writes to .*process \d+ \("):
        CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)


def test_a_compacted_run_is_continued_as_one_that_was_not(tmp_path):
    for folder in (tmp_path / "plain", tmp_path / "compacted"):
        tune_recorded(folder, 17, "evolutionary")
        if folder.name == "compacted":
            compact(folder)
        tune_recorded(folder, 34, "evolutionary")
    (plain,), (compacted,) = load_runs(tmp_path / "plain"), load_runs(tmp_path / "compacted")
    tried = [{s: m.seconds for s, m in log.trials.items()} for log in (plain, compacted)]
    assert tried[0] == tried[1]
    assert len(tried[1]) == 34
    assert plain.races[-1].winner == compacted.races[-1].winner


def test_packing_leaves_what_is_packed_alone(tmp_path, records):
    write(tmp_path, records)
    compact(tmp_path)
    stamps = {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("*.gz")}
    assert pack(tmp_path / FILE) == 0
    assert stamps == {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("*.gz")}
