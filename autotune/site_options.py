"""The options that say where is measured, shared by the commands that search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from autotune.executors.base import EXECUTORS, Site
from search_spaces import registry

Command = TypeVar("Command", bound=Callable[..., Any])


def _executor_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    names = (name.replace("_", "-") for name in registry.names(EXECUTORS))
    return [name for name in names if name.startswith(incomplete)]


def site_options(command: Command) -> Command:
    """Adds --devices, --executor, --address and --key to a command, which `taken_site` takes out again."""
    options = (
        click.option(
            "--devices", metavar="LIST", default="", help="Devices: 0,1 or all.  [default: all that are alike and free]"
        ),
        click.option(
            "--executor",
            default="local",
            show_default=True,
            shell_complete=_executor_names,
            help="Where builders and devices are: local, ray for a cluster, tvm-rpc for devices behind TVM's tracker.",
        ),
        click.option(
            "--address",
            "--tracker",
            metavar="HOST:PORT",
            default="",
            help="Of the cluster's head, else it is found; or of TVM's tracker.",
        ),
        click.option("--key", metavar="KEY", default="", help="Under which TVM's tracker has the devices."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def taken_site(given: dict[str, Any]) -> Site:
    """Takes the values of the four options out of those of a command.

    Raises:
        UnknownName: There is no such executor.
    """
    site = Site(given.pop("executor"), given.pop("address"), given.pop("devices"), given.pop("key"))
    # An unknown name is told now.
    _ = site.kind
    return site
