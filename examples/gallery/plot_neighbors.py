"""
Neighbors on the globe: your own distance
=========================================

The default kernels are defined on a graph of nearest neighbors, and CDSK accepts any
such graph: ``kernel="precomputed_neighbors"`` takes a sparse matrix of distances. Here
they are great-circle distances. Longitude and latitude as plane coordinates would split
clusters at the date line and stretch them near the pole.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer

from cdsk import CDSK, plot

# %%
# Stations, as longitude and latitude in degrees: an arc along the Pacific rim across
# the date line, one around the pole, and three patches elsewhere.

rng = np.random.default_rng(2)


def make_stations(longitude, latitude, spread):
    centers = np.stack(np.broadcast_arrays(longitude, latitude), axis=1)
    return centers + rng.normal(scale=spread, size=centers.shape)


rim = np.linspace(150, 225, 220)
groups = [
    make_stations(rim, 50 + 8 * np.sin((rim - 150) / 12), 2.0),
    make_stations(rng.uniform(-180, 180, 150), 83.0, 2.0),
    make_stations(np.full(150, 178.0), -25.0, (9, 6)),
    make_stations(np.full(120, 15.0), 5.0, (9, 7)),
    make_stations(np.full(120, -60.0), -10.0, (8, 9)),
]
degrees = np.concatenate(groups)
degrees[:, 0] = (degrees[:, 0] + 180) % 360 - 180
degrees[:, 1] = np.minimum(degrees[:, 1], 180 - degrees[:, 1])
truth = np.repeat(np.arange(5), [len(group) for group in groups])

# %%
# A transformer of scikit-learn computes the graph; "haversine" needs latitude first, in
# radians. Approximate indices for millions of points have the same interface.

transformer = KNeighborsTransformer(
    n_neighbors=20, mode="distance", metric="haversine", algorithm="ball_tree"
)
radians = np.radians(degrees[:, ::-1])
graph = transformer.fit_transform(radians)
models = {
    "Longitude and latitude as plane coordinates": CDSK(5, random_state=0).fit(degrees),
    "Neighbors by great-circle distance": CDSK(
        5, kernel="precomputed_neighbors", random_state=0
    ).fit(graph),
}
for name, model in models.items():
    score = adjusted_rand_score(truth, model.labels_)
    print(f"{name:45s} adjusted Rand index {score:.2f}")

# %%
# New points are given by their distances to the training points.

globe_model = models["Neighbors by great-circle distance"]
new = np.radians([[50.0, -179.0], [88.0, 10.0], [0.0, 20.0]])
print(
    "clusters of three new stations:", globe_model.predict(transformer.transform(new))
)

figure, axes = plt.subplots(2, 1, figsize=(8, 7.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    plot.scatter(model, degrees, ax=ax, title=name)
    ax.set(xlim=(-180, 180), ylim=(-60, 90), aspect="equal")
    ax.set(xticks=range(-180, 181, 60), yticks=range(-60, 91, 30))
    ax.set(xlabel="", ylabel="")
    ax.grid(alpha=0.3)
    ax.xaxis.set_major_formatter("{x:.0f}°")
    ax.yaxis.set_major_formatter("{x:.0f}°")
plt.show()
