"""A run opens no port that anybody beyond this machine could reach."""

import ipaddress
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from autotune.journal import FILE

HERE = Path(__file__).parents[2]
TOY = f"{HERE / 'tests' / 'support' / 'toy.py'}:Toy"


def listening(processes):
    """Addresses that processes listen at."""
    found = set()
    for process in processes:
        try:
            found |= {c.laddr.ip for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_a_run_with_everything_about_it_listens_nowhere_but_on_loopback(tmp_path):
    words = ["run", "--op", TOY, "--shape", "tricks=0,N=4096", "--strategy", "random", "--trials", "60", "--out", "run"]
    run = subprocess.Popen(
        [sys.executable, "-m", "autotune", *words, "--quiet", "--mlflow", "sqlite:///store.db"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    root, seen, addresses, most = psutil.Process(run.pid), set(), set(), 0
    deadline = time.monotonic() + 170
    while run.poll() is None and time.monotonic() < deadline:
        family = [root, *root.children(recursive=True)]
        seen |= {p.pid for p in family}
        most = max(most, len(family))
        addresses |= listening(family)
        time.sleep(0.2)
    _, err = run.communicate(timeout=30)
    assert run.returncode == 0, err
    assert (tmp_path / "run" / FILE).is_file()
    assert most >= 4, "the run, the process server, builders and worker, and who follows for MLflow"
    assert not [a for a in addresses if not ipaddress.ip_address(a).is_loopback]
