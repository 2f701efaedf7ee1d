"""File systems that are full, read-only or gone: one clear line, and a journal with which the run goes on."""

import contextlib
import shutil

import pytest

from autotune.measurement import Status
from tests.support.faults import RESUME, TUNE, end, intact, mounted, remount, trials_in, wait_until, whole


def test_a_full_disk_ends_the_run_in_one_line_and_it_goes_on_when_there_is_room(place):
    disk = place.folder / "disk"
    with mounted(disk, "16k"):
        folder = disk / "run"
        _, err = place.autotune(*TUNE, "--out", folder, code=7)
        assert "cannot be written (No space left on device); make room and --resume" in err
        assert len(err.strip().splitlines()) == 1
        before = intact(folder)
        assert before
        remount(disk, "size=4m")
        assert place.resumed(folder)[: len(before)] == before


def test_a_file_size_limit_is_a_full_disk(place):
    """Counted by the shell in blocks of 512 bytes."""
    _, err = place.autotune(*TUNE, "--out", place.run, code=7, limits="-S -f 16")
    assert "cannot be written (File too large); make room and --resume" in err
    before = intact(place.run)
    assert before
    assert place.resumed()[: len(before)] == before


def test_a_read_only_journal_is_read_and_not_written_to(place):
    disk = place.folder / "disk"
    with mounted(disk, "4m"):
        folder = disk / "run"
        place.autotune(*TUNE, "--out", folder)
        trials = whole(folder)
        remount(disk, "ro")
        _, err = place.autotune(*RESUME, folder, code=7)
        assert "cannot be written (Read-only file system)" in err
        assert len(err.strip().splitlines()) == 1
        for command in ("best", "show", "explain"):
            place.autotune(command, folder)
        _, err = place.autotune("compact", folder, code=7)
        assert "Read-only file system" in err
        assert intact(folder) == trials


def test_a_temporary_folder_that_fills_up_ends_the_run_and_fails_no_candidate(place):
    with mounted(place.scratch, "64k"):
        run = place.start(*TUNE, "--out", place.run)
        wait_until(lambda: trials_in(place.run) >= 3)
        with contextlib.suppress(OSError):
            (place.scratch / "filler").write_bytes(bytes(1 << 20))
        _, err = end(run, 7)
        assert "no room for what is built; make room or set TMPDIR, and --resume" in err
        assert len(err.strip().splitlines()) == 1
        before = intact(place.run)
    assert {t.status for t in before} == {Status.OK}
    assert place.resumed()[: len(before)] == before


def test_a_temporary_folder_without_room_is_passed_over(place):
    with mounted(place.scratch, "4k"):
        (place.scratch / "filler").write_bytes(bytes(4096))
        place.autotune(*TUNE, "--out", place.run)
    assert {t.status for t in whole(place.run)} == {Status.OK}


def test_a_folder_that_is_removed_ends_the_run_in_one_line(place):
    place.play("pause")
    run = place.start(*TUNE, "--out", place.run)
    wait_until(lambda: trials_in(place.run) >= 2)
    shutil.rmtree(place.run)
    _, err = end(run, 7)
    assert "was removed while the run wrote to it" in err
    assert len(err.strip().splitlines()) == 1
    assert not place.run.exists()


@pytest.mark.parametrize("what", ["journal.jsonl", "lock"])
def test_what_is_no_journal_is_not_overwritten(place, what):
    """A folder of that name stands where a file of the run should be."""
    (place.run / what).mkdir(parents=True)
    _, err = place.autotune(*TUNE, "--out", place.run, code=7)
    assert "Is a directory" in err
