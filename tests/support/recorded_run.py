"""One whole run on the recorded device, in a process of its own: FOLDER TRIALS STRATEGY."""

import sys
from pathlib import Path

from search_spaces.registry import load_file

if __name__ == "__main__":
    recorded = load_file(Path(__file__).parent / "recorded.py")
    recorded.tune_recorded(sys.argv[1], int(sys.argv[2]), sys.argv[3])
