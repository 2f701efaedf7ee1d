"""The command line: finds the subcommand, turns errors into one line and a documented exit code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import metadata
from typing import ClassVar

import click

from search_spaces import registry
from search_spaces.errors import AutotuneError, ExitCode, UnknownName

_COMMANDS = "autotune.commands"


class _Commands(click.Group):
    """Imports a subcommand's module only when it is called, so that `--help` stays fast."""

    summaries: ClassVar[Mapping[str, str]] = {
        "run": "Tune an operator on a device and leave a tuned log.",
        "record": "Measure a space, or a sample of it, and keep every repeat.",
        "space": "Show sketches, knobs and the size of an operator's schedule space.",
        "best": "Show the best schedules of runs or tuned logs.",
        "show": "Show the trials of a run.",
        "explain": "Show why the best schedule of a run won.",
        "watch": "Watch a run: best so far, statuses, rate and time left.",
        "report": "Write a page of runs with curves, roofline, knobs, race and cost.",
        "compact": "Pack the journals of runs; every command reads them as before.",
        "sync": "Bring an MLflow store up to date with runs.",
        "verify": "Measure the winners of a log again and tell which still hold.",
        "export": "Write the best schedules for TVM, Triton, torch.compile or CUDA C++.",
        "import": "Read what other tuners wrote, as warm starts and training data.",
        "merge": "Join tuned logs, the best of each workload and device kept.",
        "diff": "Tell what two tuned logs say differently.",
        "plan": "Estimate what tuning many workloads costs, on fleets of several sizes.",
        "bench": "Tune suites of workloads and hold the kernels against the libraries here.",
        "compare": "Compare search strategies on recorded spaces; needs no device.",
        "train-prior": "Train what searches start from, of recordings and journals.",
        "convert": "Convert recordings to and from Kernel Tuner's cache and T4.",
        "ops": "List operators with their axes and dtypes.",
        "doctor": "Show versions, devices, what is missing and how to get it.",
        "completion": "Print the shell completion script.",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.summaries:
            raise UnknownName.of("command", cmd_name, self.summaries)
        command = registry.find(_COMMANDS, cmd_name.replace("-", "_"), "command")
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"kernel-autotune {metadata.version('kernel-autotune')}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def cli() -> None:
    """Finds the fastest schedule of a kernel for your shapes, proves it, and leaves a tuned log.

    \b
    autotune run --op matmul --target llvm
    autotune run --op attention --target cuda -arch=sm_80
    """


def main() -> None:
    """Entry point of the console script."""
    try:
        sys.exit(cli.main(prog_name="autotune", standalone_mode=False) or ExitCode.OK)
    except AutotuneError as error:
        _fail(str(error), error.exit_code)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        _fail("stopped", ExitCode.INTERRUPTED)
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "autotune"
        _fail(f"{error.format_message()} See '{where} --help'.", ExitCode.USAGE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ExitCode.OK)


def _fail(message: str, code: int) -> None:
    click.echo(f"autotune: {message}", err=True)
    sys.exit(code)
