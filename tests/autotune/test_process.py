"""Children wherever the temporary folder lies, with children of their own, which end with them."""

import os
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = """
import tempfile
from pathlib import Path

from autotune.process import Child


def answering():
    return len


if __name__ == "__main__":
    before = tempfile.gettempdir()
    child = Child(answering, (), Path("child.log"))
    child.send("job", 100.0)
    print(child.answer(), tempfile.gettempdir() == before)
    child.kill()
"""


PARENT = """
import multiprocessing
import time
from pathlib import Path

from autotune.process import Child


def sleeping():
    return sleeper


def sleeper(seconds):
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(seconds,))
    process.start()
    return process.pid


if __name__ == "__main__":
    child = Child(sleeping, (), Path("child.log"))
    child.send(600.0, 100.0)
    print(child.answer(), flush=True)
    child.kill()
"""


def scripted(text, folder, **variables):
    (folder / "script.py").write_text(text)
    return subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **variables},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_temporary_folder_of_a_long_name_is_none_for_sockets(tmp_path):
    long = tmp_path / ("a" * 90)
    long.mkdir()
    run = scripted(SCRIPT, tmp_path, TMPDIR=str(long))
    assert run.stdout.split() == ["3", "True"], run.stderr


def test_a_job_may_start_a_process_which_is_killed_with_the_child(tmp_path):
    run = scripted(PARENT, tmp_path)
    assert run.stdout.strip().isdigit(), run.stdout + run.stderr
    place, until = Path("/proc", run.stdout.strip()), time.monotonic() + 30
    while place.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not place.exists()
