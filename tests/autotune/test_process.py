"""Children wherever the temporary folder lies."""

import os
import subprocess
import sys
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


def test_a_temporary_folder_of_a_long_name_is_none_for_sockets(tmp_path):
    long = tmp_path / ("a" * 90)
    long.mkdir()
    (tmp_path / "script.py").write_text(SCRIPT)
    path = str(Path(__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(long), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.stdout.split() == ["3", "True"], run.stderr
