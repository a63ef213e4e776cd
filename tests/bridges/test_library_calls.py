"""Calls of compiled packages with tensors, through `interop.with_arrays`, return the same values as with arrays."""

import importlib

import numpy as np
import pytest
import torch

import interop

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CALLS = {
    "blis.py": ["m.gemm(A, A)", "m.dotv(b, b)", "m.einsum('ab,bc->ac', A, A)"],
    "cython_bbox": ["m.bbox_overlaps(boxes, boxes[:3])"],
    "dtaidistance.dtw": [
        "m.distance_fast(s, t)",
        "m.warping_paths_fast(s, t)",
        "m.distance_matrix_fast([s, t])",
    ],
    "dtaidistance.dtw_cc": ["m.distance(s, t)"],
    "dtaidistance.dtw_ndim": ["m.distance_fast(X, X[:50])"],
    "dtaidistance.ed_cc": ["m.distance(s, t)"],
    "hdbscan": ["m.HDBSCAN().fit(X).labels_"],
    "implicit.cpu.topk": ["m.topk(single, single[:2], 3)"],
    "lap": ["m.lapjv(U)"],
    "pandas": [
        "m.DataFrame({'a': s, 'b': s}).to_numpy()",
        "m.Series(s).to_numpy()",
        "m.cut(s, 4, labels=False)",
        "m.qcut(s, 4, labels=False)",
        "m.factorize(Y)",
        "m.unique(Y)",
        "m.isna(X)",
        "m.crosstab(Y, Y).to_numpy()",
    ],
    "pycocotools.mask": ["m.encode(mask)['size']", "m.iou(boxes, boxes[:2], [0, 0])"],
    "scipy.cluster.hierarchy": ["m.linkage(X)"],
    "scipy.cluster.vq": ["m.vq(X, X[:3])", "m.kmeans2(X, X[:3], seed=0)"],
    "scipy.cluster._vq": ["m.vq(X, X[:3])"],
    "scipy.fft": ["m.dct(s)"],
    "scipy.integrate": ["m.simpson(s)"],
    "scipy.interpolate": [
        "m.CubicSpline(grid, grid ** 2)(grid + 0.5)",
        "m.PchipInterpolator(grid, grid ** 2)(grid)",
        "m.RectBivariateSpline(grid, grid, image[:6, :6])(grid, grid)",
        "m.griddata(X[:, :2], X[:, 2], X[:5, :2])",
        "m.interpn((grid, grid), image[:6, :6], boxes[:, :2])",
    ],
    "scipy.linalg": ["m.solve(A, b)", "m.lu(A)", "m.expm(A)", "m.solve_banded((1, 1), U[:3], U[0])"],
    "scipy.ndimage": [
        "m.gaussian_filter(image, 1.0)",
        "m.label(binary)",
        "m.distance_transform_edt(binary)",
        "m.map_coordinates(image, boxes.T[:2])",
        "m.zoom(image, 2)",
    ],
    "scipy.optimize": ["m.linear_sum_assignment(U)", "m.nnls(U, U[0])", "m.lsq_linear(A, b).x"],
    "scipy.signal": [
        "m.lfilter(b, b, s)",
        "m.medfilt(s)",
        "m.upfirdn(b, s, 2)",
        "m.find_peaks(s)",
        "m.sosfilt(sos, s)",
    ],
    "scipy.sparse.csgraph": ["m.shortest_path(U)"],
    "scipy.spatial": [
        "m.KDTree(X).query(X)",
        "m.cKDTree(X).query(X)",
        "m.ConvexHull(X).simplices",
        "m.Delaunay(X).simplices",
        "m.procrustes(X, X + X.mean())",
    ],
    "scipy.spatial.distance": ["m.cdist(X, X)", "m.pdist(X)"],
    "scipy.special": ["m.logsumexp(X)", "m.gammaln(U + 1)", "m.erf(X)", "m.softmax(X)"],
    "scipy.stats": ["m.spearmanr(s, s)", "m.kendalltau(s, s)", "m.wasserstein_distance(s, t)"],
    "skimage.exposure": ["m.equalize_adapthist(image)"],
    "skimage.feature": ["m.corner_harris(image)", "m.local_binary_pattern(image, 8, 1)"],
    "skimage.filters": ["m.sobel(image)", "m.gaussian(image)", "m.threshold_otsu(image)"],
    "skimage.graph": ["m.route_through_array(image, (0, 0), (5, 5))"],
    "skimage.measure": ["m.label(binary)", "m.find_contours(image, 0.5)", "m.marching_cubes(volume, 0.5)"],
    "skimage.metrics": ["m.structural_similarity(image, image.T, data_range=1.0)"],
    "skimage.morphology": ["m.skeletonize(binary)", "m.reconstruction(image * 0.5, image)"],
    "skimage.restoration": ["m.denoise_tv_chambolle(image)", "m.unwrap_phase(image)"],
    "skimage.segmentation": [
        "m.slic(volume, n_segments=4, channel_axis=None)",
        "m.watershed(image)",
        "m.felzenszwalb(image)",
    ],
    "skimage.transform": ["m.warp(image, eye)", "m.resize(image, (8, 8))"],
    "sklearn.cluster": [
        "m.KMeans(3, random_state=0).fit(X).labels_",
        "m.DBSCAN().fit(X).labels_",
        "m.AgglomerativeClustering().fit(X).labels_",
    ],
    "sklearn.decomposition": ["m.PCA(2).fit(X).transform(X)", "m.NMF(2, random_state=0).fit_transform(X ** 2)"],
    "sklearn.ensemble": [
        "m.RandomForestClassifier(10, random_state=0).fit(X, Y).predict_proba(X)",
        "m.HistGradientBoostingClassifier(random_state=0).fit(X, Y).predict(X)",
        "m.GradientBoostingRegressor(random_state=0).fit(X, Y).predict(X)",
    ],
    "sklearn.gaussian_process": ["m.GaussianProcessRegressor().fit(X, Y).predict(X, return_std=True)"],
    "sklearn.isotonic": ["m.IsotonicRegression().fit(s, s).predict(s)"],
    "sklearn.linear_model": [
        f"m.{name}().fit(X, Y).predict(X)" for name in ("LinearRegression", "LogisticRegression", "Ridge", "Lasso")
    ],
    "sklearn.manifold": ["m.TSNE(random_state=0).fit_transform(X)", "m.Isomap().fit_transform(X)"],
    "sklearn.metrics": [
        "m.roc_auc_score(Y, s)",
        "m.pairwise_distances(X)",
        "m.confusion_matrix(Y, Y)",
        "m.adjusted_rand_score(Y, Y)",
    ],
    "sklearn.mixture": ["m.GaussianMixture(2, random_state=0).fit(X).means_"],
    "sklearn.model_selection": ["m.train_test_split(X, Y, random_state=0)"],
    "sklearn.neighbors": [
        "m.KNeighborsClassifier().fit(X, Y).predict(X)",
        "m.NearestNeighbors().fit(X).kneighbors(X)",
    ],
    "sklearn.neural_network": ["m.MLPClassifier(random_state=0, max_iter=20).fit(X, Y).predict(X)"],
    "sklearn.preprocessing": ["m.StandardScaler().fit_transform(X)"],
    "sklearn.svm": ["m.SVC().fit(X, Y).predict(X)"],
    "sklearn.tree": ["m.DecisionTreeClassifier(random_state=0).fit(X, Y).predict(X)"],
    "statsmodels.api": ["m.add_constant(X)", "m.OLS(s, X).fit().params"],
    "statsmodels.nonparametric.smoothers_lowess": ["m.lowess(s, X[:, 0])"],
    "statsmodels.tsa.filters.hp_filter": ["m.hpfilter(s)"],
    "statsmodels.tsa.stattools": ["m.acf(s)", "m.adfuller(s)"],
    "thinc.api": ["m.NumpyOps().gemm(single, single.T)", "m.NumpyOps().relu(X)", "m.NumpyOps().softmax(X)"],
}

OF_OBJECTS = {"m.crosstab(Y, Y).to_numpy()", "m.OLS(s, X).fit().params"}
"""Calls that return an object of a class that is not wrapped. Its arrays stay arrays."""


def tensors():
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(60, 4, dtype=torch.float64, generator=generator)
    uniform = torch.rand(6, 6, dtype=torch.float64, generator=generator)
    image = torch.rand(16, 16, dtype=torch.float64, generator=generator)
    return {
        "X": normal,
        "Y": (normal[:, 0] > 0).long(),
        "s": normal[:, 1].contiguous(),
        "t": normal[:50, 2].contiguous(),
        "A": normal[:4].contiguous(),
        "b": normal[4].contiguous(),
        "U": uniform,
        "boxes": uniform[:, :4].contiguous(),
        "grid": torch.arange(6, dtype=torch.float64),
        "image": image,
        "binary": (image > 0.5).to(torch.uint8),
        "volume": torch.rand(6, 6, 6, dtype=torch.float64, generator=generator),
        "mask": (uniform > 0.5).to(torch.uint8).T,
        "eye": torch.eye(3, dtype=torch.float64),
        "single": normal.float(),
        "sos": torch.tensor([[1.0, 0, 0, 1, 0.5, 0]], dtype=torch.float64),
    }


def numbers(one):
    """All numbers in a result, as a list of arrays."""
    if isinstance(one, (list, tuple)):
        return [number for item in one for number in numbers(item)]
    if isinstance(one, dict):
        return numbers(list(one.values()))
    return [np.asarray(one)]


def arrays_in(one):
    """The arrays in a result that could be tensors."""
    if isinstance(one, dict):
        return arrays_in(list(one.values()))
    if isinstance(one, (list, tuple)):
        return [array for item in one for array in arrays_in(item)]
    if not isinstance(one, np.ndarray) or isinstance(one, np.ma.MaskedArray):
        return []
    try:
        torch.from_numpy(np.zeros(1, one.dtype.newbyteorder("=")))
    except TypeError:
        return []
    return [one]


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls])
def test_the_values_are_those_of_arrays(name, call):
    package = name.partition(".")[0]
    pytest.importorskip(package, reason=f"{package} is not installed: pip install -r requirements/libraries.txt")
    module = importlib.import_module(name)
    given = tensors()
    arrays = {key: tensor.numpy().copy("K") for key, tensor in given.items()}
    np.random.seed(0)
    expected = eval(call, {"m": module, **arrays})
    np.random.seed(0)
    found = eval(call, {"m": interop.with_arrays(module), **given})
    assert bool(arrays_in(found)) is (call in OF_OBJECTS)
    found, expected = numbers(found), numbers(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
