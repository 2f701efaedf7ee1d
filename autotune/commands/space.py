"""`autotune space`: sketches, knobs, size, and what the limits refuse."""

from __future__ import annotations

import sys
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from autotune.display import output, pretty_json, titled
from autotune.task_options import TaskOptions, make_task, task_options
from search_spaces.space import Knob, SpaceSize, Value
from search_spaces.task import Task


@click.command("space")
@task_options(required=True)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool, **named: Any) -> None:
    """Show sketches, knobs and the size of an operator's schedule space.

    \b
    autotune space --op attention --target cuda -arch=sm_80
    """
    task = make_task(TaskOptions(**named), measure_roof=False)
    size = task.space.size(np.random.default_rng(0))
    if as_json:
        sys.stdout.write(_json(task, size) + "\n")
    else:
        _print(task, size, output())


def _json(task: Task, size: SpaceSize) -> str:
    data = {
        "workload": task.workload,
        "target": str(task.target),
        "fingerprint": task.space.fingerprint,
        "sketches": [
            {
                "name": s.sketch,
                "knobs": [{"name": k.name, "family": k.family, "values": k.values} for k in s.knobs],
                "limits": [c.reason for c in s.constraints],
            }
            for s in task.space.sketches
        ],
        "refused": dict(task.refusals),
        "size": size,
        "default": task.default.to_json(),
    }
    return pretty_json(data)


def _values(knob: Knob) -> str:
    def text(value: Value) -> str:
        return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)

    if len(knob.values) <= 8:
        return " ".join(map(text, knob.values))
    return f"{text(knob.values[0])} {text(knob.values[1])} ... {text(knob.values[-1])} ({len(knob.values)} values)"


def _print(task: Task, size: SpaceSize, console: Console) -> None:
    console.print(titled(str(task.workload), f" for {task.target}"))
    for space in task.space.sketches:
        sketch = task.sketches[space.sketch.partition("/")[0]]
        console.print(titled(f"\n{space.sketch}", f"  {sketch.summary}; {space.cartesian:,} combinations"))
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
        for knob in sorted(space.knobs, key=lambda k: k.family):
            table.add_row(str(knob.family), knob.name, _values(knob))
        console.print(table)
    for name, reason in task.refusals.items():
        console.print(f"\n{name} does not apply: {reason}")
    about = "" if size.exact else "about "
    console.print(
        f"\n{about}{size.legal:,} legal schedules of {size.cartesian:,} combinations; the limits of "
        f"{task.hardware.limits.arch} reject {about}{sum(size.rejected.values()):,}:",
    )
    for reason, count in sorted(size.rejected.items(), key=lambda item: -item[1]):
        console.print(f"  {count:>14,}  {reason}")


COMMAND = command
