# SPDX-License-Identifier: BSD-3-Clause
"""Models without pickle: nothing is trusted but our own types, no file runs code."""

import copy
import csv
import functools
import io
import json
import os
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
from cdsk._cli.console import UsageError
from cdsk._cli.models import TRUSTED, load_model, save_model

skops = pytest.importorskip("skops.io")

X = make_blobs(90, 3, centers=3, cluster_std=0.8, random_state=0)[0]
X = np.concatenate([X, np.random.default_rng(1).uniform(-9, 9, (10, 3))])
POSITIVE = X - X.min()
K = rbf_kernel(X, gamma=0.1)
GRAPH = KNeighborsTransformer(mode="distance", n_neighbors=12).fit_transform(X)

CASES = {
    "default": (X, {}),
    "noise": (X, {"noise": 0.01}),
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
    "neighbours": (GRAPH, {"kernel": "precomputed_neighbors"}),
    "cosine": (POSITIVE, {"metric": "cosine"}),
    "sparse rows": (sparse.csr_matrix(X), {}),
    "lowrank": (X, {"approximation": "lowrank", "bandwidth": 1.0}),
    "generator": (X, {"random_state": np.random.RandomState(0)}),
}


@functools.cache
def fitted(name, weighted=False):
    data, options = CASES[name]
    options = {"n_clusters": 3, "random_state": 0, **options}
    weights = 1 + np.arange(len(X)) % 3 if weighted else None
    with warnings.catch_warnings():
        # how well these kernels do is not the matter here
        warnings.simplefilter("ignore")
        return CDSK(**options).fit(data, sample_weight=weights)


@functools.cache
def blocks():
    return BlockCDSK(3, random_state=0).fit(X)


@functools.cache
def types_in(function, *arguments):
    """What skops does not trust in a model."""
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
def test_every_fit_is_saved_and_holds_no_types_but_ours(name, weighted):
    model, (data, _) = fitted(name, weighted), CASES[name]
    types = types_in(fitted, name, weighted)
    assert types <= set(TRUSTED)
    check_same(skops.loads(skops.dumps(model), trusted=sorted(types)), model, data)


def test_blocks():
    types = types_in(blocks)
    assert types <= set(TRUSTED)
    again = skops.loads(skops.dumps(blocks()), trusted=sorted(types))
    check_same(again, blocks(), X)


def test_nothing_is_trusted_without_need():
    needed = types_in(blocks).union(*(types_in(fitted, name, False) for name in CASES))
    assert needed == set(TRUSTED)


# --- files --------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def test_a_file_gives_the_same_model(path):
    model = fitted("noise")
    save_model(model, path)
    check_same(load_model(path), model, X)


def test_a_model_that_was_used_is_saved_as_one_that_was_not(path):
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
def test_numbers_that_do_not_fit_to_each_other(path, name, value):
    model = CDSK(3, bandwidth=1.0, random_state=0).fit(X)
    object.__setattr__(model._votes, name, value)
    save_model(model, path)
    with pytest.raises(ValueError, match=r"do not fit|shape"):
        load_model(path).predict(X)


class Alarm:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def changed(path, change):
    """Change the schema of a saved model."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(parts["schema.json"])
    change(schema)
    parts["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def loaders(node):
    """Every node of a schema that builds something."""
    if isinstance(node, dict):
        if "__loader__" in node:
            yield node
        for value in node.values():
            yield from loaders(value)
    elif isinstance(node, list):
        for value in node:
            yield from loaders(value)


@pytest.mark.parametrize(
    "content",
    [
        functools.partial(os.mkdir, "{alarm}"),
        os.mkdir,
        Alarm,
        csv.Sniffer(),
    ],
    ids=["partial", "function", "type", "object"],
)
def test_what_is_not_ours_is_refused_by_name(path, tmp_path, content):
    alarm = tmp_path / "alarm"
    if isinstance(content, functools.partial):
        content = functools.partial(os.mkdir, str(alarm))
    model = CDSK(**fitted("bandwidth").get_params())
    model.__dict__.update(fitted("bandwidth").__dict__)
    model.params_ = {**model.params_, "kernel_params": {"degree": content}}
    skops.dump(model, path)
    with pytest.raises(UsageError, match=r"expected a model of cdsk alone; got what i"):
        load_model(path)
    assert not alarm.exists()


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
    """Every node of a good file in turn becomes a call of os.mkdir."""
    alarm = tmp_path / "alarm"
    save_model(fitted("bandwidth"), path)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        n_nodes = len(list(loaders(json.loads(archive.read("schema.json")))))
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
                "content": json.dumps(str(alarm)),
                "is_json": True,
                "__id__": 10**15 + 1,
            }
        ],
        "__id__": 10**15,
    }

    def forge(i):
        def change(schema):
            node = list(loaders(schema))[i]
            node["__module__"], node["__class__"] = "os", "mkdir"
            # a known number would stand for what was read before
            node["__loader__"], node["__id__"] = loader, 10**15 + 2
            node["content"] = node["reduce"] = node["args"] = argument

        return change

    for i in range(0, n_nodes, 19):
        path.write_bytes(whole)
        changed(path, forge(i))
        with pytest.raises(UsageError):
            load_model(path)
    assert not alarm.exists()


def test_pickles_are_never_opened(path, tmp_path):
    import pickle

    path.write_bytes(pickle.dumps(Alarm(tmp_path / "alarm")))
    with pytest.raises(UsageError, match="got another file"):
        load_model(path)
    # nor arrays of objects inside
    skops.dump(np.arange(3), path)
    content = io.BytesIO()
    np.save(content, np.array([Alarm(tmp_path / "alarm")]), allow_pickle=True)
    with zipfile.ZipFile(path) as archive:
        schema, (name,) = archive.read("schema.json"), archive.namelist()[:1]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", schema)
        archive.writestr(name, content.getvalue())
    with pytest.raises(UsageError):
        load_model(path)
    assert not (tmp_path / "alarm").exists()


def test_what_is_no_model(path):
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
    with pytest.raises(UsageError, match="damaged or of another version"):
        load_model(path)
    rival = KMeans(2, n_init=1).fit(X)
    for content in ([1, 2], CDSK(3), rival):
        skops.dump(content, path)
        kind = type(content).__name__
        with pytest.raises(UsageError, match=f"fitted model of cdsk; got a {kind}"):
            load_model(path)


def test_a_model_that_lacks_a_part(cdsk, path, tmp_path):
    np.save(tmp_path / "t.npy", X)
    model = CDSK(3, random_state=0).fit(X)
    del model._votes
    skops.dump(model, path)
    status, out, err = cdsk("predict", path, tmp_path / "t.npy")
    assert (status, out) == (2, "")
    assert "got one that is damaged ('CDSK' object has no attribute '_votes')" in err


# --- commands -----------------------------------------------------------------------


def write_csv(path, columns):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def test_save_and_predict(cdsk, path, tmp_path):
    names = [f"row {i}" for i in range(len(X))]
    table, new = tmp_path / "t.csv", tmp_path / "new.csv"
    write_csv(table, {"a": X[:, 0], "b": X[:, 1], "who": names, "c": X[:, 2]})
    options = f"cluster {table} -k 3 --noise 0.01 --id who --save {path}"
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
    # and in Python, by the names of the columns
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


def test_predict_refuses(cdsk, path, tmp_path):
    write_csv(tmp_path / "t.csv", dict(zip("abc", X.T, strict=True)))
    cdsk("cluster", tmp_path / "t.csv", "-k", 3, "--save", path)
    write_csv(tmp_path / "new.csv", dict(zip("abd", X.T, strict=True)))
    status, out, err = cdsk("predict", path, tmp_path / "new.csv")
    assert (status, out) == (2, "")
    assert "expected one column 'c', as the model has; got 0 among" in err
    status, _, err = cdsk("predict", path, tmp_path / "t.csv", "-o", path)
    assert status == 2
    assert f"-o {path}: would overwrite {path}." in err
    path.write_text("no model")
    status, _, err = cdsk("predict", path, tmp_path / "t.csv")
    assert (status, err.count("\n")) == (2, 1)


def test_without_skops(cdsk, path, tmp_path, monkeypatch):
    def fit(*_):
        raise AssertionError("refused too late")

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
