"""What every importer must keep: its own files are read, damaged and hostile ones are told in one line."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.importers.base import Importer
from autotune.importing import IMPORTERS, find_importer, read_foreign, write_imported
from search_spaces import registry
from search_spaces.errors import AutotuneError, BadLog
from tests.support.foreign import FILES, SAMPLES, write_sample

NAMES = registry.names(IMPORTERS)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def told(path):
    """The line that says why a file cannot be read and written; "" where it can."""
    line = ""
    try:
        source = read_foreign(path)
        write_imported(path.parent / f"out-{len(list(path.parent.iterdir()))}", [source])
    except AutotuneError as error:
        line = str(error)
    assert "\n" not in line
    return line


def places(data, path=()):
    """Every place in plain data."""
    yield path
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(value, (*path, key))


def replaced(data, path, value):
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


@pytest.mark.parametrize("name", NAMES)
def test_it_is_described_and_has_a_sample(name):
    importer = find_importer(name)
    assert isinstance(importer, Importer)
    assert importer.summary
    assert name in SAMPLES or name == "metaschedule"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_taken_by_one_importer_and_read(name, tmp_path):
    path = write_sample(name, tmp_path)
    takers = [n for n in NAMES if find_importer(n).takes(path, SAMPLES[name])]
    assert takers == [name]
    content = read_foreign(path).content
    assert content.proposals
    assert all(p.source and path.name in p.source for p in content.proposals)
    assert all(r.provenance["foreign"] for r in content.recordings)


@FUZZ
@given(name=st.sampled_from(sorted(SAMPLES)), data=st.data())
def test_any_value_in_any_place_is_read_or_one_line(tmp_path_factory, name, data):
    place = data.draw(st.sampled_from(list(places(SAMPLES[name]))))
    folder = tmp_path_factory.mktemp("value")
    (folder / FILES[name]).write_text(json.dumps(replaced(SAMPLES[name], place, data.draw(ANYTHING))))
    told(folder / FILES[name])


@FUZZ
@given(name=st.sampled_from(sorted(SAMPLES)), data=st.data())
def test_any_damage_is_read_or_one_line(tmp_path_factory, name, data):
    whole = bytearray(json.dumps(SAMPLES[name]).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    folder = tmp_path_factory.mktemp("damage")
    (folder / FILES[name]).write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    told(folder / FILES[name])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 500_000,
        '{"cache":' * 100_000,
        '{"a": 1}',
        "3",
        '{"1": {"BLOCK_SIZE_M": 1' + "0" * 5000 + "}}",
        "\ud800",
    ],
)
def test_what_is_in_no_format_is_told(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(BadLog) as caught:
        read_foreign(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_is_a_folder_is_told(tmp_path):
    for path in (tmp_path / "nothing.json", tmp_path):
        with pytest.raises(BadLog):
            read_foreign(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_huge_number_or_a_control_character_goes_no_further(name, tmp_path):
    for value in (2**70, "\x1b[2J"):
        for place in places(SAMPLES[name]):
            (tmp_path / FILES[name]).write_text(json.dumps(replaced(SAMPLES[name], place, value)))
            assert "\x1b" not in told(tmp_path / FILES[name])
