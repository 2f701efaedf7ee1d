"""An agent of one's own: MaskablePPO of sb3-contrib, trained on a recorded space, against random search.

pip install 'kernel-autotune[rl]'
python experiments/examples/train_ppo_sb3.py experiments/spaces/gemm__rtx2080ti.recording.gz --steps 6000

Both designs of the actions are trained. What counts is the best schedule after so many *different* schedules were
measured: an agent that goes back to what it knows measures nothing. Random search is drawn without repetition.
"""

import json
import statistics
from pathlib import Path

import click
import numpy as np

from autotune.clock import now
from autotune.gym_env import AdjustSchedule, BuildSchedule
from autotune.recordings.finding import read_recording
from search_spaces.registry import optional

BUDGETS = (50, 100, 200, 400)
DESIGNS = {"adjust": AdjustSchedule, "build": BuildSchedule}


def share_of_optimum(recording, known):
    """True speed of what looked fastest among the first measurements, over that of the optimum; one for each budget."""
    schedules, times = list(known), np.array(list(known.values()))
    shares = {}
    for budget in BUDGETS:
        if len(times) >= budget:
            chosen = schedules[int(np.argmin(times[:budget]))]
            shares[budget] = recording.optimum / float(recording.true_seconds([chosen])[0])
    return shares


def trained(recording, design, steps, seed):
    """Everything an agent measured while it was trained for so many steps, in order."""
    torch, contrib = optional("torch", "rl"), optional("sb3_contrib", "rl")
    torch.set_num_threads(1)
    env = DESIGNS[design](recording.space, recording.measure, recording.context, seed=seed)
    agent = contrib.MaskablePPO(
        "MlpPolicy", env, n_steps=256, batch_size=64, gamma=0.9 if design == "adjust" else 1.0, ent_coef=0.02, seed=seed
    )
    agent.learn(total_timesteps=steps)
    return env.known


def random_search(recording, seed):
    """As many schedules as the largest budget, without repetition."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(recording.space.schedules))[: max(BUDGETS)]
    return {recording.space.schedules[i]: recording.measure(recording.space.schedules[i], rng) for i in order}


def summary(runs):
    """Median share of the optimum and share of runs within 5 % of it, for the budgets that all runs reached."""
    rows = {}
    for budget in BUDGETS:
        shares = [run[budget] for run in runs if budget in run]
        if len(shares) == len(runs):
            within = sum(share >= 0.95 for share in shares) / len(shares)
            rows[budget] = {"median_share_of_optimum": round(statistics.median(shares), 4), "within_5_percent": within}
    return rows


@click.command()
@click.argument("recording", type=click.Path(exists=True, path_type=Path))
@click.option("--steps", default=6000, show_default=True, help="Steps that each agent is trained for.")
@click.option("--seeds", default=5, show_default=True, help="Agents of each design, and runs of random search.")
@click.option("--out", type=click.Path(path_type=Path), help="Where the result is written as JSON.")
def main(recording, steps, seeds, out):
    """Trains agents on RECORDING and prints what they found, beside random search."""
    space = read_recording(recording)
    result = {
        "date": now().isoformat(timespec="seconds"),
        "question": "best schedule after so many different measurements, while an agent is trained",
        "space": space.name,
        "steps": steps,
        "seeds": seeds,
        "versions": {name: optional(name, "rl").__version__ for name in ("gymnasium", "sb3_contrib", "torch")},
        "random": summary([share_of_optimum(space, random_search(space, seed)) for seed in range(seeds)]),
    }
    for design in DESIGNS:
        runs = [trained(space, design, steps, seed) for seed in range(seeds)]
        result[design] = {
            "measured": [len(known) for known in runs],
            "failures": [sum(map(np.isinf, known.values())) for known in runs],
            **summary([share_of_optimum(space, known) for known in runs]),
        }
    text = json.dumps(result, indent=1, default=int)
    print(text)
    if out:
        out.write_text(text + "\n")


if __name__ == "__main__":
    main()
