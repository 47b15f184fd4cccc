"""Limits in hierarchies of control groups made of files."""

import pytest

from cdsk import _threads
from cdsk._cgroups import ControlGroups
from cdsk._threads import openmp_enabled, resolve_n_threads

QUOTAS = {
    1: lambda quota: {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": 100_000},
    2: lambda quota: {"cpu.max": f"{'max' if quota < 0 else quota} 100000"},
}
MEMORY = {
    1: lambda limit: {
        "memory.limit_in_bytes": limit or 2**63 - 4096,
        "memory.usage_in_bytes": 600,
        "memory.stat": "rss 7\ninactive_file 0\ntotal_inactive_file 100",
    },
    2: lambda limit: {
        "memory.max": limit or "max",
        "memory.current": 600,
        "memory.stat": "anon 7\ninactive_file 100",
    },
}
MEMBERSHIP = {
    1: "3:memory:/a/b\n2:cpu,cpuacct:/a/b\n1:name=systemd:/c\n0::/c\n",
    2: "0::/a/b\n",
}


@pytest.fixture(params=[1, 2])
def version(request):
    return request.param


@pytest.fixture
def make(tmp_path, version):
    """``make(controller, files of /, of /a, of /a/b)`` returns the control groups."""

    def control_groups(controller, *levels):
        mount = tmp_path / controller if version == 1 else tmp_path
        for path, files in zip(("", "a", "a/b"), levels, strict=False):
            (mount / path).mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (mount / path / name).write_text(f"{content}\n")
        membership = tmp_path / "membership"
        membership.write_text(MEMBERSHIP[version])
        return ControlGroups(mounts=tmp_path, membership=membership)

    return control_groups


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize(("quota", "expected"), [(150_000, 2), (100_000, 1), (500, 1)])
def test_the_smallest_quota_of_all_levels(make, version, level, quota, expected):
    quotas = [800_000, -1, 300_000]
    quotas[level] = quota
    groups = make("cpu", *map(QUOTAS[version], quotas))
    assert groups.n_processors() == expected
    assert groups.available_bytes() is None


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_least_memory_of_all_levels(make, version, level):
    limits = [9000, None, 8000]
    limits[level] = 1000
    groups = make("memory", *map(MEMORY[version], limits))
    assert groups.available_bytes() == 1000 - 600 + 100
    assert groups.n_processors() is None


def test_no_less_than_nothing_is_left(make, version):
    assert make("memory", MEMORY[version](10)).available_bytes() == 0


def test_a_container_sees_its_group_as_the_root(make, version):
    # /a/b is the name outside: there is no such folder
    assert make("cpu", QUOTAS[version](200_000)).n_processors() == 2


def test_unlimited_groups(make, version):
    assert make("cpu", QUOTAS[version](-1)).n_processors() is None
    available = make("memory", MEMORY[version](None)).available_bytes()
    assert available is None if version == 2 else available > 2**62


def test_other_systems_have_no_groups(tmp_path):
    groups = ControlGroups(mounts=tmp_path, membership=tmp_path / "absent")
    assert groups.n_processors() is None
    assert groups.available_bytes() is None


def test_threads_by_quota(make, version, monkeypatch):
    groups = make("cpu", QUOTAS[version](100_000))
    monkeypatch.setattr(_threads, "processor_quota", groups.n_processors)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert resolve_n_threads(None) == 1
    # a number is taken as it is, here and in the environment
    expected = 3 if openmp_enabled() else 1
    assert resolve_n_threads(3) == expected
