"""The page on fleets shows what was simulated and replayed, no figure typed in by hand."""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_are_those_of_the_results():
    spec = importlib.util.spec_from_file_location("fleet_scaling", ROOT / "experiments" / "fleet_scaling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "fleet.md").read_text()
    result = json.loads((ROOT / "experiments" / "results" / "fleet_scaling.json").read_text())
    tables = module.tables(result)
    assert len(tables) == 3
    for table in tables:
        assert table in page
