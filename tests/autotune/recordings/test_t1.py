"""T1 files become spaces, and nothing in them is run."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.recordings.expression import Expression
from autotune.recordings.t1 import read_t1
from search_spaces.errors import BadLog


def t1(parameters, conditions):
    return {
        "ConfigurationSpace": {
            "TuningParameters": [{"Name": n, "Type": "int", "Values": v, "Default": 1} for n, v in parameters.items()],
            "Conditions": [{"Expression": e, "Parameters": []} for e in conditions],
        },
        "KernelSpecification": {"KernelName": "stencil", "Language": "CUDA"},
    }


def space(tmp_path, parameters, conditions=()):
    path = tmp_path / "stencil.T1.json"
    path.write_text(json.dumps(t1(parameters, conditions)))
    return read_t1(path)


def test_parameters_and_conditions_span_the_space(tmp_path):
    parameters = {"bx": "[1, 2] + list(range(32, 97, 32))", "by": "[2**i for i in range(0, 4)]", "pad": "[3]"}
    conditions = ["32 <= bx * by <= 256", "by == 1 or (bx + pad - 1) % 2 == 0", "by % (bx / 32) == 0 or bx < 32"]
    found = {(s["bx"], s["by"]) for s in space(tmp_path, parameters, conditions)}
    wanted = {
        (bx, by)
        for bx in (1, 2, 32, 64, 96)
        for by in (1, 2, 4, 8)
        if 32 <= bx * by <= 256 and (by == 1 or (bx + 2) % 2 == 0) and (by % (bx / 32) == 0 or bx < 32)
    }
    assert found == wanted
    assert found


def test_a_condition_without_a_value_is_not_kept(tmp_path):
    assert [s["a"] for s in space(tmp_path, {"a": "[0, 1, 2]"}, ["4 % a == 0"])] == [1, 2]


def test_words_are_values(tmp_path):
    assert [s["order"] for s in space(tmp_path, {"order": "['row', 'column']"}, ["order != 'row'"])] == ["column"]


EVIL = (
    "__import__('os').system('true')",
    "().__class__",
    "open('/etc/passwd')",
    "[i for i in range(10**9)]",
    "9**9**9",
    "2**10000",
    "'a' * 10**9",
    "[1] * 10**9",
    "lambda: 1",
    "[[i for i in range(9)] for j in range(9)]",
    "f'{1}'",
    "a.b",
    "list(range(10**7))",
    "(" * 3000,
    "-" * 5000 + "1",
    "1 if a else 2",
    "[*range(3)]",
    "",
    "\x00",
    "missing",
)


@pytest.mark.parametrize("text", EVIL)
def test_what_is_no_arithmetic_is_refused(tmp_path, text):
    with pytest.raises(BadLog):
        space(tmp_path, {"a": text})


WRONG = {
    "no JSON": "{",
    "no parameters": '{"KernelSpecification": {"KernelName": "x"}}',
    "no values": json.dumps(t1({"a": "[]"}, [])),
    "never kept": json.dumps(t1({"a": "[1, 2]", "b": "[1]"}, ["b > 1"])),
    "a parameter that is not there": json.dumps(t1({"a": "[1, 2]"}, ["c > 1"])),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_one_line(tmp_path, name):
    (tmp_path / "a.json").write_text(WRONG[name])
    with pytest.raises(BadLog) as caught:
        read_t1(tmp_path / "a.json")
    assert "\n" not in str(caught.value)


NUMBERS = st.integers(-20, 20)
TREES = st.recursive(
    NUMBERS.map(str) | st.sampled_from(["a", "b"]),
    lambda inner: st.tuples(
        inner, st.sampled_from(["+", "-", "*", "//", "%", "<", "<=", "==", "and", "or"]), inner
    ).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=12,
)


@given(text=TREES, a=NUMBERS, b=NUMBERS)
def test_arithmetic_is_that_of_python(text, a, b):
    try:
        wanted = eval(text, {"__builtins__": {}}, {"a": a, "b": b})
    except ArithmeticError:
        with pytest.raises(ValueError, match="no value"):
            Expression(text)({"a": a, "b": b})
        return
    assert Expression(text)({"a": a, "b": b}) == wanted


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab109 +-*/%()[]<>=,'._forinragelist", max_size=40))
def test_any_text_has_a_value_or_none(text):
    with contextlib.suppress(ValueError):
        value = Expression(text)({"a": 3, "b": "x"})
        assert isinstance(value, int | float | str | list)
