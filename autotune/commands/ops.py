"""`autotune ops`: what can be tuned."""

from __future__ import annotations

import sys

import click

from autotune.display import output, pretty_json, titled
from search_spaces import registry
from search_spaces.task import OPERATORS, find_operator


@click.command("ops")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool) -> None:
    """List operators with their axes and dtypes."""
    found = [find_operator(name) for name in registry.names(OPERATORS)]
    if as_json:
        data = [
            {"name": o.name, "summary": o.summary, "axes": [[a.name, a.meaning] for a in o.axes], "dtypes": o.dtypes}
            for o in found
        ]
        sys.stdout.write(pretty_json(data) + "\n")
        return
    console = output()
    for operator in found:
        console.print(titled(operator.name, f"  {operator.summary}"))
        for axis in operator.axes:
            choices = f" ({', '.join(map(str, axis.choices))})" if axis.choices else ""
            console.print(f"    {axis.name:<8}{axis.meaning}{choices}")
        console.print(f"    dtypes  {', '.join(operator.dtypes)}")
        for kind in ("cuda", "llvm"):
            defaults = " ".join(f"{k}={v}" for k, v in operator.defaults(kind).items())
            console.print(f"    default for {kind}: {defaults}")
    console.print("\nYour own: --op path/to/my_op.py:MyOp (see the README)")


COMMAND = command
