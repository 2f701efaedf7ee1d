"""Three models that fail differently, each an opinion on what to measure next.

A Gaussian process is smooth in every knob and knows how unsure it is, so it explores; trees that tell the fast
schedules from the rest find narrow places; trees that expect a throughput order the fast ones best. In replays of
recorded spaces any one of them was caught where another was not, and what one measures the others learn from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from cost_models.features import Features
from cost_models.gaussian import Kernel, Posterior, fitted_kernel
from cost_models.model import CostModel, Floats
from cost_models.models.throughput import ThroughputModel
from cost_models.models.xgb import PARAMETERS, XgbModel
from search_spaces.space import Schedule

IMPROVEMENT, FAST, THROUGHPUT = "improvement", "fast", "throughput"
LEAST = 4
# Of more measurements than so many, half are the fastest, half spread over time: a process costs their cube.
MOST, MOST_FOR_KERNEL, MOST_FOR_TREES = 256, 96, 4096
STEPS = 20
# Of many candidates the improvement is looked for among those of the best mean.
SHORT_LIST = 400
# So many being measured or chosen together are taken into account; what more of them would change is little.
BELIEVED = 64


class Trees(XgbModel):
    """Half as many trees, since they are grown anew every few measurements, from the first ones on."""

    least = LEAST
    rounds = 40
    parameters: ClassVar[Mapping[str, object]] = {**PARAMETERS, "eta": 0.225, "num_parallel_tree": 3}


class HybridModel(CostModel):
    """Expected improvement by a process, the belief of `Trees`, and the throughput that boosted trees expect.

    A failure ranks last and has no throughput.
    """

    heads = (IMPROVEMENT, FAST, THROUGHPUT)

    def __init__(self, features: Features, seed: int) -> None:
        super().__init__(features, seed)
        self._judges: Mapping[str, CostModel] = {
            FAST: Trees(features, seed),
            THROUGHPUT: ThroughputModel(features, seed),
        }
        self._posterior: Posterior | None = None
        self._fitted: tuple[object, Kernel] | None = None

    @property
    def ready(self) -> bool:
        """Whether it was fitted to four measurements or more, not all of them failures."""
        return self._posterior is not None

    def fit(self, schedules: Sequence[Schedule], seconds: Floats) -> None:
        """Fits all; the process's kernel only when it has an eighth more to learn from."""
        if len(schedules) < LEAST or not np.isfinite(seconds).any():
            return
        some = _kept(seconds, MOST_FOR_TREES)
        for judge in self._judges.values():
            judge.fit([schedules[i] for i in some], seconds[some])
        kept = _kept(seconds, MOST)
        rows = self.features.unit([schedules[i] for i in kept])
        targets = _targets(seconds[kept])
        self._posterior = Posterior(self._kernel_of(schedules, seconds), rows, targets)

    def predict(self, schedules: Sequence[Schedule]) -> Floats:
        """The rank that the process expects, as a normal score. Zeros before it is ready."""
        if self._posterior is None or not schedules:
            return np.zeros(len(schedules))
        return self._posterior.mean(self.features.unit(schedules))

    def expected_seconds(self, schedules: Sequence[Schedule]) -> Floats:
        """What the trees that expect a throughput say."""
        return self._judges[THROUGHPUT].expected_seconds(schedules)

    def choose(
        self, schedules: Sequence[Schedule], count: int, pending: Sequence[Schedule] = (), head: str = ""
    ) -> list[int]:
        """By expected improvement given what is pending, or by trees."""
        if head in self._judges and self._judges[head].ready:
            return self._judges[head].choose(schedules, count)
        if self._posterior is None or not schedules:
            return super().choose(schedules, count)
        return self._most_improving(self._posterior, schedules, count, pending)

    def _most_improving(
        self, posterior: Posterior, schedules: Sequence[Schedule], count: int, pending: Sequence[Schedule]
    ) -> list[int]:
        rows = self.features.unit(schedules)
        listed, candidates = posterior.short_list(rows, max(SHORT_LIST, 2 * count))
        under_way = self.features.unit(pending[-BELIEVED:])
        for row, whitened in zip(under_way, posterior.whitened(under_way), strict=True):
            candidates.believe(row, whitened)
        count = min(count, len(listed))
        chosen: list[int] = []
        while len(chosen) < min(count, BELIEVED):
            improvement = candidates.improvement()
            improvement[chosen] = -1.0
            chosen.append(int(np.argmax(improvement)))
            row = rows[[listed[chosen[-1]]]]
            candidates.believe(row[0], posterior.whitened(row)[0])
        improvement = candidates.improvement()
        improvement[chosen] = -1.0
        chosen += np.argsort(-improvement, kind="stable")[: count - len(chosen)].tolist()
        return [int(listed[i]) for i in chosen]

    def _kernel_of(self, schedules: Sequence[Schedule], seconds: Floats) -> Kernel:
        """The kernel of the first measurements, of as many as there were when it was last due."""
        due = LEAST
        while (later := due + max(LEAST, due // 8)) <= len(schedules):
            due = later
        first = (tuple(schedules[:due]), seconds[:due].tobytes())
        if self._fitted is None or self._fitted[0] != first:
            kept = _kept(seconds[:due], MOST_FOR_KERNEL)
            rows = self.features.unit([schedules[i] for i in kept])
            self._fitted = first, fitted_kernel(rows, _targets(seconds[kept]), STEPS)
        return self._fitted[1]


def _kept(seconds: Floats, most: int) -> NDArray[np.intp]:
    """Places of at most `most` measurements, in order: half of them the fastest, half spread over the others."""
    if len(seconds) <= most:
        return np.arange(len(seconds))
    order = np.argsort(seconds, kind="stable")
    fastest, others = order[: most // 2], np.sort(order[most // 2 :])
    spread = others[np.linspace(0, len(others) - 1, most - len(fastest)).astype(np.intp)]
    return np.sort(np.concatenate([fastest, spread]))


def _targets(seconds: Floats) -> Floats:
    """Normal scores of the ranks, standardised: however slow the slow ones are, the fast end is resolved."""
    last = np.nan_to_num(seconds, posinf=np.finfo(np.float64).max)
    scores = norm.ppf((rankdata(last) - 0.5) / len(last))
    deviation = float(scores.std())
    return np.asarray((scores - scores.mean()) / (deviation if deviation > 0 else 1.0), np.float64)


MODEL = HybridModel
