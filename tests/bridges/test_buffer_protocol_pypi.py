"""An unmodified compiled module from PyPI, written for NumPy, takes tensors directly.

dtaidistance measures distances between time series. The functions of its compiled modules take typed memoryviews of
doubles, both as inputs and as outputs.
"""

import subprocess
import sys

import numpy as np
import pytest
import torch

import interop

REASON = "dtaidistance is not installed: pip install -r requirements/test.txt"
dtw_cc = pytest.importorskip("dtaidistance.dtw_cc", reason=REASON)
ed_cc = pytest.importorskip("dtaidistance.ed_cc", reason=REASON)

SERIES = {"s1": [0.0, 0, 1, 2, 1, 0, 1, 0, 0], "s2": [0.0, 1, 2, 0, 0, 0, 0, 0]}


@pytest.fixture
def protocol():
    with interop.enable_buffer_protocol():
        yield


@pytest.fixture
def tensors():
    return [torch.tensor(values, dtype=torch.float64) for values in SERIES.values()]


@pytest.fixture
def arrays():
    return [np.array(values) for values in SERIES.values()]


def test_without_the_protocol_tensors_are_refused(tensors):
    for function in (dtw_cc.distance, dtw_cc.ub_euclidean, ed_cc.distance):
        with pytest.raises(TypeError, match="'Tensor'"):
            function(*tensors)


@pytest.mark.usefixtures("protocol")
@pytest.mark.parametrize("function", [dtw_cc.distance, dtw_cc.ub_euclidean, ed_cc.distance])
def test_the_values_are_those_of_arrays(function, tensors, arrays):
    assert function(*tensors) == function(*arrays) > 0
    assert function(tensors[0], arrays[1]) == function(*arrays)


@pytest.mark.usefixtures("protocol")
def test_two_dimensions():
    generator = torch.Generator().manual_seed(0)
    one, two = (torch.randn(n, 3, dtype=torch.float64, generator=generator) for n in (20, 30))
    for function in (dtw_cc.distance_ndim, ed_cc.distance_ndim):
        assert function(one, two) == function(one.numpy(), two.numpy()) > 0
    assert dtw_cc.distance(one[:, 0].contiguous(), two[4:20].view(-1)) > 0


@pytest.mark.usefixtures("protocol")
def test_it_writes_into_a_tensor(tensors, arrays):
    shape = [len(values) + 1 for values in SERIES.values()]
    written, expected = torch.zeros(shape, dtype=torch.float64), np.zeros(shape)
    assert dtw_cc.warping_paths(written, *tensors) == dtw_cc.warping_paths(expected, *arrays)
    assert np.array_equal(written.numpy(), expected)
    assert expected.any()
    assert written._version == 0  # nothing else uses it
    alias = written[:]
    dtw_cc.warping_paths(alias, tensors[1], tensors[0])
    assert written._version == 1


@pytest.mark.usefixtures("protocol")
def test_what_does_not_fit_is_refused(tensors):
    with pytest.raises(ValueError, match="Buffer dtype mismatch, expected 'seq_t' but got 'float'"):
        dtw_cc.distance(tensors[0].float(), tensors[1])
    with pytest.raises(ValueError, match="wrong number of dimensions"):
        dtw_cc.distance(tensors[0][None], tensors[1])
    with pytest.raises(BufferError, match=r"require grad.*detach"):
        dtw_cc.distance(tensors[0].requires_grad_(), tensors[1])
    with pytest.raises(BufferError, match="read-only"):
        dtw_cc.distance(torch.zeros(1, dtype=torch.float64).expand(4), tensors[1])


def test_the_module_knows_nothing_of_torch():
    code = "import sys; from dtaidistance import dtw_cc; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
