"""Logs are data: what they name is imported only where it is this project's, or the user names it."""

from __future__ import annotations

from collections.abc import Sequence

from search_spaces import registry
from search_spaces.errors import AutotuneError


def is_shipped(package: str, reference: str) -> bool:
    """Whether `reference` names a plug-in of this project's folder `package`, or another attribute of its file."""
    return reference.partition(":")[0] in registry.names(package)


def require_trusted(package: str, what: str, reference: str, named: Sequence[str], option: str) -> None:
    """Keeps a log from having a file or module of its choice imported, which would run the code in it.

    Args:
        package: The folder of the plug-ins, dotted.
        what: The kind of plug-in in singular.
        reference: How the log names one.
        named: Those that the user named.
        option: With which the user names one.

    Raises:
        AutotuneError: It is neither one of this project's nor one that the user named.
    """
    if not is_shipped(package, reference) and reference not in named:
        raise AutotuneError(
            f"the log names the {what} '{reference}', which would be imported",
            f"trust it with {option} '{reference}'",
        )
