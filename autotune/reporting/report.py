"""The report of one or more runs: what is said of each task, in the order in which it is read."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from autotune.cost import break_even, energy, span
from autotune.display import duration, rate
from autotune.explanation import Explanation, failures_by_reason
from autotune.records import RunRecord
from autotune.reporting.best_so_far import best_so_far
from autotune.reporting.figure import Detail, Figure
from autotune.reporting.knob_plots import effects_plot, importance_plot
from autotune.reporting.page import Tile, render
from autotune.reporting.prediction_plot import prediction_plot
from autotune.reporting.race_plot import race_plot
from autotune.reporting.roofline_plot import roofline_plot
from autotune.reporting.space_plot import space_plots
from autotune.reporting.study import Study
from autotune.summary import verdict
from autotune.tuned_log import FILE as TUNED_LOG
from search_spaces.schedule import text

FILE = "report.html"
_MOST_FAILURES = 12
_LOG2 = "log2_"
Facts = list[tuple[str, str]]


def report(found: Sequence[Study], price_per_hour: float | None = None) -> str:
    """The page of some studies.

    Args:
        found: One for each task, at least one.
        price_per_hour: Of the machine, for the cost; None where it is not known.
    """
    one = found[0].run
    title = f"{_spaced(one)} on {one.device.name}" if len(found) == 1 else f"Tuning report: {len(found)} tasks"
    detail = Detail.among(len(found))
    tasks = [_task(study, f"task-{number}", price_per_hour, detail) for number, study in enumerate(found, start=1)]
    return render("report.html.j2", title, tasks=tasks)


def _task(study: Study, name: str, price: float | None, detail: Detail) -> dict[str, object]:
    """What the template shows of one task."""
    run, explained = study.run, study.explanation
    failed = len(study.trials.all) - len(study.measured)
    failures = list(failures_by_reason(study.trials.all).items())[:_MOST_FAILURES]
    return {
        "name": name,
        "title": f"{_spaced(run)} for {run.task.target} on {run.device.name}",
        "subtitle": (
            f"{run.task.target}, {run.started[:10]}, strategy {run.strategy}, seed {run.seed}, "
            f"{len(study.trials.all):,} trials; {study.path}"
        ),
        "outcome": _outcome(study),
        "tiles": _tiles(study),
        "figures": _figures(study, name, detail),
        "spaces": [] if explained is None else space_plots(study, f"{name}-space", detail),
        "failures": [(reason, count, round(100 * count / failures[0][1])) for reason, count in failures],
        "failed": f"{failed:,}",
        "trials": f"{len(study.trials.all):,}",
        "winner": [] if explained is None else _winner(explained),
        "estimates": [] if explained is None else _estimates(explained),
        "cost": _cost(study, price),
        "reuse": _reuse(study),
        "method": _method(study),
    }


def _spaced(run: RunRecord) -> str:
    """The workload with places where a narrow page may break it."""
    return str(run.task.workload).replace(",", ", ")


def _outcome(study: Study) -> str:
    if study.explanation is None:
        return "No schedule could be built, run and verified."
    entry = study.explanation.entry
    foreign = f" Measured on {entry.device.arch}: no result for {entry.task.target}." if entry.foreign else ""
    words = verdict(entry)
    return f"{words[:1].upper()}{words[1:]}.{foreign}"


def _tiles(study: Study) -> list[Tile]:
    explained = study.explanation
    if explained is None:
        return [Tile("trials", f"{len(study.trials.all):,}", "none could be verified")]
    entry, run = explained.entry, study.run
    tiles = [
        Tile("best time", duration(entry.seconds), rate(run.operations, run.bytes, entry.seconds)),
        Tile("of the roofline", f"{entry.roofline:.1%}", f"at least {duration(run.floor_seconds)}"),
    ]
    for what, ratio in (("the untuned default", entry.over_default), (entry.library, entry.over_library)):
        if ratio is not None:
            tiles.append(Tile(f"against {what}", f"{ratio.times:.4g}x", f"{ratio.low:.4g} to {ratio.high:.4g}, 95 %"))
    tiles.append(Tile("trials", f"{len(study.trials.all):,}", f"{len(study.measured):,} ran and were verified"))
    tiles.append(Tile("time of the machine", span(study.cost.kept_seconds), break_even(study.cost)))
    return tiles


def _figures(study: Study, name: str, detail: Detail) -> list[Figure]:
    """Those that the journal has something for."""
    if study.explanation is None:
        return []
    raced = None if study.race is None else race_plot(study.race, f"{name}-race")
    figures = [
        best_so_far(study, f"{name}-curve", detail),
        raced,
        roofline_plot(study, f"{name}-roofline", detail),
        prediction_plot(study, f"{name}-prediction", detail),
        importance_plot(study, f"{name}-importance"),
        effects_plot(study.explanation.knobs, f"{name}-effects"),
    ]
    return [figure for figure in figures if figure is not None]


def _winner(explained: Explanation) -> Facts:
    entry, used = explained.entry, explained.entry.resources
    facts = [("sketch", str(entry.schedule["sketch"]))]
    facts += [(knob, text(value)) for knob, value in entry.schedule.items() if knob != "sketch"]
    told = (
        ("registers a thread", used.registers),
        ("spilled", None if used.spill_bytes is None else f"{used.spill_bytes} bytes a thread"),
        ("shared memory", None if used.shared_bytes is None else f"{used.shared_bytes / 1024:.4g} KiB a block"),
        ("threads a block", used.threads),
    )
    facts += [(name, str(value)) for name, value in told if value is not None]
    if (residency := explained.residency) is not None and residency.occupancy is not None:
        facts.append(("occupancy", f"{residency.occupancy:.0%}, {residency.blocks_per_sm} blocks on a multiprocessor"))
        if residency.waves is not None:
            facts.append(("waves", f"{residency.blocks:,} blocks in {residency.waves:.2f} waves"))
    bound = explained.roofline
    facts.append(("bound by", f"{bound.binds}, at least {duration(bound.least_seconds)}; {bound.share:.1%} reached"))
    return facts


def _estimates(explained: Explanation) -> Facts:
    """What the winner's sketch derives of it."""
    return [
        (name.removeprefix(_LOG2).replace("_", " "), f"{2.0**value if name.startswith(_LOG2) else value:.4g}")
        for name, value in explained.derived.items()
    ]


def _cost(study: Study, price: float | None) -> Facts:
    cost = study.cost
    facts = [
        ("search", f"{span(cost.search_seconds)} from start to last trial"),
        ("builders", f"{span(cost.build_seconds)}, summed over builders that worked at once"),
        ("device", f"{span(cost.device_seconds)} of checks and timing, {span(cost.race_seconds)} of them in the race"),
    ]
    if cost.joules is None:
        facts.append(("energy", "the device told no power"))
    else:
        facts.append(("energy", f"{energy(cost.joules)}: power told while timing, times the seconds on the device"))
    if price is not None:
        facts.append(("money", f"{cost.money(price):.2f} at {price:g} an hour"))
    if cost.saved_seconds is not None:
        facts.append(("a call saves", f"{duration(cost.saved_seconds)} against the default"))
    facts.append(("break-even", break_even(cost)))
    return facts


def _reuse(study: Study) -> list[tuple[str, str]]:
    """Commands that go on from this result."""
    folder = study.path if study.path.is_dir() else study.path.parent
    where = shlex.quote(str(study.path))
    log = shlex.quote(str(folder / TUNED_LOG)) if (folder / TUNED_LOG).is_file() else where
    task = study.run.task
    inputs = [t.name.lower() for t in task.tensors if not t.output] or ["..."]
    flags = [f"{name}={value}" for name, value in task.workload.axes if name.islower()]
    call = ", ".join([repr(task.workload.operator), *inputs, *flags])
    form = "tvm" if study.run.device.kind == "llvm" else "artifact"
    return [
        ("Call it from Python", f"import autotune\nkernel = autotune.load({str(folder)!r}).kernel({call})"),
        ("Give it to a compiler or runtime", f"autotune export {log} --format {form} --out exported"),
        ("Check that it still holds on this machine", f"autotune verify {log}"),
        ("Search on from here", f"autotune run --resume {shlex.quote(str(folder))} --trials {2 * study.run.trials}"),
        ("Look at the trials with pandas", f"import autotune\ntable = autotune.frame({str(study.path)!r})"),
    ]


def _method(study: Study) -> Facts:
    run, policy = study.run, study.run.policy
    versions = {**run.environment.versions, **run.environment.tools}
    facts = [
        ("device", f"{run.device.name}, {run.device.arch}, {run.device.units} units"),
        ("driver", run.device.driver),
        ("timing", f"{policy.samples} launches a trial, caches {'cold' if policy.cold else 'hot'}"),
        ("check", "every output against a float64 reference before it is timed"),
        ("software", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("system", f"{run.environment.system}, Python {run.environment.python}"),
        ("runs", "; ".join(f"{r.run} of {r.started}" for r in study.log.runs)),
    ]
    return [(name, value) for name, value in facts if value]


def default_file(paths: Sequence[Path]) -> Path:
    """Where the report goes where no file is named: into the only run's folder, else here."""
    (*others, last) = paths
    folder = last if last.is_dir() else last.parent
    return Path(FILE) if others else folder / FILE
