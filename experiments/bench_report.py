"""One report a suite from benchmarks that were measured in parts, on a machine that is there for minutes at a time.

    python experiments/bench_report.py experiments/results/bench FOLDER...

Each FOLDER holds folders that `autotune bench --out` wrote. Of a workload measured more than once the newest result
counts; one of no shipped suite is left out.
"""

import sys
from pathlib import Path

import msgspec

from autotune.benchmark.report import write_report
from autotune.benchmark.result import CaseResult
from autotune.benchmark.suite import cases, load_suite, shipped


def main() -> None:
    """Writes markdown, JSON and a picture for each suite of which anything was measured."""
    out, folders = Path(sys.argv[1]), map(Path, sys.argv[2:])
    found = [
        msgspec.json.decode(path.read_bytes(), type=CaseResult)
        for folder in folders
        for path in folder.rglob("cases/*.json")
    ]
    newest = {r.asked.case.title: r for r in sorted(found, key=lambda r: r.date)}
    for suite in map(load_suite, shipped()):
        known = [newest[case.title] for case in cases(suite) if case.title in newest]
        if not known:
            continue
        print(f"{suite.name}: {len(known)} of {len(list(cases(suite)))} workloads")
        write_report(out, suite.name, {suite.name: known}, [suite], {}, print)


if __name__ == "__main__":
    main()
