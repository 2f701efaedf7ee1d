"""The default: what other tasks taught first, then several models and a local search that share what is measured."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import ClassVar

import numpy as np

from autotune.search.pool import INCUMBENTS, Neighbourhoods, Pool
from autotune.search.shares import Shares
from autotune.search.spread import Spread
from autotune.strategies.base import Aids, Result, Strategy
from search_spaces.space import Schedule, ScheduleSpace

# Measurements before the models are asked.
WARM_UP = 8
# The prior proposes all until so much was asked; its share then falls with the measurements, to none at all.
LEAD, HALF_LIFE, LAST = 24, 24, 128
# Schedules drawn from the prior's policy for each round of candidates.
FROM_POLICY = 32
# Candidates are ranked anew when there are so many more results, as a share of those there are; of many results it
# takes more to change a ranking.
NEWS, MANY, NEWS_OF_MANY = 0.04, 200, 0.1
# Fastest schedules whose neighbourhoods are measured whole, one after the other.
POLISHED = 4
# The best of so many further sketches are bred from as well.
LEADERS = 4
PRIOR, POLISH, EXPLORE = "prior", "polish", "explore"
# Of the choices at the start; the heads of the model share the rest.
WEIGHTS = {POLISH: 0.1, EXPLORE: 0.06}
# While a sketch was tried less often than this, exploration has more.
FAIR_TRIES, FAIR_WEIGHT = 6, 0.25


class HybridSearch(Strategy):
    """Arms that choose in turn, with shares that follow what paid; all learn from all that is measured.

    The arms: each head of the cost model, over the neighbourhoods of the fastest schedules and random candidates;
    polish, which measures the neighbourhoods of the fastest schedules whole, so that no search ends beside a better
    neighbour; and random exploration, of the sketch tried least. Before them, while there is a prior, it proposes,
    and ever less as the task's own measurements grow.

    Attributes:
        weights: What the arms beside the model's heads are given of the choices, before it is known what pays.
        deaf: Heads of the model that are not listened to.
        policy: Whether the prior's policy adds candidates.
    """

    model = "hybrid"
    uses_prior = True
    weights: ClassVar[Mapping[str, float]] = WEIGHTS
    deaf: ClassVar[frozenset[str]] = frozenset()
    policy: ClassVar[bool] = True

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._near = Neighbourhoods(space, rng)
        self._pool = Pool(space, rng, self._near)
        self._spread = Spread(space, self.fresh)
        # A score without heads is one opinion.
        heads_given = self.aids.heads or (() if self.aids.score is None else ("order",))
        self._heads = [h for h in heads_given if h not in self.deaf]
        left = 1.0 - sum(self.weights.values())
        heads = {h: left / len(self._heads) for h in self._heads}
        self._shares = Shares({**heads, **self.weights})
        known = frozenset() if self.aids.prior is None else self.aids.prior.sketches
        self._strangers = [s.sketch for s in space.sketches if s.sketch not in known]
        # Who chose what is being measured, and what was chosen but not yet asked.
        self._choosers: dict[Schedule, str] = {}
        self._backlog: deque[tuple[Schedule, str]] = deque()
        self._ranked_at = 0

    def ask(self, count: int) -> list[Schedule]:
        """What the prior proposes, then what the arms choose; of sketches that it does not know, some in between."""
        asked: list[Schedule] = []
        if self.aids.prior is not None:
            self._take([(s, EXPLORE) for s in self._strange(count)], asked)
            left = count - len(asked)
            # Rounded at random, so that a small ask is at times the prior's and at times not.
            wanted = min(left, math.floor(left * self._prior_share() + self.rng.random()))
            proposed = self.aids.prior.propose(self.rng, wanted, self.seen) if wanted else []
            self._take([(s, PRIOR) for s in proposed], asked)
        while len(asked) < count:
            chosen = self._next(count - len(asked))
            if chosen is None:
                break
            self._take([chosen], asked)
        return asked + self.fresh_many(count - len(asked))

    def _strange(self, count: int) -> list[Schedule]:
        """Schedules of sketches that are new to the prior, which proposes none of them, until they had a fair trial."""
        strange = self._spread.neglected(self._strangers, FAIR_TRIES)
        wanted = sum(self.rng.random() < FAIR_WEIGHT for _ in range(count)) if strange else 0
        return list(dict.fromkeys(s for _ in range(wanted) if (s := self._spread.draw(strange)) is not None))

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in, and credits who chose them: what paid is a new fastest schedule."""
        for result in results:
            best = self.best(1)
            super().tell([result])
            chooser = self._choosers.pop(result.schedule, None)
            if chooser is not None and chooser != PRIOR:
                self._shares.credit(chooser, float(self.best(1) != best))
        if self.aids.prior is not None:
            self.aids.prior.tell(results)

    def chooser_of(self, schedule: Schedule) -> str | None:
        """Who chose a schedule that is being measured: the prior or an arm; None where it is not."""
        return self._choosers.get(schedule)

    def _take(self, chosen: Sequence[tuple[Schedule, str]], asked: list[Schedule]) -> None:
        """Asks them: only what is asked counts as seen."""
        for schedule, chooser in chosen:
            self.seen.add(schedule)
            self._spread.note(schedule)
            self._choosers[schedule] = chooser
            asked.append(schedule)

    def _prior_share(self) -> float:
        """Of an ask, what the prior proposes."""
        tried = len(self.seen)
        if tried < LEAD:
            return 1.0
        return 0.0 if tried >= LAST else 0.5 ** ((tried - LEAD) / HALF_LIFE)

    def _next(self, wanted: int) -> tuple[Schedule, str] | None:
        """The next choice; None where the arms know of none."""
        if len(self.told) < WARM_UP:
            drawn = self._spread.draw()
            return None if drawn is None else (drawn, EXPLORE)
        if len(self.told) - self._ranked_at > _news(self._ranked_at):
            self._backlog.clear()
        if not self._backlog:
            self._rank(max(wanted, math.ceil(_news(len(self.told)))))
        while self._backlog:
            schedule, chooser = self._backlog.popleft()
            if schedule not in self.seen:
                return schedule, chooser
        return None

    def _rank(self, count: int) -> None:
        """Has the arms choose the next `count` schedules, in the order in which their turns come."""
        self._ranked_at = len(self.told)
        if EXPLORE in self.weights:
            fair = self._spread.least >= FAIR_TRIES
            self._shares.reweigh(EXPLORE, self.weights[EXPLORE] if fair else FAIR_WEIGHT)
        turns = [self._shares.deal() for _ in range(count)]
        wanted = Counter(turns)
        pending = list(self._choosers)
        choices = {EXPLORE: deque(s for _ in range(wanted[EXPLORE]) if (s := self._spread.draw()) is not None)}
        choices[POLISH] = deque(self._polish(wanted[POLISH]))
        pending += choices[POLISH]
        taken = {*choices[EXPLORE], *choices[POLISH]}
        # What an arm could not choose is left to the heads.
        missing = sum(wanted[arm] - len(choices[arm]) for arm in (EXPLORE, POLISH))
        offered = self._candidates() if missing or sum(wanted[h] for h in self._heads) else []
        # One tuple for all heads, so that its features are looked up once.
        pool = tuple(s for s in offered if s not in taken)
        gone: set[int] = set()
        for head in self._heads:
            share = wanted[head] + missing
            places = self._choose(pool, share and share + len(gone), pending, head)
            left = list(islice((i for i in dict.fromkeys(places) if i not in gone), share))
            choices[head] = deque(pool[i] for i in left)
            pending += choices[head]
            gone.update(left)
            missing = 0
        self._backlog.extend((choices[arm].popleft(), arm) for arm in turns if choices[arm])
        self._backlog.extend((s, arm) for arm, left in choices.items() for s in left)

    def _choose(self, pool: Sequence[Schedule], count: int, pending: Sequence[Schedule], head: str) -> list[int]:
        """Places of the most promising of the pool, by one head."""
        if not count or not pool:
            return []
        if self.aids.choose is not None:
            return self.aids.choose(pool, count, pending, head)
        return [] if self.aids.score is None else np.argsort(self.aids.score(pool), kind="stable")[:count].tolist()

    def _candidates(self) -> list[Schedule]:
        incumbents = self.best(INCUMBENTS)
        leaders = [s for s in self.memory.leaders() if s not in incumbents]
        prior = self.aids.prior if self.policy and self._prior_share() > 0.0 else None
        drawn = (prior.sample(self.rng) for _ in range(FROM_POLICY)) if prior is not None else ()
        return self._pool.round([*incumbents, *leaders[:LEADERS]], [s for s in drawn if s is not None], self.seen)

    def _polish(self, count: int) -> list[Schedule]:
        """Neighbours of the fastest that were never asked, those of the next fastest only when there are no more."""
        found: dict[Schedule, None] = {}
        for incumbent in self.best(POLISHED) if count else ():
            left = [s for s in self._near(incumbent) if s not in self.seen and s not in found]
            if left and self.aids.score is not None:
                left = [left[i] for i in np.argsort(self.aids.score(left), kind="stable")]
            found.update(dict.fromkeys(left[: count - len(found)]))
        return list(found)


def _news(told: int) -> float:
    """Results after which what was ranked is old, given how many there were."""
    return told * (NEWS if told < MANY else NEWS_OF_MANY)


class NoPrior(HybridSearch):
    """Without what was learnt of other tasks."""

    uses_prior = False


class NoPolicy(HybridSearch):
    """With a prior, but without candidates of its policy."""

    policy = False


class NoModel(HybridSearch):
    """Without a cost model."""

    model = ""


class NoProcess(HybridSearch):
    """Without the expected improvement of a Gaussian process."""

    deaf = frozenset({"improvement"})


class NoClassifier(HybridSearch):
    """Without the classifier of the fast schedules."""

    deaf = frozenset({"fast"})


class NoRegression(HybridSearch):
    """Without the trees that expect a throughput."""

    deaf = frozenset({"throughput"})


class NoPolish(HybridSearch):
    """Without the neighbourhoods of the fastest."""

    weights: ClassVar[Mapping[str, float]] = {EXPLORE: WEIGHTS[EXPLORE]}


STRATEGY = HybridSearch
