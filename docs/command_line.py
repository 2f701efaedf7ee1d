"""Puts the help of every command into the page that asks for it with `::: commands`; called by mkdocs as a hook."""

from __future__ import annotations

from collections.abc import Iterator

import click

from autotune.cli import cli

_WIDTH = 100


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page with the commands' own help in place of the line that asks for it."""
    return markdown.replace("::: commands", "\n".join(_help()))


def _help() -> Iterator[str]:
    settings = {**cli.context_settings, "terminal_width": _WIDTH}
    whole = click.Context(cli, info_name="autotune", **settings)
    yield _fenced(cli.get_help(whole))
    for name in cli.list_commands(whole):
        command = cli.get_command(whole, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=whole, terminal_width=_WIDTH)
        yield f"## autotune {name}\n"
        yield _fenced(command.get_help(context))


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```\n"
