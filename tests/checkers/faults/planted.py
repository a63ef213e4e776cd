"""The planted faults as tests, which run as the real tests do. pytest collects them only if it is given this file."""

import threading

import faults
import pytest
import torch

pytestmark = pytest.mark.native


def test_read_past_end():
    faults.read_past_end(torch.ones(4))


def test_read_freed_tensor():
    assert faults.read_freed_tensor() == 1


def test_read_dangling_reference():
    faults.read_dangling_reference()


def test_read_freed_object():
    faults.read_freed_object()


def test_overflow():
    faults.overflow(1)


def test_read_misaligned():
    faults.read_misaligned(torch.ones(16, dtype=torch.uint8))


def test_call_on_null():
    faults.call_on_null()


def test_race_of_cpp_threads():
    faults.race_of_cpp_threads()


def test_race_in_tensor():
    tensor = torch.zeros(1)
    threads = [threading.Thread(target=faults.race_in_tensor, args=(tensor,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_race_in_loop():
    torch.set_num_threads(2)
    faults.race_in_loop()


def test_leak_memory():
    faults.leak_memory()


def test_leak_cpp_tensor():
    faults.leak_cpp_tensor()


def test_leak_reference():
    faults.leak_reference(torch.ones(10))


def test_leak_none():
    faults.leak_reference(None)
