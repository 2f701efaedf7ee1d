"""`autotune train-prior`, the prior that ships, and which prior a search is given."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from autotune.cli import cli
from autotune.prior.choosing import SHIPPED_FILE, chosen_prior, prior_file, prior_name, prior_without_device
from autotune.prior.prior import Prior
from autotune.recordings.finding import find_recordings, read_recording
from autotune.strategies.base import Aids, Result
from autotune.strategies.prior import LAST, PriorGuidedSearch
from search_spaces.errors import BadLog

SPACES = Path(__file__).parents[3] / "experiments" / "spaces"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("prior") / "my.zip"
    results = out.with_name("r.json")
    table = {"columns": ["4"], "rows": {"hybrid": [0.9]}, "spaces": {}}
    results.write_text(json.dumps({"what": "Shares.", "tables": {"device left out": table}}))
    arguments = ["train-prior", *(str(SPACES / f"convolution__{d}.recording.gz") for d in ("a4000", "w6600"))]
    run = CliRunner().invoke(cli, [*arguments, "--out", str(out), "--results", str(results)], catch_exceptions=False)
    assert run.exit_code == 0
    assert "2 tasks" in run.output
    return out


def test_the_card_says_what_it_was_trained_on(trained):
    card = json.loads(trained.with_name("my.card.json").read_text())
    assert [t["device"] for t in card["tasks"]] == ["NVIDIA RTX A4000", "AMD Radeon PRO W6600"]
    assert all("MIT" in t["licence"] for t in card["tasks"])
    assert card["bytes"] == trained.stat().st_size
    text = trained.with_name("my.card.md").read_text()
    assert "| convolution | NVIDIA RTX A4000 | 1 | 4,362 |" in text
    assert "| hybrid | 0.900 |" in text
    assert "Willemsen" in text


def test_choices(trained, tmp_path):
    assert prior_file("none") is None
    assert chosen_prior("none") is None
    assert len(chosen_prior(str(trained)).experiences) == 2
    assert prior_name(str(trained)) != str(trained)
    with pytest.raises(BadLog, match="train-prior"):
        prior_file(str(tmp_path / "nowhere"))


def test_a_device_left_out_is_left_out(trained):
    recording = read_recording(SPACES / "convolution__w6600.recording.gz")
    bound = prior_without_device(str(trained), recording)
    assert [s.experience.device for s in bound.sources] == ["NVIDIA RTX A4000"]
    gemm = read_recording(SPACES / "pnpoly__rtx3090.recording.gz")
    assert prior_without_device(str(trained), gemm) is None
    assert prior_without_device("none", recording) is None


def test_the_shipped_prior_knows_every_recording():
    prior = Prior.load(SHIPPED_FILE)
    recorded = {p.name.split(".")[0] for p in find_recordings([SPACES], SPACES)}
    assert {e.name for e in prior.experiences} >= {n for n in recorded if "h200" not in n}
    assert prior.policy is not None
    assert SHIPPED_FILE.stat().st_size < 4e6
    card = json.loads(SHIPPED_FILE.with_name("prior.card.json").read_text())
    assert {t["name"] for t in card["tasks"]} == {e.name for e in prior.experiences}
    assert all("licence" in t for t in card["tasks"])


def test_the_strategy_hands_over(trained):
    recording = read_recording(SPACES / "convolution__a4000.recording.gz")
    bound = prior_without_device(str(trained), recording)
    search = PriorGuidedSearch(recording.space, np.random.default_rng(0), Aids(prior=bound))
    first = search.ask(4)
    assert first == bound.first(4)
    search.tell([Result(s, float(recording.true_seconds([s])[0])) for s in first])
    search.tell([Result(s, float(recording.true_seconds([s])[0])) for s in recording.space.schedules[:LAST]])
    assert not set(search.ask(8)) & search.told.keys()


def test_the_strategy_without_a_prior_searches(trained):
    recording = read_recording(SPACES / "convolution__a4000.recording.gz")
    search = PriorGuidedSearch(recording.space, np.random.default_rng(0), Aids())
    assert len(set(search.ask(20))) == 20
