"""The sanitizer's command line, its reports, and what becomes of a finalist that it finds something in.

The program itself needs a GPU, and its part is played by a script that runs what it is told to and then reports; the
reports are from NVIDIA's documentation.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.generators.base import Artifact, Resources
from autotune.measurement import Policy, Status
from autotune.sanitizer import (
    PROGRAM,
    TOOLS,
    Report,
    Sanitizer,
    SanitizerJob,
    command_line,
    find_sanitizer,
    parse_report,
    parse_tools,
)
from autotune.tune import Settings, tune
from search_spaces.errors import AutotuneError, MissingDependency
from search_spaces.hardware import cpu_hardware
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

HERE = Path(__file__).parents[2]
TOY = f"{HERE / 'tests' / 'support' / 'toy.py'}:Toy"

CLEAN = """========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 0 errors
"""
MEMCHECK = """========= COMPUTE-SANITIZER
Mallocing memory
========= Invalid __global__ write of size 4 bytes
=========     at unaligned_kernel()+0x50
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x710fdca00001 is misaligned
=========     and is inside the nearest allocation at 0x710fdca00000 of size 4 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: run_unaligned() [0xacd4] in memcheck_demo
=========
Running unaligned_kernel: no error
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sumKernel(int *, int *)+0x90 in block_error.cu:41
=========     and Read access at sumKernel(int *, int *)+0x100 in block_error.cu:51 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
ONLY_WARNED = """========= COMPUTE-SANITIZER
========= Warning: (Warp Level Programming) Potential RAW hazard detected at __shared__ 0x8c in block (0,0,0) :
=========     Write Thread (35,0,0) at sumKernel(int *, int *)+0x90 in warp_error.cu:44
=========     Read Thread (32,0,0) at sumKernel(int *, int *)+0x120 in warp_error.cu:56
=========     Current Value : 35
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""
NO_MEMORY = """========= COMPUTE-SANITIZER
========= Internal Sanitizer Error: The Sanitizer encountered an error while launching k and didn't track the launch.
========= Error: process didn't terminate successfully
========= Target application returned an error
========= ERROR SUMMARY: 0 errors
"""
API_ERROR = """========= COMPUTE-SANITIZER
========= Program hit cudaErrorUnknown (error 999) due to "unknown error" on CUDA API call to cudaMemcpy.
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 1 error
"""


@pytest.mark.parametrize(
    ("text", "report"),
    [
        (CLEAN, Report("", whole=True)),
        (MEMCHECK, Report("Invalid __global__ write of size 4 bytes at unaligned_kernel()+0x50", whole=True)),
        (
            RACECHECK,
            Report(
                "Error: Race reported between Write access at sumKernel(int *, int *)+0x90 in block_error.cu:41",
                whole=True,
            ),
        ),
        (ONLY_WARNED, Report("", whole=True)),
        (NO_MEMORY, Report("", whole=True)),
        (API_ERROR, Report("", whole=True)),
        ("", Report("", whole=False)),
        (MEMCHECK.rpartition("========= ERROR")[0], Report(parse_report(MEMCHECK).finding, whole=False)),
    ],
)
def test_the_first_finding_of_a_report_is_told(text, report):
    assert parse_report(text) == report


def test_the_command_line():
    words = command_line(Path("/usr/bin/compute-sanitizer"), "memcheck", Path("a.job"), Path("a.report"))
    assert words[0] == "/usr/bin/compute-sanitizer"
    assert words[-5:] == [sys.executable, "-P", "-m", "autotune.sanitized", "a.job"]
    options = dict(zip(words[1:-5:2], words[2:-5:2], strict=True))
    assert (options["--tool"], options["--log-file"]) == ("memcheck", "a.report")
    assert options["--report-api-errors"] == "no"
    assert int(options["--padding"]) > 0
    assert int(options["--error-exitcode"]) > 0
    other = command_line(Path("x"), "racecheck", Path("a.job"), Path("a.report"))
    assert not {"--padding", "--report-api-errors"} & set(other), "options of memcheck alone"


def test_tools_are_named_after_commas():
    assert parse_tools(None) == ()
    assert parse_tools("memcheck,racecheck") == ("memcheck", "racecheck")
    assert parse_tools(",".join(TOOLS)) == TOOLS
    with pytest.raises(AutotuneError, match=r"'memchek'; known: memcheck"):
        parse_tools("memchek")


def task():
    hardware = cpu_hardware("test", 2, 1 << 20, 1e12, {"float32": 1e13})
    return Task(TOY, find_operator(TOY).workload("llvm", tricks=1), Target("llvm"), hardware)


def with_trick(trick):
    return Schedule((*task().default.items[:-2], ("trick", trick), ("chunk", 1)))


@pytest.fixture
def stand_in(tmp_path):
    """A script in the program's place; gives a function that says what it does after running the job."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(after):
        path = folder / PROGRAM
        path.write_text(
            f"#!{sys.executable}\n"
            "import pickle, subprocess, sys, time\n"
            "words = sys.argv[1:]\n"
            "log = words[words.index('--log-file') + 1]\n"
            "job = words[words.index(sys.executable):]\n"
            "code = subprocess.run(job).returncode\n"
            "schedule = pickle.load(open(job[-1], 'rb')).schedule\n"
            f"clean, finding = {CLEAN!r}, {MEMCHECK!r}\n"
            f"{after}\n"
            "sys.exit(code)\n"
        )
        path.chmod(0o755)
        return path

    return make


def ask(program, folder, trick="none", seconds=60.0):
    sanitizer = Sanitizer(program, ("memcheck",), folder, seconds)
    artifact = Artifact(str(folder), "", Resources())
    try:
        return sanitizer.check(SanitizerJob(task(), with_trick(trick), artifact, folder, "", 0))
    finally:
        sanitizer.close()


def test_a_finding_and_none(stand_in, tmp_path):
    answer = ask(stand_in("open(log, 'w').write(finding)"), tmp_path)
    assert answer.finding.startswith(
        "compute-sanitizer memcheck: Invalid __global__ write of size 4 bytes at unaligned"
    )
    assert answer.unanswered == ""
    clean = ask(stand_in("open(log, 'w').write(clean)"), tmp_path)
    assert (clean.finding, clean.unanswered) == ("", "")


def test_no_answer_is_no_finding(stand_in, tmp_path):
    silent = ask(stand_in("print('no GPU', file=sys.stderr)"), tmp_path)
    assert (silent.finding, silent.unanswered) == ("", "compute-sanitizer memcheck: no GPU")
    died = ask(stand_in("open(log, 'w').write(clean)"), tmp_path, "exit")
    assert (died.finding, died.unanswered) == ("", "compute-sanitizer memcheck: exit code 3 and no report")
    hung = ask(stand_in("time.sleep(600)"), tmp_path, seconds=4.0)
    assert (hung.finding, hung.unanswered) == ("", "compute-sanitizer memcheck ran longer than 4 s")


def test_the_next_best_takes_the_place_of_one_that_is_refused(stand_in, tmp_path, monkeypatch):
    path = stand_in("open(log, 'w').write(clean if schedule['tile'] == 1 else finding)")
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    plain = Task(TOY, find_operator(TOY).workload("llvm"), Target("llvm"), task().hardware)
    settings = Settings(strategy="random", trials=3, seed=1, policy=Policy(samples=3), sanitize=("memcheck",))
    outcome = tune(plain, settings, tmp_path / "run")
    refused = [m for s, m in outcome.log.trials.items() if s["tile"] != 1]
    assert refused
    assert {m.status for m in refused} == {Status.WRONG_RESULT}
    assert all(m.detail.startswith("compute-sanitizer memcheck: Invalid") for m in refused)
    assert outcome.race.winner["tile"] == 1
    assert outcome.log.races[-1].sanitized == ("memcheck",)


def autotune(*arguments, cwd, **variables):
    return subprocess.run(
        [sys.executable, "-m", "autotune", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(HERE), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_where_it_is_not_installed_the_remedy_is_told_before_anything_is_measured(tmp_path, monkeypatch):
    empty = {"PATH": str(tmp_path), "CUDA_HOME": str(tmp_path)}
    done = autotune("run", "--op", "matmul", "--target", "cuda", "-arch=sm_80", "--sanitize", cwd=tmp_path, **empty)
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(f"autotune: compute-sanitizer is neither on PATH nor in {tmp_path}/bin; install the CUDA")
    for name, value in empty.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MissingDependency):
        find_sanitizer()
    toolkit = tmp_path / "bin" / PROGRAM
    toolkit.parent.mkdir()
    toolkit.touch(0o755)
    assert find_sanitizer() == toolkit


def test_it_is_for_a_gpu(tmp_path):
    done = autotune("run", "--op", TOY, "--target", "llvm", "--sanitize", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip() == "autotune: --sanitize checks kernels of a GPU; leave it out for --target llvm"
    done = autotune("run", "--op", TOY, "--target", "cuda", "--sanitize", "valgrind", cwd=tmp_path)
    assert "unknown tool of compute-sanitizer 'valgrind'" in done.stderr
