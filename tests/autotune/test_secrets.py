"""Candidates' processes get no secret of the user's, and others on the machine see none in what a run shows."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.environment import candidates_variables, is_secret, without_password
from autotune.tracking.follower import following

HERE = Path(__file__).parents[2]
SECRETS = {
    "GITHUB_TOKEN": "t-1",
    "AWS_ACCESS_KEY_ID": "k-1",
    "AWS_PROFILE": "p-1",
    "WANDB_API_KEY": "k-2",
    "AZURE_STORAGE_CONNECTION_STRING": "c-1",
    "MLFLOW_TRACKING_PASSWORD": "p-2",
    "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
    "PGPASSWORD": "p-3",
    "MYSQL_PWD": "p-4",
    "GITHUB_PAT": "p-5",
    "client_secret": "s-1",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "MLFLOW_TRACKING_URI": "https://me:p-6@store.example/",
    "HTTPS_PROXY": "http://me:p-7@proxy.example:3128",
    "INDEX_URL": "https://p-8@packages.example/simple",
    "DEPLOY": "-----BEGIN OPENSSH PRIVATE KEY-----",
}
PLAIN = {
    "PATH": "/usr/bin",
    "PWD": "/home/me",
    "HOME": "/home/me",
    "LD_LIBRARY_PATH": "/opt/cuda/lib64",
    "CUDA_VISIBLE_DEVICES": "0,1",
    "TOKENIZERS_PARALLELISM": "false",
    "KEYBOARD": "us",
    "LLVM_PASS_PLUGIN_PATH": "/opt/passes",
    "HTTP_PROXY": "http://proxy.example:3128",
    "MLFLOW_TRACKING_URI": "sqlite:///runs/mlflow.db",
    "AUTHOR": "me",
}


def answering():
    """What a candidate could read: its variables, as Python sees them and as the program was started with them."""
    return lambda _: (dict(os.environ), Path("/proc/self/environ").read_bytes().decode())


@pytest.mark.parametrize("name", SECRETS)
def test_what_is_secret(name):
    assert is_secret(name, SECRETS[name])


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_not(name):
    assert not is_secret(name, PLAIN[name])


@pytest.mark.parametrize("fresh", [True, False], ids=["spawned", "forked"])
def test_a_candidates_process_has_no_secret_and_the_rest(fresh, tmp_path):
    # In a program of its own: the process server of this one may have been started before.
    code = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(HERE)!r})
from autotune.process import Child
from tests.autotune.test_secrets import answering
child = Child(answering, (), Path("child.log"), fresh={fresh})
child.send(None, 120)
variables, started_with = child.answer()
child.kill()
print({{n for n in variables if n in {set(SECRETS)}}} | {{n for n in {set(SECRETS)} if n + "=" in started_with}})
print(variables["LD_LIBRARY_PATH"], os.environ["GITHUB_TOKEN"], sorted(set(os.environ) - set(before)))
"""
    code = code.replace("import os, sys", "import os, sys\nbefore = dict(os.environ)")
    variables = {**os.environ, **SECRETS, "LD_LIBRARY_PATH": "/opt/mine"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout.splitlines() == ["set()", "/opt/mine t-1 []"], done.stderr


@pytest.mark.parametrize("fresh", [True, False], ids=["spawned", "forked"])
def test_a_candidates_process_imports_nothing_from_the_current_folder(fresh, tmp_path):
    """A run in a folder that a stranger filled must not run what lies in it."""
    (tmp_path / "multiprocessing.py").write_text("raise SystemExit('taken over')")
    code = f"""
import sys
from pathlib import Path
sys.path[:] = [{str(HERE)!r}, *sys.path[1:]]
from autotune.process import Child
from tests.autotune.test_secrets import answering
child = Child(answering, (), Path("child.log"), fresh={fresh})
child.send(None, 120)
print(len(child.answer()))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout.strip() == "2", done.stderr


def test_this_process_keeps_its_variables(monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with candidates_variables():
        assert not set(SECRETS) & set(os.environ)
    assert dict(os.environ) == before


@given(st.text("abc:/@.", max_size=20), st.text("abc.-:", max_size=10), st.text("QZ%!", min_size=1))
def test_a_password_is_never_shown(before, user, password):
    shown = without_password(f"{before} https://{user}{password}@store.example/x failed")
    assert password not in shown
    assert "@store.example/x failed" in shown


def test_the_stores_address_is_not_on_a_command_line(tmp_path):
    """All users of the machine can read command lines."""
    notices = []
    with following(tmp_path, "http://me:hidden@127.0.0.1:9", "autotune", notices.append):
        words = [w for p in psutil.Process().children(recursive=True) for w in p.cmdline()]
        assert "sync" in words
    assert not any("hidden" in word for word in words)
    assert notices
    assert "hidden" not in notices[0]
