"""The card of a prior: what it was trained on, by whom measured, and what it was found to be worth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from autotune.prior.prior import Prior
from search_spaces.schedule import digest


def card_of(prior: Prior, size: int) -> dict[str, object]:
    """The card as plain data.

    Args:
        prior: Described.
        size: Of its file in bytes.
    """
    return {
        "about": dict(prior.about),
        "bytes": size,
        "tasks": [
            {
                "name": e.name,
                "kernel": e.kernel,
                "device": e.device,
                "sketches": [table.sketch for table in e.tables],
                "schedules": e.size,
                "axes": {n.removeprefix("axis "): round(2**v) for n, v in e.context.items() if n.startswith("axis ")},
                **e.credit,
            }
            for e in prior.experiences
        ],
        "policy": prior.policy is not None,
    }


def card_text(card: Mapping[str, object], results: Mapping[str, object] | None = None) -> str:
    """The card for readers, in Markdown.

    Args:
        card: What `card_of` gave.
        results: What leaving parts of the experience out showed; see `experiments/prior_leave_one_out.py`.
    """
    tasks = card["tasks"]
    about = card["about"]
    assert isinstance(tasks, list)
    assert isinstance(about, Mapping)
    lines = [
        "# What this prior was trained on",
        "",
        f"{len(tasks)} tasks, {sum(t['schedules'] for t in tasks):,} measured schedules, "
        f"{_bytes(card['bytes'])}. " + ", ".join(f"{k} {v}" for k, v in about.items()) + ".",
        "",
        "It holds the schedules of each task with how many times slower than the task's best each was, and a policy "
        "that imitates the fastest of them. It holds no times, no code and nothing of who ran what.",
        "",
        *_table(["kernel", "device", "tasks", "schedules"], _grouped(tasks)),
        "",
        "## Sources",
        "",
        *_sources(tasks),
        *(_results(results) if results else []),
    ]
    return "\n".join(lines) + "\n"


def _bytes(size: object) -> str:
    assert isinstance(size, int)
    return f"{size / 1e6:.2f} MB"


def _grouped(tasks: Iterable[Mapping[str, object]]) -> list[list[str]]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for task in tasks:
        schedules = task["schedules"]
        assert isinstance(schedules, int)
        groups[str(task["kernel"]), str(task["device"])].append(schedules)
    return [[kernel, device, str(len(n)), f"{sum(n):,}"] for (kernel, device), n in groups.items()]


def _sources(tasks: Iterable[Mapping[str, object]]) -> list[str]:
    """Each licence and citation once, with what it belongs to."""
    groups: dict[str, list[str]] = defaultdict(list)
    wanted = ("licence", "citation", "commit", "date")
    credits: dict[str, Mapping[str, object]] = {}
    for task in tasks:
        credit = {k: str(task[k]).partition("T")[0] if k == "date" else task[k] for k in wanted if k in task}
        groups[digest(credit)].append(str(task["name"]))
        credits[digest(credit)] = credit
    return [
        f"- {', '.join(names)}: " + ("; ".join(f"{k} {v}" for k, v in credits[key].items()) or "no source is recorded")
        for key, names in groups.items()
    ]


def _results(results: Mapping[str, object]) -> list[str]:
    """One table for each way of leaving out."""
    lines = ["", "## Without part of the experience", "", str(results["what"]), ""]
    tables = results["tables"]
    assert isinstance(tables, Mapping)
    for left_out, table in tables.items():
        head = ["search", *table["columns"]]
        rows = [[name, *(f"{number:.3f}" for number in numbers)] for name, numbers in table["rows"].items()]
        lines += [f"### {left_out}", "", *_table(head, rows), ""]
    return lines


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
