"""A real Ray cluster on this machine: each node in a network namespace of its own, joined by one wire.

The second node does not see the repository either, where the interpreter does not live in it: what it runs has come to
it through Ray. Without the right to make namespaces the nodes are two addresses of the loopback device.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
PORT = 6379
RAY = Path(sys.prefix) / "bin" / "ray"
_QUICK = {
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def _quiet(*words):
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


class Cluster:
    """Two nodes at most; `folder` takes their logs and locks, and must have a short name."""

    def __init__(self, folder, **variables):
        self.folder = Path(folder)
        self.variables = variables
        self.names = [f"at{os.getpid() % 10000}{n}" for n in "ab"]
        self.apart = shutil.which("ip") is not None and os.geteuid() == 0 and self._wired()
        network = "10.213.77" if self.apart else f"127.{os.getpid() % 250 + 1}.77"
        self.addresses = [f"{network}.1", f"{network}.2"]
        self.nodes = [None, None]

    def _wired(self):
        one, two = self.names
        made = all(_quiet("ip", "netns", "add", n) for n in self.names)
        made = made and _quiet(
            "ip", "link", "add", one, "netns", one, "type", "veth", "peer", "name", two, "netns", two
        )
        for i, name in enumerate(self.names, start=1):
            made = made and _quiet("ip", "-n", name, "addr", "add", f"10.213.77.{i}/24", "dev", name)
            made = made and all(_quiet("ip", "-n", name, "link", "set", d, "up") for d in (name, "lo"))
        if not made:
            self._unwire()
        return made

    def _unwire(self):
        for name in self.names:
            _quiet("ip", "netns", "del", name)

    @property
    def address(self):
        return f"{self.addresses[0]}:{PORT}"

    def _where(self, node, hide=False):
        words = ["ip", "netns", "exec", self.names[node]] if self.apart else []
        if hide and self.apart and not Path(sys.prefix).is_relative_to(ROOT):
            words += ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none {ROOT} && exec "$@"', "sh"]
        return words

    def start(self, node):
        """Starts a node where it is not up; 0 is the head, which is waited for."""
        if self.nodes[node] is not None:
            return
        words = [
            str(RAY),
            "start",
            "--block",
            "--num-cpus=1",
            "--object-store-memory=90000000",
            "--disable-usage-stats",
        ]
        words += [f"--node-ip-address={self.addresses[node]}"]
        head = ["--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={self.folder}/r"]
        words += [f"--address={self.address}"] if node else head
        locks = self.folder / f"locks{node}"
        log = (self.folder / f"node{node}.log").open("ab")
        self.nodes[node] = subprocess.Popen(
            [*self._where(node, hide=node > 0), *words],
            env={**os.environ, **_QUICK, "AUTOTUNE_LOCK_DIR": str(locks), "PYTHONPATH": "", **self.variables},
            cwd="/",
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        if not node:
            self._wait_for_head()

    def _wait_for_head(self):
        words = [*self._where(0), str(RAY), "health-check", f"--address={self.address}"]
        until = time.monotonic() + 90
        while not _quiet(*words):
            assert time.monotonic() < until, (self.folder / "node0.log").read_text()[-2000:]
            time.sleep(0.5)

    def kill(self, node):
        """Ends a node as a power cut does."""
        made, self.nodes[node] = self.nodes[node], None
        if made is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in [*psutil.Process(made.pid).children(recursive=True), psutil.Process(made.pid)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
        made.wait()

    def popen(self, *words, **variables):
        """A process on the head's machine."""
        return subprocess.Popen(
            [*self._where(0), sys.executable, *map(str, words)],
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT), **variables},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def close(self):
        for node in (1, 0):
            self.kill(node)
        if self.apart:
            for name in self.names:
                found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
                for pid in found.stdout.split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.2)
            self._unwire()
