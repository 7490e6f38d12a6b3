from __future__ import annotations

import os
import platform as python_platform
import socket
import subprocess
import sys

import psutil
import pytest

from agentbus.runtime import platform


def test_the_peer_of_a_socket_is_known_by_its_user():
    left, right = socket.socketpair()
    with left, right:
        assert platform.peer_uid(left) == os.getuid()


def test_a_running_process_is_running():
    assert platform.process_state(os.getpid()) == "running"


def test_a_process_that_never_was_is_gone():
    assert platform.process_state(2**22 + 1) == "gone"


def test_other_systems_are_asked_through_psutil(monkeypatch):
    monkeypatch.setattr(platform, "LINUX", False)
    assert platform.process_state(os.getpid()) == "running"
    assert platform.process_state(2**22 + 1) == "gone"
    assert platform.command_line(os.getpid()) == " ".join(psutil.Process().cmdline())
    assert platform.command_line(2**22 + 1) == ""


def test_the_command_line_of_a_process_is_known():
    assert "pytest" in platform.command_line(os.getpid())
    assert platform.command_line(2**22 + 1) == ""


def test_a_process_in_the_background_lets_the_others_go_first():
    code = (
        "import os; from agentbus.runtime import platform; before = os.nice(0); "
        "platform.step_back(); print(os.nice(0) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == platform.BACKGROUND


@pytest.mark.skipif(
    python_platform.libc_ver()[0] != "glibc", reason="other allocators keep it anyway"
)
def test_memory_that_was_freed_is_used_again_instead_of_asked_for_anew():
    code = """
import resource
from agentbus.runtime import platform

def faults_of(rounds):
    for _ in range(rounds):
        [b"x" * 100_000 for _ in range(20)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

platform.keep_freed_memory()
before = faults_of(1)
print(faults_of(20) - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 490  # the pages of one round of the twenty
