"""The command line as a user meets it: real processes, exit codes, one clear line for every mistake."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.journal import FILE, Journal, load_runs

TOY = f"{Path(__file__).parents[1] / 'support' / 'toy.py'}:Toy"
HERE = Path(__file__).parents[2]


def autotune(*arguments, cwd, check=0, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "autotune", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(HERE), **environment},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == check, done.stdout + done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    return done


def tune_toy(cwd, *more, check=0, trials=12):
    common = ("run", "--op", TOY, "--target", "llvm", "--strategy", "random", "--trials", trials, "--quiet")
    return autotune(*common, *more, cwd=cwd, check=check)


MISTAKES = [
    (("run", "--op", "matmull"), 2, "unknown operator 'matmull'; did you mean 'matmul'"),
    (("run", "--op", "matmul", "--strategy", "xbg"), 2, "did you mean 'xgb'"),
    (("run", "--op", "matmul", "--target", "cuda", "-arch=sm_81"), 2, "unknown CUDA arch 'sm_81'"),
    (("run", "--op", "matmul", "--target", "cuda -arch=sm_80", "-arch=sm_90"), 2, "contradicts"),
    (("run", "--op", "matmul", "--target", "vulkan"), 2, "unknown target 'vulkan'"),
    (("run", "--op", "matmul", "--dtype", "float61"), 2, "did you mean 'float16'"),
    (("run", "--op", "matmul", "--shape", "M=512,Q=3"), 2, "unknown axis of matmul 'Q'"),
    (("run", "--op", "matmul", "--shape", "M=0"), 2, "M=0 is impossible"),
    (("run", "--op", "matmul", "--shape", "M=big"), 2, "write axes as NAME=NUMBER"),
    (("run", "--op", "attention", "--shape", "H=8,G=3"), 2, "do not divide"),
    (("run", "--op", "attention", "--shape", "D=100"), 2, "D must be 16 or 32"),
    (("run", "--op", "matmul", "--sketch", "tvm.nothing"), 2, "unknown sketch 'tvm.nothing'"),
    (("run",), 2, "name one with --op"),
    (("run", "--op", "matmul", "--trials", "none"), 2, "See 'autotune run --help'"),
    (("run", "--op", "missing.py:MyOp"), 2, "no file"),
    (("rnu",), 2, "did you mean 'run'"),
    (("run", "--op", "matmul", "--target", "cuda", "-arch=sm_80"), 4, "add --compile-only"),
    (("run", "--op", "matmul", "--target", "cuda"), 2, "add for example -arch=sm_80"),
    (("best", "nothing"), 5, "no journal at nothing"),
    (("best",), 5, "no runs in autotune-runs"),
    (("show", "nothing"), 5, "no journal at nothing"),
    (("explain", "nothing"), 5, "no journal at nothing"),
    (("verify", "nothing"), 5, "no journal at nothing"),
    (("verify", "nothing.json"), 5, "no tuned log at nothing.json"),
    (("verify", "nothing", "--policy", "lax"), 2, "See 'autotune verify --help'"),
    (("verify", "nothing", "--top", "9"), 2, "See 'autotune verify --help'"),
    (("run", "--resume", "nothing"), 5, "no journal at nothing"),
    (("run", "--resume"), 5, "no run to resume"),
]


@pytest.mark.parametrize(("arguments", "code", "says"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
def test_a_mistake_gets_one_line_with_the_remedy(arguments, code, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["autotune", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    assert stop.value.code == code
    assert says in err
    assert len(err.strip().splitlines()) == 1
    assert not out


def test_a_user_file_that_does_not_import_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    done = autotune("run", "--op", "broken.py:MyOp", cwd=tmp_path, check=2)
    assert "broken.py cannot be imported: ModuleNotFoundError" in done.stderr


def test_an_output_folder_that_cannot_be_made_is_refused_before_tuning(tmp_path):
    (tmp_path / "file").write_text("")
    done = tune_toy(tmp_path, "--out", "file/run", check=7)
    assert "choose another --out" in done.stderr


def test_help_lists_every_command(tmp_path):
    done = autotune("--help", cwd=tmp_path)
    folder = HERE / "autotune" / "commands"
    for path in folder.glob("[a-z]*.py"):
        assert path.stem.replace("_", "-") in done.stdout


def test_help_imports_nothing_heavy(tmp_path):
    done = autotune("--help", cwd=tmp_path, PYTHONPROFILEIMPORTTIME="1")
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "autotune" in imported
    heavy = {"numpy", "tvm", "triton", "torch", "xgboost", "sklearn", "mlflow", "pandas", "rich", "scipy", "msgspec"}
    assert not heavy & imported, "they belong to the commands"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell, tmp_path):
    assert "_AUTOTUNE_COMPLETE" in autotune("completion", shell, cwd=tmp_path).stdout


def test_completion_offers_operators(tmp_path):
    words = {"_AUTOTUNE_COMPLETE": "bash_complete", "COMP_WORDS": "autotune run --op ma", "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'autotune'; from autotune.cli import main; main()"],
        env={**os.environ, **words, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "matmul" in done.stdout


def test_ops_and_doctor(tmp_path):
    assert {o["name"] for o in json.loads(autotune("ops", "--json", cwd=tmp_path).stdout)} >= {"matmul", "softmax"}
    assert "attention" in autotune("ops", cwd=tmp_path).stdout
    doctor = json.loads(autotune("doctor", "--json", cwd=tmp_path).stdout)
    assert doctor["devices"][0]["kind"] == "llvm"
    assert "numpy" in doctor["environment"]["versions"]
    assert "generator tvm" in autotune("doctor", cwd=tmp_path).stdout


def test_run_leaves_a_journal_and_a_tuned_log_that_best_and_show_read(tmp_path):
    done = tune_toy(tmp_path, "--json", "--out", "run")
    result = json.loads(done.stdout)
    assert result["new_trials"] == 12
    assert result["entry"]["raced"]
    assert result["library_seconds"]["numpy"] > 0
    from_journal = json.loads(autotune("best", "run", "--json", cwd=tmp_path).stdout)
    from_log = json.loads(autotune("best", "run/tuned-log.json", "--json", cwd=tmp_path).stdout)
    assert from_journal == from_log == [result["entry"]]
    assert "roofline" in autotune("best", "run", cwd=tmp_path).stdout
    assert "12 ok" in autotune("show", "run", cwd=tmp_path).stdout
    rows = autotune("show", "run", "--json", cwd=tmp_path).stdout.splitlines()
    assert len(rows) == 12


def test_explain_tells_why_the_best_won_and_verify_whether_it_still_does(tmp_path):
    tune_toy(tmp_path, "--out", "run")
    shown = autotune("explain", "run", cwd=tmp_path).stdout
    assert "memory binds" in shown
    assert "other values (trials)" in shown
    (explained,) = json.loads(autotune("explain", "run", "--json", cwd=tmp_path).stdout)
    assert {k["knob"] for k in explained["knobs"]} == {"tile", "width", "order", "trick", "chunk"}
    holds = autotune("verify", "run", "--op", TOY, "--tolerance", 500, "--json", cwd=tmp_path)
    assert [row["state"] for row in json.loads(holds.stdout)] == ["holds"]
    log = json.loads((tmp_path / "run" / "tuned-log.json").read_text())
    log["entries"][0]["seconds"] /= 50
    (tmp_path / "regressed.json").write_text(json.dumps(log))
    done = autotune("verify", "regressed.json", "--op", TOY, cwd=tmp_path, check=8)
    assert "longer than recorded" in done.stdout
    assert "measuring toy" in done.stderr


def test_the_same_seed_tries_the_same_schedules(tmp_path):
    tried = []
    for name in ("a", "b"):
        tune_toy(tmp_path, "--out", name, "--seed", 3)
        tried.append(set(load_runs(tmp_path / name)[0].trials))
    assert tried[0] == tried[1]


def test_a_used_folder_is_refused_without_resume_and_continued_with_it(tmp_path):
    tune_toy(tmp_path, "--out", "run")
    assert "add --resume to continue it" in tune_toy(tmp_path, "--out", "run", check=7).stderr
    before = list(load_runs(tmp_path / "run")[0].trials)
    done = autotune("run", "--resume", "run", "--op", TOY, "--trials", 20, "--json", "--quiet", cwd=tmp_path)
    assert json.loads(done.stdout)["new_trials"] == 8
    after = list(load_runs(tmp_path / "run")[0].trials)
    assert after[:12] == before
    assert len(after) == 20


def test_times_of_two_devices_do_not_come_into_one_log(tmp_path):
    tune_toy(tmp_path, "--out", "run", trials=2)
    journal = tmp_path / "run" / FILE
    name = json.dumps(json.loads(journal.read_text().splitlines()[0])["device"]["name"])
    journal.write_text(journal.read_text().replace(f'"name":{name}', '"name":"another CPU"'))
    before = journal.read_text()
    done = autotune("run", "--resume", "run", "--op", TOY, "--trials", 4, "--quiet", cwd=tmp_path, check=8)
    assert "were measured on another CPU" in done.stderr
    assert journal.read_text() == before


def test_resume_without_a_name_takes_the_newest_run(tmp_path):
    tune_toy(tmp_path)
    done = autotune("run", "--resume", "--op", TOY, "--trials", 14, "--quiet", cwd=tmp_path)
    assert "2 trials in" in done.stdout


def test_runs_that_fail_everywhere_say_why(tmp_path):
    source = Path(TOY.rpartition(":")[0]).read_text()
    (tmp_path / "bad.py").write_text(source.replace("(0 if trick", "(7 if trick").replace("else 1)", "else 7)"))
    done = autotune("run", "--op", "bad.py:Toy", "--trials", 4, "--quiet", cwd=tmp_path, check=6)
    assert "most often wrong_result" in done.stderr


def start(cwd, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "autotune", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_trials(folder, count):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        path = folder / FILE
        if path.exists() and path.read_bytes().count(b'"kind":"trial"') >= count:
            return
        time.sleep(0.02)
    raise AssertionError("no trials came")


LONG = ("run", "--op", TOY, "--shape", "tricks=0,N=4096", "--strategy", "random", "--trials", 100, "--out", "run")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_stop_keeps_the_best_and_says_how_to_resume(tmp_path, number, code):
    run = start(tmp_path, *LONG)
    wait_for_trials(tmp_path / "run", 3)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert run.returncode == code, err
    assert f"resume with: autotune run --resume run --op {TOY}" in out
    assert "not raced" in out
    assert json.loads((tmp_path / "run" / "tuned-log.json").read_text())["entries"]
    autotune("run", "--resume", "run", "--op", TOY, "--quiet", cwd=tmp_path)


def test_a_killed_run_is_continued_and_measures_nothing_twice(tmp_path):
    for wanted in (2, 6, 11):
        run = start(tmp_path, *(LONG if wanted == 2 else ("run", "--resume", "run", "--op", TOY, "--quiet")))
        wait_for_trials(tmp_path / "run", wanted)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
    result = json.loads(autotune("run", "--resume", "run", "--op", TOY, "--json", "--quiet", cwd=tmp_path).stdout)
    lines = (tmp_path / "run" / FILE).read_text().splitlines()
    schedules = [json.dumps(json.loads(x)["schedule"]) for x in lines if '"kind":"trial"' in x]
    assert len(schedules) == len(set(schedules)) == sum(result["statuses"].values()) == 96
    assert [json.loads(x)["trial"] for x in lines if '"kind":"trial"' in x] == list(range(96))


def test_two_runs_cannot_share_a_folder(tmp_path):
    tune_toy(tmp_path, "--out", "run")
    with Journal(tmp_path / "run"):
        done = autotune("run", "--resume", "run", "--op", TOY, "--quiet", cwd=tmp_path, check=7)
    assert "another run writes to run" in done.stderr


def without(tmp_path, *packages):
    """A folder that hides packages from a child process, as on a machine where they were never installed."""
    text = f"""
from importlib.machinery import PathFinder

found = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in {packages!r} else found(name, path, target)

PathFinder.find_spec = find_spec
"""
    (tmp_path / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": f"{tmp_path}:{HERE}"}


def test_a_machine_without_xgboost_goes_on_with_another_strategy(tmp_path):
    hidden = without(tmp_path, "xgboost")
    done = autotune("run", "--op", TOY, "--trials", 4, "--out", "run", cwd=tmp_path, **hidden)
    assert "going on with strategy evolutionary" in done.stderr
    named = ("run", "--op", TOY, "--trials", 4, "--strategy", "xgb")
    assert "pip install xgboost" in autotune(*named, cwd=tmp_path, check=3, **hidden).stderr


def test_a_machine_without_tvm_says_so(tmp_path):
    hidden = without(tmp_path, "tvm")
    done = autotune("run", "--op", "matmul", "--target", "llvm", cwd=tmp_path, check=3, **hidden)
    assert "TVM is not installed" in done.stderr
    assert "needed for schedules for llvm" in autotune("doctor", cwd=tmp_path, **hidden).stdout


def test_a_machine_without_triton_and_gpu_hears_of_the_gpu_first(tmp_path):
    named = ("run", "--op", "attention", "--target", "cuda", "-arch=sm_80")
    done = autotune(*named, cwd=tmp_path, check=4, **without(tmp_path, "triton"))
    assert "this machine has none" in done.stderr


def test_a_machine_without_triton_goes_on_without_its_sketches(tmp_path):
    hidden = without(tmp_path, "triton")
    named = ("run", "--op", "softmax", "--target", "cuda", "-arch=sm_80", "--compile-only", "--trials", 1)
    done = autotune(*named, cwd=tmp_path, **hidden)
    assert "going on without some sketches: triton is not installed" in done.stderr
    assert "tvm.untuned" in done.stdout
