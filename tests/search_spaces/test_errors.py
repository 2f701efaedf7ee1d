import inspect

import pytest

from search_spaces import errors
from search_spaces.errors import AutotuneError, ExitCode, UnknownName

KINDS = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, AutotuneError)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_one_line_with_its_remedy_and_an_exit_code(kind):
    error = kind("no such thing", "try another")
    assert str(error) == "no such thing; try another"
    assert error.exit_code in set(ExitCode) - {ExitCode.OK, ExitCode.INTERNAL}


def test_a_hint_may_be_left_out():
    assert str(AutotuneError("all said")) == "all said"


def test_what_no_terminal_should_be_sent_is_an_escape():
    error = AutotuneError("no run \x1b[2J\nhere \x02", "see\tit \ud800")
    assert str(error) == "no run \\x1b[2J here \\x02; see it \\ud800"
    assert (error.message, error.hint) == ("no run \\x1b[2J here \\x02", "see it \\ud800")


def test_unknown_names_are_guessed():
    error = UnknownName.of("strategy", "evolutionery", ["random", "evolutionary"])
    assert str(error) == "unknown strategy 'evolutionery'; did you mean 'evolutionary'? known: evolutionary, random"
    assert "did you mean" not in str(UnknownName.of("strategy", "zzz", ["random"]))
    assert str(UnknownName.of("strategy", "x", [])).endswith("known: none")
