"""Pages: one HTML file with everything in it, from the templates of this package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from autotune.clock import now
from autotune.environment import versions_of
from search_spaces.errors import CannotWrite

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Tile:
    """A number that is seen first.

    Attributes:
        name: What it is.
        value: The number with its unit.
        more: Its interval or what it is held against, "" for nothing.
    """

    name: str
    value: str
    more: str = ""


def render(template: str, title: str, **content: Any) -> str:
    """A page as text.

    Args:
        template: Its file.
        title: Of the page.
        **content: What the template shows; texts are escaped.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=lambda name: name is not None and not name.endswith(".css"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    version = versions_of(["kernel-autotune"]).get("kernel-autotune", "from a checkout")
    footer = f"kernel-autotune {version}, {now():%Y-%m-%d %H:%M} UTC. This page loads nothing from the network."
    return str(environment.get_template(template).render(title=title, footer=footer, **content))


def write_page(path: Path, text: str) -> None:
    """Writes a page, whole or not at all.

    Raises:
        CannotWrite: The file cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written ({error.strerror})", "choose another --out") from error
