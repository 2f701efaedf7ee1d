"""Every command and every Python block of the documentation runs, in the order of its page, with small budgets."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from autotune.cli import cli
from autotune.task_options import parse_shape
from search_spaces.target import parse_target
from search_spaces.task import find_operator
from tests.support.documents import blocks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# What a budget is cut to; the documents show what one would use.
SMALL = {"--trials": 2, "--sample": 6, "--repeats": 2}
_NUMBER = re.compile(r"\d")


def named(path):
    return str(path.relative_to(DOCS).with_suffix(""))


def tried(page):
    return [b for b in blocks(page.read_text()) if b.language in ("console", "bash", "python") and not b.skipped]


RUNNABLE = [page for page in PAGES if any(not b.gpu for b in tried(page))]
ON_GPU = [(p, c) for p in PAGES for b in tried(p) if b.gpu and b.language != "python" for c, _ in b.commands]


def small(command):
    """The command with its budgets cut."""
    for option, most in SMALL.items():
        command = re.sub(rf"({option}[ =])(\d+)", lambda m, most=most: m[1] + str(min(int(m[2]), most)), command)
    return command


@pytest.fixture
def workplace(tmp_path):
    """A folder like a checkout, and variables under which `autotune` is this interpreter's."""
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, call in {"autotune": "-m autotune", "python": ""}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return tmp_path, {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


def run(arguments, folder, variables):
    return subprocess.run(
        arguments, cwd=folder, env=variables, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=named)
def test_what_a_page_shows_runs(page, workplace):
    folder, variables = workplace
    if "mlflow" not in page.read_text().lower():
        # What a page does not speak of, its commands need not do: starting MLflow takes as long as a small run.
        variables = {**variables, "AUTOTUNE_MLFLOW": "none"}
    for block in tried(page):
        if block.language == "python":
            try_python(block, folder, variables)
        elif not block.gpu:
            for command, shown in block.commands:
                done = run(["bash", "-ec", small(command)], folder, variables)
                said = done.stdout + done.stderr
                assert done.returncode in block.exits, f"{command}\n{said}"
                if not block.varies and done.returncode == block.exits[0]:
                    assert not (missing := unlike(shown, said)), f"{command} printed no line like {missing}:\n{said}"


def try_python(block, folder, variables):
    """Saves a block with a title as that file, and runs any other; one for a GPU is compiled only."""
    if block.title:
        (folder / block.title).write_text(block.text)
    if block.gpu or block.title:
        compile(block.text, block.title or "block", "exec")
        return
    done = run([sys.executable, "-c", block.text], folder, variables)
    assert done.returncode == 0, done.stderr


def unlike(shown, said):
    """Lines shown whose first word stands at the start of no line printed; what depends on the machine is left out."""
    starts = {_NUMBER.sub("", line.split()[0]) for line in said.splitlines() if line.strip()}
    firsts = [(line, _NUMBER.sub("", line.split()[0])) for line in shown]
    return [line for line, first in firsts if first.isascii() and first.strip(".-%+") and first not in starts]


@pytest.mark.parametrize("command", sorted({c for _, c in ON_GPU}))
def test_what_needs_a_gpu_has_options_that_there_are(command):
    words = shlex.split(command)
    assert words[0] == "autotune"
    group = click.Context(cli, info_name="autotune")
    subcommand = cli.get_command(group, words[1])
    context = click.Context(subcommand, info_name=words[1], parent=group)
    try:
        subcommand.parse_args(context, words[2:])
    except click.BadParameter as error:
        # Only a file that is not here may be wrong.
        if not (isinstance(error.param.type, click.Path) and "does not exist" in error.message):
            raise
    given = context.params
    if given.get("op") and given.get("target"):
        target = parse_target(given["target"], given["arch"])
        find_operator(given["op"]).workload(target.kind, given["dtype"], **parse_shape(given["shape"]))


def test_a_wrong_option_is_found():
    with pytest.raises(click.UsageError):
        test_what_needs_a_gpu_has_options_that_there_are("autotune run --op matmul --trails 3")


def test_a_line_that_is_not_printed_is_found():
    assert unlike(["schedule  x", "saving    y"], "schedule  z\n") == ["saving    y"]
