import pytest

from autotune.devices import roof


def test_the_peak_is_that_of_a_cpu():
    pytest.importorskip("tvm")
    assert 1e9 < roof.measured_peak(1) < 1e12


def test_without_tvm_there_is_no_peak(monkeypatch):
    monkeypatch.setattr(roof.registry, "available", lambda module: False)
    assert roof.measured_peak(1) is None


def test_the_bandwidth_is_that_of_memory(monkeypatch):
    monkeypatch.setattr(roof, "COPY_BYTES", 32 << 20)
    assert 1e8 < roof.measured_bandwidth() < 1e13
