"""What a prior is worth where it has not seen the device, the shape or the vendor: recorded spaces, replayed.

python experiments/prior_leave_one_out.py --prior autotune/prior/shipped/prior.zip --seeds 15

writes experiments/results/prior_leave_one_out.json, which `autotune train-prior --results` puts into the prior's card.
For every recorded space the prior is bound without the tasks that are left out, its policy taught anew by the others.
The share of the optimum after k measurements is the true speed of the schedule that measured fastest among them.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from autotune.clock import now
from autotune.comparison.replay import replay
from autotune.environment import read_environment
from autotune.prior.experience import Experience
from autotune.prior.kinship import distance, vendor
from autotune.prior.prior import Prior
from autotune.prior.source import matches
from autotune.recordings.finding import find_recordings, read_recording
from autotune.recordings.recording import Recording
from autotune.strategies.base import Aids, Result, Strategy, TaskPrior
from search_spaces.space import Schedule, ScheduleSpace

BUDGETS = (1, 4, 16, 32, 64, 100)
FOLDER = Path(__file__).parent
RESULT = FOLDER / "results" / "prior_leave_one_out.json"
WHAT = (
    "Median share of the optimum after so many measurements, and share of runs within 5 % of it after 16, 32 and 100; "
    "means over recorded spaces. Scratch is the hybrid search without a prior."
)


class PriorAlone(Strategy):
    """What the prior proposes, nothing else."""

    uses_prior = True

    def ask(self, count: int) -> list[Schedule]:
        """The prior's next schedules."""
        asked = self.aids.prior.propose(self.rng, count, self.seen)
        self.seen.update(asked)
        return asked

    def tell(self, results: list[Result]) -> None:
        """Tells the prior."""
        super().tell(results)
        self.aids.prior.tell(results)


class NearestTask(Strategy):
    """The fastest schedules of the most similar task, in their order."""

    uses_prior = True

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        prior = self.aids.prior
        schedules = list(space)
        believed = prior.sources[0].slowdown(schedules, prior.encoding(schedules))
        self._order = [schedules[i] for i in np.argsort(np.nan_to_num(believed, nan=np.inf), kind="stable")]

    def ask(self, count: int) -> list[Schedule]:
        """The next ones."""
        asked = [s for s in self._order if s not in self.seen][:count]
        self.seen.update(asked)
        return asked


SEARCHES = {
    "nearest task's fastest, in order": f"{__file__}:NearestTask",
    "prior alone": f"{__file__}:PriorAlone",
    "strategy prior": "prior",
    "hybrid": "hybrid",
    "hybrid from scratch": "hybrid",
    "random": "random",
}


def other_device(recording: Recording) -> Callable[[Experience], bool]:
    """Nothing that ran on the recording's device."""
    return lambda e: e.device != recording.device


def other_shape(recording: Recording) -> Callable[[Experience], bool]:
    """The same device, other tasks; an axis that only one of two tells of makes none of them another one."""
    here = recording.kernel, recording.device
    return lambda e: (e.kernel, e.device) != here or distance(recording.context, recording.device, e, same=True) > 0.0


def other_vendor(recording: Recording) -> Callable[[Experience], bool]:
    """Nothing that ran on a device of the same vendor."""
    return lambda e: vendor(e.device) != vendor(recording.device)


LEFT_OUT = {"device": other_device, "shape": other_shape, "shape searched": other_shape, "vendor": other_vendor}


@lru_cache(maxsize=4)
def read(path: str) -> Recording:
    """A recording, read once by each process."""
    return read_recording(Path(path))


@lru_cache(maxsize=1)
def whole(prior: str) -> Prior:
    """The prior of a file."""
    return Prior.load(Path(prior))


@lru_cache(maxsize=64)
def part(prior: str, names: frozenset[str]) -> Prior:
    """What the tasks of these names taught."""
    return whole(prior).only(lambda e: e.name in names).taught()


def bound(prior: str, names: frozenset[str], recording: Recording) -> TaskPrior | None:
    """That, for the task of a recording."""
    return part(prior, names).for_task(recording.space, recording.context, recording.device)


def related(prior: str, path: str, left_out: str) -> frozenset[str]:
    """The tasks that know something of a recording's and are not left out."""
    recording = read(path)
    keep = LEFT_OUT[left_out](recording)
    return frozenset(e.name for e in whole(prior).experiences if keep(e) and matches(recording.space, e))


def shares(prior: str, names: frozenset[str], path: str, search: str, seed: int, trials: int) -> list[float]:
    """The share of the optimum after each measurement of one search."""
    recording = read(path)
    prior_for = None if "scratch" in search else partial(bound, prior, names)
    trace = replay(recording, SEARCHES[search], seed, trials=trials, batch=8, prior_for=prior_for)
    if trace.error:
        raise RuntimeError(f"{search} on {path}: {trace.error}")
    observed = np.array([np.inf if t is None else t for t in trace.observed])
    true = recording.seconds[list(trace.places)]
    best = [int(np.argmin(observed[: k + 1])) for k in range(len(observed))]
    found = (recording.optimum / true[best]).tolist()
    return found + found[-1:] * (trials - len(found))


def measured(prior: str, left_out: str, paths: list[str], options: argparse.Namespace) -> dict[str, object]:
    """Tables of one way of leaving out."""
    known = {path: names for path in paths if (names := related(prior, path, left_out))}
    trials = BUDGETS[-1]
    rows: dict[str, list[float]] = {}
    spaces: dict[str, Mapping[str, list[float]]] = {Path(path).name.split(".")[0]: {} for path in known}
    with ProcessPoolExecutor(options.jobs) as pool:
        for search in options.searches:
            lines = []
            for path, names in known.items():
                run = partial(shares, prior, names, path, search, trials=trials)
                runs = np.array(list(pool.map(run, range(options.seeds))))
                medians = [float(np.median(runs[:, k - 1])) for k in BUDGETS]
                within = [float((runs[:, k - 1] >= 0.95).mean()) for k in (16, 32, 100)]
                lines.append(medians + within)
                spaces[Path(path).name.split(".")[0]] |= {search: [round(n, 4) for n in medians + within]}
                print(left_out, search, Path(path).name, np.round(lines[-1], 3), flush=True)
            rows[search] = [round(float(n), 4) for n in np.mean(lines, axis=0)]
    columns = [*map(str, BUDGETS), "5 % at 16", "5 % at 32", "5 % at 100"]
    return {"columns": columns, "rows": rows, "spaces": spaces}


def main() -> None:
    """Runs all and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prior", default="autotune/prior/shipped/prior.zip")
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--left-out", nargs="+", choices=LEFT_OUT, default=list(LEFT_OUT))
    options = parser.parse_args()
    own = [str(p) for p in find_recordings([FOLDER / "spaces" / "h200"])]
    others = [str(p) for p in find_recordings([FOLDER / "spaces"]) if str(p) not in own]
    searched = [str(p) for p in find_recordings([FOLDER / "searches"])]
    spaces = {"device": others, "vendor": others, "shape": own, "shape searched": searched}
    tables = {}
    for left_out in options.left_out:
        tables[f"{left_out} left out"] = measured(options.prior, left_out, spaces[left_out], options)
        result = {
            "what": WHAT,
            "date": now().date().isoformat(),
            "seeds": options.seeds,
            "environment": read_environment({}).versions,
            "tables": tables,
        }
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
