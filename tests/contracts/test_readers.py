"""What every reader of a stranger's file must keep: whole ones are read, damaged ones read or told in one line."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
# What an experiment imports from beside itself.
sys.path.append(str(ROOT / "experiments"))
for needed in ("tvm", "triton", "torch"):
    pytest.importorskip(needed)

from fuzz_readers import outcome  # noqa: E402
from fuzzing.damage import Damage  # noqa: E402
from fuzzing.readers import READERS, Reader  # noqa: E402

FEW = settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.share > 0.1])
def test_a_whole_file_is_read_and_a_damaged_one_read_or_told(name, tmp_path):
    reader = READERS[name]
    damage = Damage(whole := reader.whole(tmp_path))
    path = tmp_path / reader.file
    path.write_bytes(whole)
    assert outcome(reader, path) == "read"

    @FEW
    @given(st.data())
    def damaged(data):
        path.write_bytes(damage.drawn(data.draw))
        assert outcome(reader, path) in ("read", "told")

    damaged()


def test_a_fault_is_found(tmp_path):
    def fails(path):
        return path.read_bytes()[7]

    (tmp_path / "file").write_bytes(b"short")
    assert outcome(Reader("file", lambda _: b"", fails), tmp_path / "file").startswith("IndexError in test_readers.py")
