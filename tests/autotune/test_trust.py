"""Logs are data: no command that reads one imports what it names, unless the user names it too."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.journal import FILE
from autotune.sanitized import read_job

HERE = Path(__file__).parents[2]
# What a stranger's operator does when it is imported.
TRAP = "from pathlib import Path\nPath('taken-over').touch()\nraise SystemExit(77)\n"
READERS = (
    ("run", "--resume", "run", "--mlflow", "none"),
    ("run", "--resume", "strategy", "--mlflow", "none"),
    ("run", "--resume", "run", "--op", "matmul", "--trials", "1", "--compile-only", "--warm-start", "run"),
    ("best", "run"),
    ("best", "run/tuned-log.json"),
    ("show", "run"),
    ("explain", "run"),
    ("report", "run", "--out", "page.html"),
    ("report", "strategy", "--out", "page.html"),
    ("explain", "strategy"),
    ("verify", "run"),
    ("verify", "run/tuned-log.json", "--policy", "refuse"),
    ("export", "run", "--format", "c-header", "--out", "exported"),
    ("export", "run", "--format", "artifact", "--out", "exported"),
    ("merge", "run", "run/tuned-log.json", "--out", "merged.json"),
    ("diff", "run/tuned-log.json", "run/tuned-log.json"),
    ("import", "run/tuned-log.json", "--out", "imported"),
    ("train-prior", "run", "--out", "prior.zip", "--quiet"),
)


@pytest.fixture(scope="module")
def strangers_folder(tmp_path_factory):
    """A run of somebody's own operator, and beside it a file of the operator's name that must not be imported."""
    folder = tmp_path_factory.mktemp("strangers")
    shutil.copy(HERE / "tests" / "support" / "toy.py", folder / "theirs.py")
    words = ["run", "--op", "theirs.py:Toy", "--strategy", "random", "--trials", "6", "--out", "run"]
    subprocess.run(
        [sys.executable, "-m", "autotune", *words, "--quiet", "--mlflow", "none"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        check=True,
        timeout=240,
    )
    (folder / "theirs.py").write_text(TRAP)
    # A second run, of an operator of this project, that names the file as its strategy.
    (folder / "strategy").mkdir()
    journal = (folder / "run" / FILE).read_text().replace('"reference":"theirs.py:Toy"', '"reference":"matmul"')
    (folder / "strategy" / FILE).write_text(journal.replace('"strategy":"random"', '"strategy":"theirs.py:Toy"'))
    return folder


def told(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["autotune", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr()


@pytest.mark.parametrize("arguments", READERS, ids=" ".join)
def test_a_log_has_nothing_imported(arguments, strangers_folder, tmp_path, monkeypatch, capsys):
    shutil.copytree(strangers_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    code, shown = told(arguments, monkeypatch, capsys)
    assert not (tmp_path / "taken-over").exists()
    assert code != 77
    assert "Traceback" not in shown.err + shown.out


@pytest.mark.parametrize("arguments", [("run", "--resume", "run", "--mlflow", "none"), ("verify", "run")], ids=" ".join)
def test_what_would_import_it_says_how_to_trust_it(arguments, strangers_folder, tmp_path, monkeypatch, capsys):
    shutil.copytree(strangers_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    _, shown = told(arguments, monkeypatch, capsys)
    assert "which would be imported; trust it with --op 'theirs.py:Toy'" in shown.err + shown.out
    code, _ = told((*arguments, "--op", "theirs.py:Toy"), monkeypatch, capsys)
    assert (tmp_path / "taken-over").exists()
    assert code == 77


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666], ids=oct)
def test_a_job_that_others_can_reach_is_not_unpickled(mode, tmp_path):
    job = tmp_path / "job"
    job.write_bytes(pickle.dumps("a job"))
    job.chmod(mode)
    with pytest.raises(PermissionError, match="not private"):
        read_job(job)
    job.chmod(0o600)
    assert read_job(job) == "a job"
