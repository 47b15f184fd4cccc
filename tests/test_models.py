# SPDX-License-Identifier: BSD-3-Clause
"""Models as skops files: only types of cdsk are trusted, and no file runs code."""

import copy
import csv
import functools
import io
import json
import os
import pickle
import sys
import warnings
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsTransformer

from cdsk import CDSK, BlockCDSK
from cdsk.cli._console import UsageError
from cdsk.cli._models import TRUSTED, load_model, save_model

skops = pytest.importorskip("skops.io")

X = make_blobs(90, 3, centers=3, cluster_std=0.8, random_state=0)[0]
X = np.concatenate([X, np.random.default_rng(1).uniform(-9, 9, (10, 3))])
POSITIVE = X - X.min()
K = rbf_kernel(X, gamma=0.1)
GRAPH = KNeighborsTransformer(mode="distance", n_neighbors=12).fit_transform(X)

HOLED = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
CODES = np.column_stack([X, X[:, 0] > 0])

CASES = {
    "default": (X, {}),
    "noise": (X, {"noise": 0.01}),
    "sizes": (X, {"min_cluster_size": 32}),
    "standardize": (X, {"representation": "standardize"}),
    "whiten": (X, {"representation": "whiten"}),
    "normal_scores": (X, {"representation": "normal_scores"}),
    "auto": (X, {"n_clusters": "auto", "lam": "auto"}),
    "bandwidth": (X, {"bandwidth": 1.0}),
    "local": (X, {"bandwidth": "local"}),
    "truncated": (X, {"bandwidth": "median", "n_neighbors": 10}),
    "linear": (POSITIVE, {"kernel": "linear"}),
    "laplacian": (X, {"kernel": "laplacian"}),
    "polynomial": (POSITIVE, {"kernel": "poly", "kernel_params": {"degree": 2}}),
    "precomputed": (K, {"kernel": "precomputed"}),
    "indefinite": (K, {"kernel": "precomputed", "psd": False}),
    "sparse": (sparse.csr_array(np.where(K > 1e-3, K, 0)), {"kernel": "precomputed"}),
    "neighbors": (GRAPH, {"kernel": "precomputed_neighbors"}),
    "cosine": (POSITIVE, {"metric": "cosine"}),
    "sparse rows": (sparse.csr_matrix(X), {}),
    "lowrank": (X, {"approximation": "lowrank", "bandwidth": 1.0}),
    "missing": (HOLED, {}),
    "categories": (CODES, {"categorical_features": [3]}),
    "generator": (X, {"random_state": np.random.RandomState(0)}),
}


@functools.cache
def fitted(name, weighted=False):
    data, options = CASES[name]
    options = {"n_clusters": 3, "random_state": 0, **options}
    weights = 1 + np.arange(len(X)) % 3 if weighted else None
    with warnings.catch_warnings():
        # warnings about the kernels are tested elsewhere
        warnings.simplefilter("ignore")
        model = CDSK(**options).fit(data, sample_weight=weights)
    if name == "default":
        assert model.layers_.n_clusters == 3  # computed, and saved with the model
    return model


@functools.cache
def blocks():
    return BlockCDSK(3, random_state=0).fit(X).partial_fit(X)


@functools.cache
def find_types(function, *arguments):
    """Return the types of a model that skops does not trust by default."""
    return set(skops.get_untrusted_types(data=skops.dumps(function(*arguments))))


def check_same(again, model, data):
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    np.testing.assert_array_equal(again.transform(data), model.transform(data))
    scores = again.decision_function(data), model.decision_function(data)
    np.testing.assert_array_equal(*scores)
    assert str(again.report()) == str(model.report())


@pytest.mark.filterwarnings("ignore:.* have no similarity to any training point")
@pytest.mark.parametrize(
    ("name", "weighted"),
    [(name, False) for name in CASES]
    + [(name, True) for name in ("noise", "bandwidth", "precomputed")],
)
def test_every_model_contains_only_types_of_cdsk(name, weighted):
    model, (data, _) = fitted(name, weighted), CASES[name]
    types = find_types(fitted, name, weighted)
    assert types <= set(TRUSTED)
    check_same(skops.loads(skops.dumps(model), trusted=sorted(types)), model, data)


def test_blocks():
    types = find_types(blocks)
    assert types <= set(TRUSTED)
    again = skops.loads(skops.dumps(blocks()), trusted=sorted(types))
    check_same(again, blocks(), X)
    check_same(again.partial_fit(X), copy.deepcopy(blocks()).partial_fit(X), X)


def test_every_trusted_type_is_needed():
    needed = find_types(blocks).union(
        *(find_types(fitted, name, False) for name in CASES)
    )
    assert needed == set(TRUSTED)


# --- files --------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def test_round_trip(path):
    model = fitted("noise")
    save_model(model, path)
    check_same(load_model(path), model, X)


def test_round_trip_after_predictions(path):
    model = copy.deepcopy(fitted("noise"))
    model.predict_proba(X), model.probabilities_, model.transform(X), model.report()
    save_model(model, path)
    check_same(load_model(path), model, X)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("offsets", np.array([0, 50, 100, 10**9])),
        ("bandwidths", np.ones(1)),
        ("weights", np.ones(1)),
        ("n_clusters", 10**5),
    ],
)
def test_inconsistent_arrays(path, name, value):
    model = CDSK(3, bandwidth=1.0, random_state=0).fit(X)
    object.__setattr__(model._predictor.votes, name, value)
    save_model(model, path)
    with pytest.raises(ValueError, match=r"do not fit|shape"):
        load_model(path).predict(X)


class Canary:
    """Create a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def edit_schema(path, change):
    """Change the schema of a saved model."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(parts["schema.json"])
    change(schema)
    parts["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def iter_loaders(node):
    """Yield all nodes of a schema that create an object."""
    if isinstance(node, dict):
        if "__loader__" in node:
            yield node
        for value in node.values():
            yield from iter_loaders(value)
    elif isinstance(node, list):
        for value in node:
            yield from iter_loaders(value)


@pytest.mark.parametrize(
    "content",
    [
        functools.partial(os.mkdir, "{canary}"),
        os.mkdir,
        Canary,
        csv.Sniffer(),
    ],
    ids=["partial", "function", "type", "object"],
)
def test_other_types_are_rejected(path, tmp_path, content):
    canary = tmp_path / "canary"
    if isinstance(content, functools.partial):
        content = functools.partial(os.mkdir, str(canary))
    model = CDSK(**fitted("bandwidth").get_params())
    model.__dict__.update(fitted("bandwidth").__dict__)
    model.params_ = {**model.params_, "kernel_params": {"degree": content}}
    skops.dump(model, path)
    with pytest.raises(
        UsageError, match=r"expected only types of cdsk; got untrusted t"
    ):
        load_model(path)
    assert not canary.exists()


@pytest.mark.parametrize(
    "loader",
    [
        "ObjectNode",
        "FunctionNode",
        "ConstructorFromReduceNode",
        "ReduceNode",
        "TypeNode",
    ],
)
def test_forged_schemas_run_nothing(path, tmp_path, loader):
    """Replace nodes of a valid file by a call of os.mkdir."""
    canary = tmp_path / "canary"
    save_model(fitted("bandwidth"), path)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        n_nodes = len(list(iter_loaders(json.loads(archive.read("schema.json")))))
    assert n_nodes > 50
    argument = {
        "__class__": "tuple",
        "__module__": "builtins",
        "__loader__": "TupleNode",
        "content": [
            {
                "__class__": "str",
                "__module__": "builtins",
                "__loader__": "JsonNode",
                "content": json.dumps(str(canary)),
                "is_json": True,
                "__id__": 10**15 + 1,
            }
        ],
        "__id__": 10**15,
    }

    def forge(i):
        def change(schema):
            node = list(iter_loaders(schema))[i]
            node["__module__"], node["__class__"] = "os", "mkdir"
            # a known id would refer to an existing object
            node["__loader__"], node["__id__"] = loader, 10**15 + 2
            node["content"] = node["reduce"] = node["args"] = argument

        return change

    for i in range(0, n_nodes, 19):
        path.write_bytes(whole)
        edit_schema(path, forge(i))
        with pytest.raises(UsageError):
            load_model(path)
    assert not canary.exists()


def test_pickles_are_never_loaded(path, tmp_path):
    path.write_bytes(pickle.dumps(Canary(tmp_path / "canary")))
    with pytest.raises(UsageError, match="got another file"):
        load_model(path)
    # nor object arrays in a skops file
    skops.dump(np.arange(3), path)
    content = io.BytesIO()
    np.save(content, np.array([Canary(tmp_path / "canary")]), allow_pickle=True)
    with zipfile.ZipFile(path) as archive:
        schema, (name,) = archive.read("schema.json"), archive.namelist()[:1]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", schema)
        archive.writestr(name, content.getvalue())
    with pytest.raises(UsageError):
        load_model(path)
    assert not (tmp_path / "canary").exists()


def test_pickle_of_an_older_version(cdsk, path, tmp_path):
    """Modules that have moved are never imported."""
    np.save(tmp_path / "t.npy", X)
    # protocol 0: the class cdsk._estimator.CDSK, called without arguments
    path.write_bytes(b"ccdsk._estimator\nCDSK\n(tR.")
    with pytest.raises(ModuleNotFoundError):
        pickle.loads(path.read_bytes())
    status, out, err = cdsk("predict", path, tmp_path / "t.npy")
    assert (status, out) == (2, "")
    assert "got another file. Pickle and joblib files are never loaded." in err


def test_skops_file_of_an_older_version(cdsk, path, tmp_path):
    def rename(schema):
        for node in iter_loaders(schema):
            if (node["__module__"], node["__class__"]) == ("cdsk._cdsk", "CDSK"):
                node["__module__"] = "cdsk._estimator"

    np.save(tmp_path / "t.npy", X)
    save_model(fitted("bandwidth"), path)
    edit_schema(path, rename)
    status, out, err = cdsk("predict", path, tmp_path / "t.npy")
    assert (status, out) == (2, "")
    assert "saved by another version of cdsk" in err
    assert "unknown types cdsk._estimator.CDSK. Fit and save it again." in err


def test_other_files_are_rejected(path):
    for content, message in (
        (b"", "got another file"),
        (b"label,weight\n", "got another file"),
    ):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=message):
            load_model(path)
    with pytest.raises(UsageError, match=r"cannot read .*: No such file"):
        load_model(path.with_name("none"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(UsageError, match="damaged or was written by another version"):
        load_model(path)
    other = KMeans(2, n_init=1).fit(X)
    for content in ([1, 2], CDSK(3), other):
        skops.dump(content, path)
        kind = type(content).__name__
        with pytest.raises(UsageError, match=f"fitted model of cdsk; got {kind}"):
            load_model(path)


def test_incomplete_model(cdsk, path, tmp_path):
    np.save(tmp_path / "t.npy", X)
    model = CDSK(3, random_state=0).fit(X)
    del model._predictor
    skops.dump(model, path)
    status, out, err = cdsk("predict", path, tmp_path / "t.npy")
    assert (status, out) == (2, "")
    assert "got a damaged one ('CDSK' object has no attribute '_predictor')" in err


# --- commands -----------------------------------------------------------------------


def write_csv(path, columns):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def test_save_and_predict(cdsk, path, tmp_path):
    names = [f"row {i}" for i in range(len(X))]
    table, new = tmp_path / "t.csv", tmp_path / "new.csv"
    write_csv(table, {"a": X[:, 0], "b": X[:, 1], "name": names, "c": X[:, 2]})
    options = f"cluster {table} -k 3 --noise 0.01 --id name --save {path}"
    status, labels, _ = cdsk(*options.split())
    assert status == 0
    model = CDSK(3, noise=0.01, random_state=0).fit(X)

    Y = X[::-1] + 0.01
    shuffled = {"c": Y[:, 2], "more": names, "a": Y[:, 0], "b": Y[:, 1], "id": names}
    write_csv(new, shuffled)
    status, out, err = cdsk("predict", path, new, "--id", "id")
    assert (status, err) == (0, "")
    rows = list(csv.reader(out.splitlines()))
    assert rows[0] == ["id", "label"]
    assert [name for name, _ in rows[1:]] == names
    assert [int(label) for _, label in rows[1:]] == model.predict(Y).tolist()
    # the loaded model has the column names
    loaded = load_model(path)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    assert [int(line.split(",")[1]) for line in labels.splitlines()[1:]] == list(
        loaded.labels_
    )


def test_predict_rows_without_names(cdsk, path, tmp_path):
    np.save(tmp_path / "t.npy", X)
    assert cdsk("cluster", tmp_path / "t.npy", "-k", 3, "--save", path)[0] == 0
    output = tmp_path / "labels.csv"
    status, out, _ = cdsk("predict", path, tmp_path / "t.npy", "-o", output)
    assert (status, out) == (0, "")
    expected = CDSK(3, random_state=0).fit(X).predict(X)
    assert output.read_text().split() == ["label", *map(str, expected)]
    np.save(tmp_path / "narrow.npy", X[:, :2])
    status, _, err = cdsk("predict", path, tmp_path / "narrow.npy")
    assert status == 2
    assert "2 features" in err and "3 features" in err


def test_predict_errors(cdsk, path, tmp_path):
    write_csv(tmp_path / "t.csv", dict(zip("abc", X.T, strict=True)))
    cdsk("cluster", tmp_path / "t.csv", "-k", 3, "--save", path)
    write_csv(tmp_path / "new.csv", dict(zip("abd", X.T, strict=True)))
    status, out, err = cdsk("predict", path, tmp_path / "new.csv")
    assert (status, out) == (2, "")
    assert "expected one column 'c', a feature of the model; got 0 among" in err
    status, _, err = cdsk("predict", path, tmp_path / "t.csv", "-o", path)
    assert status == 2
    assert f"-o {path}: would overwrite {path}." in err
    path.write_text("no model")
    status, _, err = cdsk("predict", path, tmp_path / "t.csv")
    assert (status, err.count("\n")) == (2, 1)


def test_without_skops(cdsk, path, tmp_path, monkeypatch):
    def fit(*_):
        raise AssertionError("expected an error before the fit")

    monkeypatch.setattr(CDSK, "fit", fit)
    monkeypatch.setitem(sys.modules, "skops", None)
    np.save(tmp_path / "t.npy", X)
    for command in (
        ("cluster", tmp_path / "t.npy", "-k", 3, "--save", path),
        ("predict", path, tmp_path / "t.npy"),
    ):
        status, _, err = cdsk(*command)
        assert status == 2
        assert err.endswith("not installed: pip install cdsk[skops]\n")
