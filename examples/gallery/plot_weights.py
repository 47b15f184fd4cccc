"""
What the weights do
===================

Three heaps that touch, and strangers around them. ``max_iter=0`` keeps uniform weights,
which is plain spectral clustering on the same kernel. The parameter ``lam`` says how
few points may carry the weight: at least that fraction. Smaller means sparser, with the
weight further inside the clusters.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from cdsk import CDSK, plot

heaps, truth = make_blobs(
    450, centers=[[0, 0], [4.2, 0.5], [1.8, 3.8]], cluster_std=0.95, random_state=3
)
strangers = np.random.default_rng(3).uniform(-6, 10, (45, 2))
X = np.concatenate([heaps, strangers])

# %%
# One kernel with one bandwidth for all, so that nothing but the weights differs.

settings = {"uniform weights": {"max_iter": 0}}
settings |= {f"lam={lam}": {"lam": lam} for lam in (0.3, 0.2, 0.05)}
models = {}
for name, setting in settings.items():
    model = CDSK(3, bandwidth="neighbour", random_state=0, **setting)
    with warnings.catch_warnings():  # of strangers without any similarity
        warnings.simplefilter("ignore", UserWarning)
        models[name] = model.fit(X)
    score = adjusted_rand_score(truth, model.labels_[: len(truth)])
    print(
        f"{name:16s} {len(model.support_):3d} of {len(X)} points carry weight, "
        f"adjusted Rand index {score:.2f}"
    )

# %%
# With uniform weights the cheapest cuts are around strangers. Learned weights leave
# these out and the cut goes between the heaps.

figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    plot.scatter(model, X, ax=ax, title=f"{name}: {len(model.support_)} points")
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal")
    ax.spines[:].set_visible(False)
plt.show()
