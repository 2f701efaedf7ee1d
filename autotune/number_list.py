"""Options that take several numbers."""

from __future__ import annotations

from collections.abc import Callable

import click

Callback = Callable[[click.Context, click.Parameter, str], tuple[int, ...]]


def number_list(more: str) -> Callback:
    """A callback for an option that takes positive numbers with commas between: each once, in the order given.

    Args:
        more: What is said of such a list where it is none.
    """

    def parsed(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
        parts = [p.strip() for p in text.split(",") if p.strip()]
        if not parts or not all(p.isdigit() and int(p) > 0 for p in parts):
            raise click.BadParameter(f"'{text}' is no list of numbers {more}")
        return tuple(dict.fromkeys(int(p) for p in parts))

    return parsed
