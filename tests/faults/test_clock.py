"""A wall clock that jumps back by a day in the middle of a run changes nothing but what it says of the date."""

import shutil
import subprocess
import sys

import pytest

from autotune.measurement import Status
from tests.support.faults import TUNE, end, trials_in, wait_until, whole

# Under every process of a run: the wall clock is a day behind once the file named by JUMP is there.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int jumped(void) { const char *mark = getenv("JUMP"); return mark && access(mark, F_OK) == 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME && jumped()) now->tv_sec -= 86400;
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return result;
}

time_t time(time_t *where) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (where) *where = exact.tv_sec;
    return exact.tv_sec;
}
"""
SEES = """
import pathlib, sys, time
before = time.time()
pathlib.Path(sys.argv[1]).touch()
print(time.time() - before < -80000, time.monotonic() > 0)
"""


@pytest.fixture
def shim(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "jump.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "jump.so", "jump.c", "-ldl"], cwd=tmp_path, check=True)
    return {"LD_PRELOAD": str(tmp_path / "jump.so"), "JUMP": str(tmp_path / "jumped")}


def test_a_clock_that_jumps_back_is_not_noticed(place, shim):
    run = place.start(*TUNE, "--out", place.run, **shim)
    wait_until(lambda: trials_in(place.run) >= 3)
    (place.folder / "jumped").touch()
    end(run)
    trials = whole(place.run)
    assert {t.status for t in trials} == {Status.OK}
    assert [t.at for t in trials] == sorted(t.at for t in trials)
    assert all(t.phases.build >= 0 and t.phases.measure >= 0 for t in trials)
    assert trials[-1].at < 3600


def test_the_jump_is_one(place, shim):
    words = [sys.executable, "-c", SEES, shim["JUMP"]]
    seen = subprocess.run(words, env=place.variables(**shim), capture_output=True, text=True, check=True)
    assert seen.stdout.split() == ["True", "True"]
