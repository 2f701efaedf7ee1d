import pytest

from search_spaces.errors import AutotuneError, UnknownName
from search_spaces.target import Target, parse_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("cuda -arch=sm_80", Target("cuda", "sm_80")),
        ("cuda --arch=sm_90a", Target("cuda", "sm_90a")),
        ("hip -arch=gfx942", Target("hip", "gfx942")),
        ("rocm -mcpu=gfx942", Target("hip", "gfx942")),
        ("llvm", Target("llvm")),
        ("llvm -mcpu=skylake-avx512", Target("llvm", "skylake-avx512")),
        ("llvm -mcpu=znver4 -num-cores=8", Target("llvm", "znver4", 8)),
    ],
)
def test_a_target_is_read_and_written(text, target):
    assert parse_target(text) == target
    assert parse_target(str(target)) == target


def test_the_separate_arch_is_the_same_as_the_one_in_the_text():
    assert parse_target("cuda", arch="sm_80") == parse_target("cuda -arch=sm_80") == Target("cuda", "sm_80")
    assert parse_target("cuda -arch=sm_80", arch="sm_80") == Target("cuda", "sm_80")
    assert parse_target("llvm", arch="znver4") == Target("llvm", "znver4")
    with pytest.raises(AutotuneError, match="contradicts"):
        parse_target("cuda -arch=sm_80", arch="sm_90")


def test_the_arch_of_the_device_at_hand_is_the_last_resort():
    assert parse_target("cuda", default_arch="sm_90").arch == "sm_90"
    assert parse_target("cuda -arch=sm_80", default_arch="sm_90").arch == "sm_80"
    with pytest.raises(AutotuneError, match="add for example -arch=sm_80"):
        parse_target("cuda")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown target ''"),
        ("cdua", "did you mean 'cuda'"),
        ("cuda -ach=sm_80", "did you mean '-arch'"),
        ("cuda -arch=sm_81", "did you mean 'sm_8"),
        ("cuda -arch=sm_80aa", "unknown CUDA arch"),
        ("cuda -mcpu=sm_80", "unknown option of target cuda '-mcpu'"),
        ("cuda -arch", "has no value"),
        ("hip", "add for example -arch=gfx942"),
        ("hip -arch=gfx924", "did you mean 'gfx942'"),
        ("hip -arch=gfx1100", "unknown AMD arch"),
        ("rocm -mcpu=gfx942 -arch=gfx90a", "names its arch twice"),
        ("cuda -arch=sm_80 -arch=sm_90", "names its arch twice"),
        ("llvm -num-core=4", "did you mean '-num-cores'"),
        ("llvm -num-cores=many", "not a whole number"),
        ("llvm -num-cores=-1", "not a whole number"),
        ("llvm -num-cores=²", "not a whole number"),
        ("llvm -mcpu='open", "cannot be read"),
    ],
)
def test_a_wrong_target_says_what_is_wrong(text, message):
    with pytest.raises(AutotuneError, match=message.replace("(", r"\(")):
        parse_target(text)


def test_a_target_is_valid_by_construction():
    with pytest.raises(UnknownName):
        Target("rocm")
    with pytest.raises(UnknownName):
        Target("cuda", "sm_1")
