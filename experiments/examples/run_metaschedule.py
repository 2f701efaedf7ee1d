"""Opens MetaSchedule databases with the TVM of the interpreter that runs this, and nothing else of ours.

    python run_metaschedule.py FOLDER...

Every record's program is looked up and, on llvm, compiled and run: with the tuned schedule and as it was before. Prints
JSON: the TVM, and of each folder the traces, how many programs were run, and the largest difference relative to the
result.
"""

import json
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.s_tir import meta_schedule as ms


def results(module: Any, target: Any, tensors: Sequence[Any]) -> Any:
    """What a compiled program makes of the same numbers every time; its last tensor is the output."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([int(n) for n in t.shape]).astype(t.dtype) for t in tensors]
    given = [tvm.runtime.tensor(array) for array in arrays]
    tvm.compile(module, target=target)["main"](*given)
    return given[-1].numpy()


def differences(database: Any) -> list[float]:
    """How far the tuned programs for this CPU are from the same programs without a schedule."""
    found = []
    for record in database.get_all_tuning_records():
        scheduled = database.query_schedule(record.workload.mod, record.target, "main")
        if record.target.kind.name == "llvm":
            here = tvm.target.Target("llvm")
            tuned, plain = (results(m, here, record.args_info) for m in (scheduled.mod, record.workload.mod))
            found.append(float(np.abs(tuned - plain).max() / np.abs(plain).max()))
        else:
            assert scheduled is not None
    return found


def opened(folder: str) -> dict[str, Any]:
    """What the database in `folder` holds."""
    database = ms.database.JSONDatabase(work_dir=folder, allow_missing=False)
    lines = Path(folder, "database_tuning_record.json").read_text().splitlines()
    far = differences(database)
    return {
        "records": len(database),
        "traces": [json.loads(line)[1][0] for line in lines],
        "run": len(far),
        "largest_difference": max(far, default=0.0),
    }


if __name__ == "__main__":
    print(json.dumps({"tvm": metadata.version("apache-tvm"), "folders": {f: opened(f) for f in sys.argv[1:]}}))
