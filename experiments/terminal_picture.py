"""The picture of a run in the README, drawn by `python experiments/terminal_picture.py docs/run.svg`.

Runs the command and draws what it printed; its times are those of the machine that draws it.
"""

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from autotune.environment import with_variables

WORDS = ("run", "--op", "matmul", "--target", "llvm", "--shape", "M=512,N=512,K=512")
WIDTH = 112


def main() -> None:
    """Runs, and draws."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "autotune", *WORDS],
            cwd=folder,
            env=with_variables(FORCE_COLOR="1", COLUMNS=str(WIDTH), PYTHONPATH=str(Path(__file__).parents[1])),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        shown = done.stdout.replace(f"{Path(folder).resolve()}/", "")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ autotune {' '.join(WORDS)}", style="bold"))
    console.print(Text.from_ansi(shown.rstrip()))
    console.save_svg(sys.argv[1], title="autotune run")


if __name__ == "__main__":
    main()
