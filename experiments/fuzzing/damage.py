"""Ways to damage a file, as Hypothesis strategies: any value in any place, and any bytes anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

# What readers are easily wrong about: numbers beyond every type, control characters, names that mean something.
_HOSTILE: tuple[Any, ...] = (
    *(0, -1, 2**31, 2**63, 2**64, -(2**70), 10**400, 1e308, -1e-320, float("inf"), float("nan")),
    *("", "\x1b[2J", "a\nb", "\ud800", "../../x", "__class__", "9**9**9", "%s{}", "x" * 5000, "0" * 400),
    *([], {}, [[]], {"": None}, [1.5, "a", None], True, None),
)
_DEEP = 100_000
_Place = tuple[str | int, ...]


def values() -> st.SearchStrategy[Any]:
    """Anything that JSON can say, hostile things often."""
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    nested = st.recursive(
        plain,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=6,
    )
    return st.sampled_from(_HOSTILE) | nested


def places(data: Any, path: _Place = ()) -> Iterator[_Place]:
    """Every place in plain data."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def _replaced(data: Any, path: _Place, value: Any) -> Any:
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = _replaced(copy[path[0]], path[1:], value)
    return copy


def _without(data: Any, path: _Place) -> Any:
    if not path:
        return {}
    copy = dict(data) if isinstance(data, dict) else list(data)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = _without(copy[path[0]], path[1:])
    return copy


def _text(data: Any) -> bytes:
    return json.dumps(data).encode(errors="surrogatepass")


class Damage:
    """Damaged versions of one whole file.

    Args:
        whole: The file.
    """

    def __init__(self, whole: bytes) -> None:
        self._whole = whole
        self._lines = [parsed for line in whole.splitlines() if (parsed := _parsed(line)) is not None]
        document = _parsed(whole)
        # A document on several lines is one, a line a record are several.
        self._documents: Sequence[Any] = [document] if document is not None else self._lines
        self._places = [list(places(d)) for d in self._documents]

    def drawn(self, draw: Any) -> bytes:
        """One damaged version, by what Hypothesis draws."""
        structured = bool(self._documents) and draw(st.integers(0, 3)) > 0
        return self._in_a_place(draw) if structured else self._in_the_bytes(draw)

    def _in_a_place(self, draw: Any) -> bytes:
        which = draw(st.integers(0, len(self._documents) - 1))
        place = draw(st.sampled_from(self._places[which]))
        documents = list(self._documents)
        match draw(st.integers(0, 7)):
            case 0:
                documents[which] = _without(documents[which], place)
            case 1:
                documents.append(documents[which])
            case 2:
                documents[which : which + 1] = []
            case _:
                documents[which] = _replaced(documents[which], place, draw(values()))
        return b"\n".join(map(_text, documents)) + b"\n"

    def _in_the_bytes(self, draw: Any) -> bytes:
        if draw(st.integers(0, 99)) == 0:
            return draw(st.sampled_from((b"[", b'{"a":', b'{"schema":"tuned-log/1","entries":'))) * _DEEP
        changed = bytearray(self._whole)
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(changed)))
            changed[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
        return bytes(changed[: draw(st.sampled_from((len(changed), draw(st.integers(0, len(changed))))))])


def _parsed(text: bytes) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None
