"""The life of a managed engine: found, started, ready, restarted, stopped with all it started, or refused in one
line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from phasegate.engines.ask import ask
from phasegate.engines.base import Engine, EngineError
from phasegate.engines.cores import engine_cores
from phasegate.engines.managed import engine as engine_module
from phasegate.engines.managed import guard, places
from phasegate.engines.managed.engine import ManagedEngine, ManagedSettings
from phasegate.engines.managed.kinds import KINDS
from tests.engines.managed.conftest import PROGRAM, MakeEngine, is_gone, worker_of

LIMIT = 10.0


def completion(engine: ManagedEngine) -> Any:
    """What the fake server says of its surroundings."""
    return ask(f"{engine.base_url}/completions", body={"prompt": "x"})


def test_it_is_an_engine_that_is_ready_when_started_and_gone_when_stopped(make: MakeEngine) -> None:
    """With the worker that the server began; stopping twice is safe."""
    engine = make("late")
    engine.start()
    try:
        assert isinstance(engine, Engine)
        assert completion(engine)["choices"]
        assert engine.start_seconds is not None
        worker = worker_of(engine)
        assert not is_gone(worker)
    finally:
        engine.stop()
    assert is_gone(worker)
    engine.stop()
    with pytest.raises(EngineError, match="transformers is not started"):
        _ = engine.base_url


def test_a_restart_is_a_fresh_process_and_a_start_of_a_running_one_is_nothing(make: MakeEngine) -> None:
    """On another port, with the old one's worker gone; a server that crashed is started anew."""
    with make() as engine:
        first, old_worker = engine.pid, worker_of(engine)
        engine.start()
        assert engine.pid == first
        engine.restart()
        assert engine.pid != first
        assert is_gone(old_worker)
        assert engine.pid is not None
        psutil.Process(engine.pid).kill()
        engine.restart()
        assert completion(engine)["choices"]


def test_a_server_that_takes_no_notice_is_killed() -> None:
    """After its time to end."""
    child = subprocess.Popen([sys.executable, str(PROGRAM), "0", "stubborn"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    worker = psutil.Process(int(child.stdout.readline().split()[1]))
    guard.end_family(child, 0.2)
    assert child.returncode == -signal.SIGKILL
    assert is_gone(worker)


def test_a_server_that_dies_is_told_with_the_end_of_its_log(make: MakeEngine) -> None:
    """In one line, with the file's name; its worker does not stay behind."""
    engine = make("dies")
    with pytest.raises(EngineError) as told:
        engine.start()
    text = str(told.value)
    assert text.startswith(
        "transformers did not start: it ended; its log says: RuntimeError: the weights are not there"
    )
    assert str(engine.log_path) in text
    assert "\n" not in text
    deadline = time.monotonic() + LIMIT
    while not is_gone(worker_of(engine)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_gone(worker_of(engine))


def test_one_that_never_answers_is_given_up(make: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what its door said last."""
    monkeypatch.setattr(engine_module, "START_SECONDS", 0.4)
    engine = make("never")
    with pytest.raises(EngineError, match=r"transformers started but does not answer \((HTTP 503|conn|it)"):
        engine.start()
    assert engine.pid is None


def test_no_server_outlives_the_suite(tmp_path: Path) -> None:
    """Killed with SIGKILL, it leaves neither the server nor its worker."""
    program = (
        "import sys, json\n"
        "from pathlib import Path\n"
        "from phasegate.engines.managed.process import ServerProcess\n"
        f"command = [sys.executable, {str(PROGRAM)!r}, '0', 'serves']\n"
        f"p = ServerProcess(command, {{}}, [], Path({str(tmp_path / 'log')!r}))\n"
        "print(p.pid, flush=True)\n"
        "import time; time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        guard_process = psutil.Process(int(parent.stdout.readline()))
        deadline = time.monotonic() + LIMIT
        family: list[psutil.Process] = []
        while len(family) < 2 and time.monotonic() < deadline:
            family = guard_process.children(recursive=True)
            time.sleep(0.05)
        parent.kill()
    assert len(family) == 2
    deadline = time.monotonic() + LIMIT
    while not all(map(is_gone, family)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [process for process in family if not is_gone(process)] == []


def test_the_server_gets_no_key_and_no_path_of_this_python(make: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is another; the variables of its kind are set."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-you")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with make(args="--cb-block-size 16 --name 'two words'") as engine:
        told = completion(engine)
        assert told["keys"]["OPENAI_API_KEY"] is None
        assert told["keys"]["PYTHONPATH"] is None
        assert told["keys"]["OMP_NUM_THREADS"] is not None
        assert told["arguments"][-4:] == ["--cb-block-size", "16", "--name", "two words"]
        assert engine.log_path is not None
        assert "sk-not-for-you" not in engine.log_path.read_text(encoding="utf-8")


def test_it_computes_on_cores_of_its_own(make: MakeEngine) -> None:
    """The server and its worker, where there are two cores or more; the client has the others."""
    with make() as engine:
        pinned = engine.identity().settings["pinned"]
        assert pinned == bool(engine_cores(engine.identity().settings["threads"]))
        if pinned:
            cores = worker_of(engine).cpu_affinity()
            assert cores
            assert not set(cores) & set(engine.client_cores)


def test_its_identity_keys_baselines_by_its_settings(make: MakeEngine) -> None:
    """Engine, version of its package, flags and the user's arguments; where the weights lie is nobody's business."""
    with make(args="--cb-block-size 16") as engine:
        identity = engine.identity()
    assert (identity.engine, identity.version, identity.model) == ("transformers", pytest.__version__, "weights")
    assert "--continuous-batching" in identity.settings["flags"]
    assert identity.settings["flags"].endswith("--cb-block-size 16")
    assert "/" not in identity.settings["flags"]
    assert identity.host is not None
    assert {"engine", "version", "settings", "hardware", "host"} <= set(identity.sources)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_an_engine_that_is_not_installed_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, naming the Python that was looked at and the option."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(EngineError, match=f"^{name} is not installed for .*python.*pip install.*--perf-engine-python$"):
        places.find(KINDS[name], None)


def test_an_interpreter_that_is_none_is_named(tmp_path: Path) -> None:
    """A wrong path, and a program that is no Python."""
    for wrong in (str(tmp_path / "nothing"), "/bin/true"):
        with pytest.raises(EngineError, match="does not run as a Python interpreter"):
            places.find(KINDS["vllm"], wrong)


def test_the_environment_on_the_path_is_the_one_beside_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command of a package lies beside the interpreter that has the package; llama-server is its own program."""
    (tmp_path / "python").symlink_to(sys.executable)
    for name in ("vllm", "llama-server"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=f"vllm is not installed for {tmp_path / 'python'}"):
        places.find(KINDS["vllm"], None)
    assert places.find(KINDS["llama.cpp"], None) == places.Place(tmp_path / "llama-server", None)


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("vllm", "--port 8000", "leave --port out: the suite chooses a free port"),
        ("vllm", "--model=/x", "leave --model out: give it with --perf-engine-model"),
        ("sglang", "--api-key s3cret", "leave --api-key out: a started engine listens on the loopback address"),
        ("llama.cpp", "-m x.gguf", "leave -m out: give it with --perf-engine-model"),
        ("transformers", "--dtype 'bfloat16", "No closing quotation"),
    ],
)
def test_arguments_that_the_suite_sets_itself_are_refused(name: str, args: str, told: str) -> None:
    """Before anything is started; a key is not repeated."""
    with pytest.raises(EngineError, match=f"^--perf-engine-args: {told}") as error:
        ManagedEngine(name, ManagedSettings(args=args))
    assert "s3cret" not in str(error.value)


def test_llama_server_wants_a_file_of_weights(tmp_path: Path) -> None:
    """A folder is none."""
    engine = ManagedEngine("llama.cpp", ManagedSettings(model=str(tmp_path)))
    engine._place = places.Place(Path("/bin/true"), "1")
    with pytest.raises(EngineError, match=r"no such file; llama\.cpp reads a GGUF file"):
        engine.start()
