"""Suite files: those that come with the package name real workloads; others are refused in a line."""

import pytest

from autotune.benchmark.suite import FOLDER, cases, load_suite, shipped, suites_for
from autotune.task_options import parse_shape
from search_spaces.errors import AutotuneError, UnknownName
from search_spaces.task import find_operator


def workload_of(case, kind):
    return find_operator(case.op).workload(kind, case.dtype, **parse_shape(case.shape))


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_suite_names_workloads_of_its_targets_once_each(name):
    suite = load_suite(name)
    assert suite.name == name
    assert suite.title
    assert suite.targets
    for kind in suite.targets:
        found = [workload_of(case, kind) for case in cases(suite)]
        assert found
        assert len(set(found)) == len(found)
    slugs = [case.slug for case in cases(suite)]
    assert len(set(slugs)) == len(slugs)


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_suite_has_a_mark(name):
    mark = load_suite(name).mark
    assert any(part is not None for part in (mark.least, mark.geometric_mean, mark.copy_share))


def test_each_dtype_is_a_case_of_its_own(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(
        'title = "t"\ntargets = ["llvm"]\n[[workloads]]\nop = "softmax"\n'
        'dtypes = ["float16", "float32"]\nshapes = ["M=4,N=4", "M=8,N=8"]\n'
    )
    suite = load_suite(str(path))
    assert [(c.shape, c.dtype) for c in cases(suite)] == [
        ("M=4,N=4", "float16"),
        ("M=8,N=8", "float16"),
        ("M=4,N=4", "float32"),
        ("M=8,N=8", "float32"),
    ]
    assert not suite.mark.counts_copy(1e12)


@pytest.mark.parametrize(
    "text",
    [
        "title = ",
        'title = "t"\ntargets = ["llvm"]\n',
        'title = "t"\ntargets = ["llvm"]\nworkloads = []\nmarks = 1\n',
        'title = "t"\ntargets = ["metal"]\nworkloads = []\n',
    ],
)
def test_what_is_no_suite_is_refused(text, tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(AutotuneError) as error:
        load_suite(str(path))
    assert str(path) in str(error.value)
    assert "\n\n" not in str(error.value)


def test_an_unknown_suite_is_named_with_its_neighbours(tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'matmul'"):
        load_suite("matmull")
    with pytest.raises(AutotuneError, match="cannot be read"):
        load_suite(str(tmp_path / "none.toml"))


def test_suites_follow_the_target():
    every = [load_suite(path.stem) for path in FOLDER.glob("*.toml")]
    for kind in ("cuda", "llvm"):
        assert {s.name for s in suites_for((), kind)} == {s.name for s in every if kind in s.targets}
    with pytest.raises(AutotuneError, match="cpu is for target llvm"):
        suites_for(("cpu",), "cuda")
