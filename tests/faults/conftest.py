"""Every test here hurts a real run."""

from pathlib import Path

import pytest

from tests.support.faults import Place


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.faults)
            item.add_marker(pytest.mark.long)


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    for process in made.processes():
        process.kill()
