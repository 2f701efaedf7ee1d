"""Exported Triton configurations in any `@triton.autotune` kernel, with no benchmark.

tuned = TunedConfigs.read("exported/triton-configs.json", "matmul", names={"GROUP_M": "group"})

@triton.autotune(configs=CONFIGS, key=["M", "N", "K"], **tuned.autotune_options())
@triton.jit
def mm(a, b, c, M, N, K, BLOCK_M: tl.constexpr, ...):
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from search_spaces import registry
from search_spaces.errors import BadLog

SCHEMA = "triton-configs/1"
FILE = "triton-configs.json"
_EXTRA = "cuda"
_MOST_BYTES = 16 * 1024 * 1024
_Word = Annotated[str, msgspec.Meta(max_length=300)]
_Extent = Annotated[int, msgspec.Meta(ge=0, le=2**40)]


class ConfigData(msgspec.Struct, frozen=True):
    """The arguments of a `triton.Config`."""

    kwargs: dict[_Word, int | float | bool | str]
    num_warps: Annotated[int, msgspec.Meta(ge=1, le=64)]
    num_stages: Annotated[int, msgspec.Meta(ge=0, le=64)]
    num_ctas: Annotated[int, msgspec.Meta(ge=1, le=16)] = 1
    maxnreg: Annotated[int, msgspec.Meta(ge=1, le=255)] | None = None


class TunedConfig(msgspec.Struct, frozen=True):
    """The best configuration of one shape on one device.

    Attributes:
        operator: What was computed.
        axes: Its axes.
        dtype: Of its tensors.
        device: Name of the device.
        arch: `sm_90`.
        kernel: The jitted function that was tuned, `module:function`; on another one the configuration is a guess.
        source: Hash of that kernel and its sketch.
        config: The configuration.
        grid: Programs that it was launched with.
        seconds: Median.
    """

    operator: _Word
    axes: dict[_Word, _Extent]
    dtype: _Word
    device: _Word
    arch: _Word
    kernel: _Word
    source: _Word
    config: ConfigData
    grid: tuple[int, int, int]
    seconds: Annotated[float, msgspec.Meta(gt=0.0)]


class ConfigFile(msgspec.Struct, frozen=True):
    """The file."""

    schema: str
    triton: _Word
    configs: Annotated[tuple[TunedConfig, ...], msgspec.Meta(max_length=100_000)]


def read_configs(path: Path) -> ConfigFile:
    """Reads what `autotune export --format triton` wrote.

    Raises:
        BadLog: It cannot be read as that.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB")
        found = msgspec.json.decode(data, type=ConfigFile)
        if found.schema != SCHEMA:
            raise ValueError(f"its schema is {found.schema[:40]!r}, not {SCHEMA}")
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadLog(f"{path} holds no Triton configurations ({why})", "export the log again") from error
    return found


@dataclass(frozen=True)
class TunedConfigs:
    """Hands the configuration of a call's shape to `triton.autotune`, and keeps it from benchmarking.

    Attributes:
        configs: Of one operator.
        names: Parameter of the kernel -> its name in the configurations, where they differ.
        axes: Axis -> parameter of the kernel that holds its extent, where they differ.
        fixed: Axes that no parameter holds -> their extent in this kernel.
        device: Name of the device; configurations of others of the same arch serve where it has none. "" for any.
        nearest: Whether the nearest shape serves where the exact one was not tuned; else the kernel's own
            configurations are benchmarked as ever.
        notice: Told in a line, once a shape, what was not exact.
    """

    configs: tuple[TunedConfig, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)
    device: str = ""
    nearest: bool = True
    notice: Callable[[str], object] = warnings.warn

    @staticmethod
    def read(path: Path | str, operator: str, dtype: str | None = None, **options: Any) -> TunedConfigs:
        """Those of `operator` in an exported file.

        Args:
            path: The file.
            operator: Its name.
            dtype: Keeps those of one dtype, as the log names it ("float16").
            **options: See the attributes.

        Raises:
            BadLog: The file cannot be read, or holds none of them.
        """
        found = [c for c in read_configs(Path(path)).configs if c.operator == operator and dtype in (None, c.dtype)]
        if not found:
            raise BadLog(f"{path} holds no configuration of {operator} {dtype or ''}".rstrip(), "export its log")
        return TunedConfigs(tuple(found), **options)

    def autotune_options(self) -> dict[str, Any]:
        """Arguments for `triton.autotune`.

        Triton before 3.8 times even a single configuration; it is then given a stopwatch that does not run it.
        """
        single: list[bool] = []

        def prune(configs: Sequence[Any], nargs: Mapping[str, Any], **meta: Any) -> list[Any]:
            chosen = self.chosen(configs, {**nargs, **meta})
            single[:] = [chosen is not None]
            return [chosen] if chosen is not None else list(configs)

        def bench(call: Callable[[], object], quantiles: Sequence[float]) -> list[float]:
            if single == [True]:
                return [0.0] * len(quantiles)
            measured: list[float] = registry.optional("triton.testing", _EXTRA).do_bench(call, quantiles=quantiles)
            return measured

        return {"prune_configs_by": {"early_config_prune": prune}, "do_bench": bench}

    def chosen(self, configs: Sequence[Any], arguments: Mapping[str, Any]) -> Any:
        """The `triton.Config` for a call, or None where there is none to give.

        Args:
            configs: The kernel's own: their keywords are what it lets be tuned.
            arguments: The call's, by parameter.
        """
        # An axis that is 0 wherever it was tuned is an option left out: a kernel need not know of it.
        options = {axis for axis in self.configs[0].axes if not any(c.axes.get(axis) for c in self.configs)}
        extents = {axis: self._extent(axis, arguments) for axis in self.configs[0].axes}
        extents |= {axis: 0 for axis in options if extents[axis] is None}
        unknown = [axis for axis, extent in extents.items() if extent is None]
        if unknown:
            self.notice(f"no parameter of the kernel holds the axis {unknown[0]}: name it in axes or fixed")
            return None
        candidates = self._for_device()
        if not candidates:
            self.notice("no configuration was tuned on a device of this arch")
            return None
        best = min(candidates, key=lambda c: (_distance(c.axes, extents), c.device != self.device, c.seconds))
        exact = best.axes == extents
        if not exact and not self.nearest:
            return None
        kwargs = self._keywords(best, configs, arguments)
        if kwargs is None:
            return None
        if not exact:
            self.notice(f"{_shape(extents)} was not tuned; the nearest, {_shape(best.axes)}, is used")
        if self.device and best.device != self.device:
            self.notice(f"{_shape(extents)} was tuned on {best.device}, not on {self.device}")
        made = best.config
        config = registry.optional("triton", _EXTRA).Config
        return config(
            kwargs, num_warps=made.num_warps, num_stages=made.num_stages, num_ctas=made.num_ctas, maxnreg=made.maxnreg
        )

    def _extent(self, axis: str, arguments: Mapping[str, Any]) -> int | None:
        value = self.fixed.get(axis, arguments.get(self.axes.get(axis, axis)))
        return int(value) if isinstance(value, int) else None

    def _for_device(self) -> list[TunedConfig]:
        target = registry.optional("triton.runtime.driver", _EXTRA).driver.active.get_current_target()
        return [c for c in self.configs if c.arch.removeprefix("sm_").rstrip("af") == str(target.arch)]

    def _keywords(
        self, best: TunedConfig, configs: Sequence[Any], arguments: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """What the kernel's own configurations set; None where the tuned one does not say it all."""
        wanted = [name for name in (configs[0].kwargs if configs else {}) if name not in arguments]
        made = {name: best.config.kwargs.get(self.names.get(name, name)) for name in wanted}
        lacking = [name for name, value in made.items() if value is None]
        if lacking:
            self.notice(f"the tuned configuration has no {lacking[0]}: say in names what it is called there")
            return None
        return made


def _distance(tuned: Mapping[str, int], asked: Mapping[str, int | None]) -> float:
    """Sum over the axes of how many times larger or smaller, in powers of two."""
    return sum(abs(math.log2((tuned[a] + 1) / ((asked.get(a) or 0) + 1))) for a in tuned)


def _shape(axes: Mapping[str, int | None]) -> str:
    return ",".join(f"{axis}={extent}" for axis, extent in axes.items())
