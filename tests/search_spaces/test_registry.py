import sys

import pytest

from search_spaces import registry
from search_spaces.errors import AutotuneError, MissingDependency, UnknownName


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """A package of plug-ins on the path, and a module outside it."""
    folder = tmp_path / "plugin_folder"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "base.py").touch()
    (folder / "second.py").write_text("import imported_by_no_one\n")
    (folder / "first.py").write_text("THING = 1\nOther = 4\n")
    (folder / "empty.py").touch()
    (tmp_path / "outside_pyramid").mkdir()
    (tmp_path / "outside_pyramid" / "__init__.py").touch()
    (tmp_path / "outside_pyramid" / "pyx.py").write_text("THING = 2\nOther = 3\n")
    (tmp_path / "outside_pyramid" / "broken.py").write_text("import imported_by_no_one\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "plugin_folder"
    for name in [m for m in sys.modules if m.startswith(("plugin_folder", "outside_pyramid"))]:
        del sys.modules[name]


def test_the_folder_is_the_registry(plugins):
    assert registry.names(plugins) == ("empty", "first", "second")
    assert "plugin_folder.second" not in sys.modules
    assert registry.find(plugins, "first", "thing") == 1


def test_another_attribute_of_a_plug_in_is_named_after_a_colon(plugins):
    assert registry.find(plugins, "first:Other", "thing") == 4


def test_a_dotted_module_works_in_the_same_place(plugins):
    assert registry.find(plugins, "outside_pyramid.pyx", "thing") == 2
    assert registry.find(plugins, "outside_pyramid.pyx:Other", "thing") == 3


@pytest.mark.parametrize("name", ["frist", "outside_pyramid.nothing", "nowhere.at.all", ".first"])
def test_an_unknown_name_lists_what_there_is(plugins, name):
    with pytest.raises(UnknownName, match="known: empty, first, second"):
        registry.find(plugins, name, "thing")


def test_a_missing_import_of_a_plug_in_is_not_an_unknown_name(plugins):
    for name in ("second", "outside_pyramid.broken"):
        with pytest.raises(MissingDependency, match="pip install imported_by_no_one"):
            registry.find(plugins, name, "thing")


def test_a_module_without_the_attribute_says_where_to_define_it(plugins):
    with pytest.raises(AutotuneError, match=r"define it in .*empty\.py"):
        registry.find(plugins, "empty", "thing")
    with pytest.raises(AutotuneError, match="holds no thing called Absent"):
        registry.find(plugins, "outside_pyramid.pyx:Absent", "thing")


def test_a_file_is_loaded_once_under_a_name_of_its_own(plugins, tmp_path):
    path = tmp_path / "json.py"
    path.write_text("class Mine: ...\nTHING = Mine\n")
    mine = registry.find(plugins, f"{path}:Mine", "thing")
    assert registry.find(plugins, str(path), "thing") is mine
    assert sys.modules["json"].__name__ == "json"
    assert mine.__module__ in sys.modules


def test_a_file_that_fails_is_forgotten(plugins, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("1 / 0\n")
    with pytest.raises(AutotuneError, match="ZeroDivisionError"):
        registry.load_file(path)
    path.write_text("THING = 1\nOther = 4\n")
    assert registry.find(plugins, str(path), "thing") == 1
    with pytest.raises(AutotuneError, match="no file"):
        registry.load_file(tmp_path / "absent.py")


def test_optional_packages():
    assert registry.optional("json", "cuda").__name__ == "json"
    assert registry.available("json")
    assert not registry.available("imported_by_no_one")
    with pytest.raises(MissingDependency, match=r"pip install 'kernel-autotune\[cuda\]'"):
        registry.optional("imported_by_no_one.inner", "cuda")
