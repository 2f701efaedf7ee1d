"""The documentation builds without a warning, and its lists are those of the code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click

import autotune
from autotune import environment
from autotune.cli import cli
from search_spaces.errors import ExitCode

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"


def test_the_site_builds_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    commands = (tmp_path / "site/reference/command-line/index.html").read_text()
    assert [name for name in cli.list_commands(click.Context(cli)) if f"autotune {name}" not in commands] == []
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', page.read_text())
        assert not [url for url in loaded if "canonical" not in url], page


def test_every_exit_code_is_documented():
    text = (REFERENCE / "exit-codes.md").read_text()
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", text, re.M)} == set(map(int, ExitCode))


def test_every_environment_variable_is_documented():
    read = set(re.findall(r"environ[^\n]*?\"([A-Z][A-Z0-9_]+)\"", Path(environment.__file__).read_text()))
    text = (REFERENCE / "environment.md").read_text()
    assert read
    assert read <= set(re.findall(r"`([A-Z][A-Z0-9_]+)`", text))


def test_the_reference_has_every_name_of_the_vocabulary():
    listed = re.findall(r"^::: (\S+)$", (REFERENCE / "python.md").read_text(), re.M)
    assert {name.rpartition(".")[2] for name in listed} >= set(autotune.__all__)
