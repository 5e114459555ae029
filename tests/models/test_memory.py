"""How much memory a process may use."""

import resource
import subprocess
import sys

import pytest

from frugal.models.memory import group_limits, memory_limit


@pytest.mark.parametrize("which", ["DATA", "AS"])
def test_a_limit_of_the_process_counts(which):
    """In a process of its own: a limit on addresses may be too little for this one."""
    code = f"""
import resource
from frugal.models.memory import memory_limit
resource.setrlimit(resource.RLIMIT_{which}, (3 << 27, resource.RLIM_INFINITY))
print(memory_limit())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 3 << 27


def test_the_machine_has_a_limit():
    assert 1 << 26 <= memory_limit() < resource.RLIM_INFINITY % 2**63


@pytest.fixture
def machine(tmp_path):
    """A control group's files, written as the kernel shows them."""

    def made(line, files):
        (tmp_path / "cgroup").write_text(line)
        for name, text in files.items():
            (tmp_path / "mounted" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "mounted" / name).write_text(text)
        return sorted(group_limits(tmp_path / "cgroup", tmp_path / "mounted"))

    return made


def test_groups_of_version_2_count_with_those_around_them(machine):
    assert machine("0::/jobs/one\n", {"jobs/one/memory.max": "max\n", "jobs/memory.max": "500\n", "other/memory.max": "3\n"}) == [500]


def test_groups_of_version_1_count(machine):
    files = {"memory/one/memory.limit_in_bytes": "70\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}
    assert machine("5:cpu:/x\n4:memory:/one\n0::/x\n", files) == [70, 9223372036854771712]


def test_a_containers_limit_stands_at_the_top(machine):
    assert machine("0::/host/path\n", {"memory.max": "800\n"}) == [800]


def test_what_cannot_be_read_limits_nothing(machine, tmp_path):
    assert machine("0::/\n", {}) == []
    assert list(group_limits(tmp_path / "none", tmp_path)) == []
