import os

import pytest

# Most tests run the command line for other reasons than tracking.
os.environ["AUTOTUNE_MLFLOW"] = "none"


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory):
    """Test processes run at once, and each tunes on this machine's CPU."""
    folder = tmp_path_factory.mktemp("locks")
    os.environ["AUTOTUNE_LOCK_DIR"] = str(folder)
    return folder
