"""What travels to the machines of a cluster: binaries, and plug-ins that were given by file."""

import io
import sys
import zipfile

import pytest

from autotune.generators.base import Artifact, Resources
from autotune.ray_host import Luggage, Packed, adopting, pack, unpack
from autotune.worker import Measure, Prepare, Rounds, relocated
from search_spaces.registry import load_file, loaded_files
from search_spaces.space import Schedule


def built(path, sha256="ab12"):
    return Artifact(str(path), sha256, Resources(registers=3))


def test_a_file_and_a_folder_arrive_as_they_were(tmp_path):
    file, folder = tmp_path / "kernel.so", tmp_path / "kernel"
    file.write_bytes(b"code")
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "kernel.cubin").write_bytes(b"more")
    there = tmp_path / "there"
    there.mkdir()
    one, two = unpack(pack(built(file)), there), unpack(pack(built(folder, "cd34")), there)
    assert (tmp_path / one.path).read_bytes() == b"code"
    assert (tmp_path / two.path / "deep" / "kernel.cubin").read_bytes() == b"more"
    assert (one.sha256, one.resources) == ("ab12", Resources(registers=3))
    file.write_bytes(b"changed")
    assert (tmp_path / unpack(pack(built(file)), there).path).read_bytes() == b"code", "a hash is fetched once"
    assert sorted(p.name for p in there.iterdir()) == ["ab12", "cd34"]


@pytest.mark.parametrize("name", ["../../out", "/out"])
def test_an_archive_leaves_nothing_outside_of_its_folder(tmp_path, name):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, b"code")
    there = tmp_path / "there"
    there.mkdir()
    unpack(Packed(built("out"), buffer.getvalue()), there)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [there / "ab12" / "out"]


def test_binaries_of_a_job_are_moved_and_nothing_else():
    schedule = Schedule((("sketch", "a"),))

    def moved(artifact):
        return built(f"/there/{artifact.path}", artifact.sha256)

    job = relocated(Measure(schedule, built("k"), 1.0), moved)
    assert (job.artifact.path, job.limit) == ("/there/k", 1.0)
    job = relocated(Rounds(((schedule, built("a")), (schedule, built("b"))), 4, 0, True, schedule), moved)
    assert [a.path for _, a in job.entries] == ["/there/a", "/there/b"]
    assert (job.count, job.anchor) == (4, schedule)
    assert relocated(Prepare(), moved) == Prepare()


def test_a_plug_in_of_another_machine_is_found_by_its_path_there(tmp_path):
    there = tmp_path / "there" / "op.py"
    copy = tmp_path / "copy" / "op.py"
    copy.parent.mkdir()
    copy.write_text("place = __file__\n")
    assert adopting({str(there): copy}, lambda value: value, 7) == 7
    module = load_file(there)
    assert module.place == str(copy)
    assert load_file(copy) is module
    assert there.resolve() in loaded_files()
    assert sum(m is module for m in sys.modules.values()) == 2


def test_files_of_one_folder_stay_beside_each_other(tmp_path):
    (tmp_path / "one.py").write_text("NAME = 'one'\n")
    (tmp_path / "two.py").write_text(
        "from pathlib import Path\n"
        "from search_spaces.registry import load_file\n"
        "one = load_file(Path(__file__).parent / 'one.py')\n"
    )
    load_file(tmp_path / "two.py")
    mine = [path for path in loaded_files() if path.parent == tmp_path.resolve()]
    assert [path.name for path in mine] == ["one.py", "two.py"], "what is needed comes first"
    assert Luggage("run", {str(p): p.read_text() for p in mine}).run == "run"
