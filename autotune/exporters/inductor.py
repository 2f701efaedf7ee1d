"""torch.compile: Inductor's lookup table for `mm`, from tiles tuned on a kernel of the same structure."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from autotune.exporters.base import Exporter, ExportFault
from autotune.recall import Winner
from autotune.reuse.inductor import FILE, TEMPLATE, key_of, read_table
from search_spaces import registry
from search_spaces.schedule import Schedule

_EXTRA = "cuda"
_SKETCH = "triton.matmul_tiled"
_NOTES = (
    "autotune.reuse.inductor.tuned_table installs it for torch.compile in the modes max-autotune; mm of dense row-major"
    " matrices only.",
    "The tiles were tuned on this project's kernel, not on Inductor's template: the ranking may differ.",
)


class InductorExporter(Exporter):
    """One choice a shape, so that nothing is benchmarked; dropped by Inductor where its template has changed."""

    summary = "torch._inductor's lookup table for mm"
    packages = ("torch",)

    def missing(self) -> str | None:
        """Torch with a lookup table."""
        try:
            found = importlib.util.find_spec("torch._inductor.lookup_table")
        except ImportError:
            return "torch is not installed; pip install 'kernel-autotune[cuda]'"
        return None if found is not None else "this torch has no lookup table; pip install 'torch>=2.10'"

    def why_not(self, winner: Winner) -> str | None:
        """The winner, or else the fastest of its runners-up, must be a tile of Inductor's template."""
        if winner.task.workload.operator != "matmul" or winner.task.target.kind != "cuda":
            return "Inductor's table is for matmul on CUDA"
        if winner.task.workload["trans_b"]:
            return "the table's key is made for a row-major B"
        if expressible(winner) is None:
            return f"neither the winner nor a runner-up is a {_SKETCH} in bands of rows, as Inductor's template is"
        return None

    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """One file."""
        table = {table_key(winner): [choice(winner)] for winner in winners}
        (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=1))

    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Has Inductor's own lookup find every choice again, with the hash of its template compared."""
        table = read_table(folder / FILE)
        for winner in winners:
            wanted = {k: v for k, v in choice(winner).items() if not k.startswith("template_")}
            if looked_up(winner, table) != {TEMPLATE: [wanted]}:
                raise ExportFault(f"Inductor does not find {winner} in its table")
        others = [w for w in winners if expressible(w) != w.schedule]
        return (*_NOTES, *(f"{w}: not the winner but a runner-up is exported, {expressible(w)}" for w in others))


def expressible(winner: Winner) -> Schedule | None:
    """The winner's schedule, or that of its fastest runner-up which Inductor's template can take."""
    runners_up = (Schedule.from_json(r.schedule) for r in winner.entry.runners_up)
    for schedule in (winner.schedule, *runners_up):
        fits = schedule.sketch == _SKETCH and winner.task.space.why_not(schedule) is None
        if fits and schedule["order"] == "rows":
            return schedule
    return None


def table_key(winner: Winner) -> str:
    """Inductor's key of the product."""
    a, b, _ = winner.task.operator.tensors(winner.task.workload)
    tensors = {t.name: (t.shape, (t.shape[1], 1), t.dtype) for t in (a, b)}
    return key_of(winner.entry.device.name, tensors, "mm")


def choice(winner: Winner) -> dict[str, Any]:
    """The keywords of Inductor's template."""
    schedule = expressible(winner)
    assert schedule is not None
    tile = {name.upper(): schedule.integer(name) for name in ("block_m", "block_n", "block_k")}
    return {
        "template_id": TEMPLATE,
        "template_hash": _template().src_hash,
        **tile,
        "GROUP_M": schedule.integer("group"),
        "num_warps": schedule.integer("num_warps"),
        "num_stages": schedule.integer("num_stages"),
        "EVEN_K": winner.task.workload["K"] % tile["BLOCK_K"] == 0,
        "USE_FAST_ACCUM": False,
        "ACC_TYPE": "tl.float32",
    }


def _template() -> Any:
    return registry.optional("torch._inductor.kernel.mm", _EXTRA).mm_template


def looked_up(winner: Winner, table: Any) -> Any:
    """What Inductor's lookup gives for the product on the recorded device, whether or not that is here."""
    base: Any = registry.optional("torch._inductor.lookup_table", _EXTRA).LookupTableChoices
    torch = registry.optional("torch", _EXTRA)

    class Choices(base):  # type: ignore[misc]
        """Inductor's, on the recorded device."""

        def _get_lookup_table(self) -> Any:
            return table

        def _get_device_key(self, device: Any) -> str:
            return winner.entry.device.name

    inputs = [t for t in winner.task.operator.tensors(winner.task.workload) if not t.output]
    nodes = SimpleNamespace(
        dtypes=lambda: tuple(getattr(torch, t.dtype) for t in inputs),
        shapes_hinted=lambda: tuple(t.shape for t in inputs),
        strides_hinted=lambda: tuple((t.shape[1], 1) for t in inputs),
        device=lambda: torch.device("cuda", 0),
        _scalars={},
    )
    return Choices().lookup_template_configs(nodes, "mm", [TEMPLATE], {TEMPLATE: _template().src_hash})


EXPORTER = InductorExporter()
