"""Scratch folders are private, gone with the run, and those of killed runs gone with the next."""

import os
import stat
import subprocess
import sys

from autotune.scratch import _PREFIX, scratch_folder


def test_a_folder_is_private_and_goes_with_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_folder() as folder:
        (folder / "binary").write_text("")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def test_what_a_dead_process_left_is_swept_and_what_a_living_one_has_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    dead, living, foreign = (
        tmp_path / name for name in (f"{_PREFIX}{child.pid}-x", f"{_PREFIX}{os.getpid()}-x", "autotune-notes-x")
    )
    for folder in (dead, living, foreign):
        folder.mkdir()
    with scratch_folder():
        assert not dead.exists()
        assert living.exists()
        assert foreign.exists()
