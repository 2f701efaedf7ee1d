"""`autotune completion`: the script that a shell sources."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the shell completion script.

    \b
    autotune completion bash >> ~/.bashrc
    """
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(ctx.find_root().command, {}, "autotune", "_AUTOTUNE_COMPLETE").source())


COMMAND = command
