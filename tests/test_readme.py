"""The README shows what was measured and what the command line really has."""

import importlib.util
import re
from pathlib import Path

import click

from autotune.cli import cli
from search_spaces import registry
from search_spaces.errors import ExitCode

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_results_are_those_of_the_recorded_files():
    spec = importlib.util.spec_from_file_location("table", ROOT / "experiments" / "table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.table(list((ROOT / "experiments" / "results" / "h200").glob("*.json"))) in README


def test_every_command_and_option_named_exists():
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    named = set(re.findall(r"(?<!from )autotune ([a-z-]+)\b", README)) - {"where"}
    assert named <= set(commands), named - set(commands)
    options = {option for command in commands.values() for p in command.params for option in p.opts}
    options.add("--backend-store-uri")  # MLflow's own
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", README)) <= options


def test_every_exit_code_is_explained():
    for code in ExitCode:
        assert f"| {int(code)} |" in README, code


def test_every_operator_and_strategy_is_listed():
    for name in (*registry.names("search_spaces.operators"), *registry.names("autotune.strategies")):
        assert f"`{name}`" in README or f"`--strategy {name}`" in README, name
