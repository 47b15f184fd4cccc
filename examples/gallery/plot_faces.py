"""
Faces in different poses
========================

Two images of one face in different poses differ more than images of two faces in the
same pose. But poses change gradually, so the images of a person are connected by a path
of similar images. Clusters on a neighbor graph follow such paths; k-means cannot.

This example uses the 400 Olivetti faces if scikit-learn has them
(``fetch_olivetti_faces`` downloads them once). Otherwise it draws faces: ten people who
turn their heads under a lamp.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import fetch_olivetti_faces
from sklearn.metrics import normalized_mutual_info_score

from cdsk import CDSK

# %%
# A drawn face is an ellipsoid with hair, eyes, nose and mouth at individual positions,
# seen from an angle.


def render_face(person, turn, side=32):
    """Return a (side, side) image; ``person`` is nine numbers in [0, 1]."""
    y, x = np.mgrid[-1.2 : 1.2 : side * 1j, -1.2 : 1.2 : side * 1j]
    width, chin, brow, gap, eye, mouth, smile, nose, skin = person
    x = x / (0.68 + 0.22 * width)
    y = y / (0.95 + 0.2 * chin * (y > 0))
    depth = np.sqrt(np.clip(1 - x**2 - y**2, 0, None))
    inside = x**2 + y**2 < 1
    longitude = np.arctan2(x, depth + 1e-9) - turn
    light = 0.55 + 0.35 * skin + 0.25 * depth
    hair = y < -0.65 + 0.35 * brow + 0.25 * np.cos(2 * longitude)
    light = np.where(hair, 0.1 + 0.5 * width * skin, light)

    def spot(center, height, width, thickness):
        x_distance = (longitude - center) / width
        return np.exp(-(x_distance**2) - ((y - height) / thickness) ** 2)

    for center in (-0.3 - 0.25 * gap, 0.3 + 0.25 * gap):
        light = light - 0.7 * spot(center, -0.15, 0.12 + 0.1 * eye, 0.07 + 0.07 * eye)
        light = light - 0.5 * brow * spot(center, -0.38, 0.2, 0.05)
    light = light + 0.3 * spot(0.0, 0.12, 0.06 + 0.08 * nose, 0.2)
    curve = 0.5 + 0.25 * (smile - 0.5) * longitude**2
    light = light - 0.6 * spot(0.0, curve, 0.2 + 0.35 * mouth, 0.06)
    return np.where(inside, np.clip(light, 0, 1), 0.95)


try:
    olivetti = fetch_olivetti_faces(download_if_missing=False)
    X, person = olivetti.data[:200], olivetti.target[:200]
    shape, source = (64, 64), "Olivetti faces"
except OSError:
    rng = np.random.default_rng(1)
    people = rng.uniform(size=(10, 9))
    poses = np.linspace(-0.8, 0.8, 40)
    images = [render_face(person, turn) for person in people for turn in poses]
    X = np.reshape(images, (400, -1)) + rng.normal(scale=0.02, size=(400, 32 * 32))
    person, shape, source = np.repeat(np.arange(10), 40), (32, 32), "synthetic faces"

# %%
n_people = len(np.unique(person))
models = {
    "k-means": KMeans(n_people, n_init=10, random_state=0).fit(X),
    "CDSK": CDSK(n_people, random_state=0).fit(X),
}
for name, model in models.items():
    score = normalized_mutual_info_score(person, model.labels_)
    print(f"{source}, {name:8s} NMI {score:.2f}")

# %%
# Each row is a person, in the order of the images; color and number of a frame are the
# cluster. Of ten drawn people four have their own cluster; three pairs who look alike
# are split by pose.

colors = plt.get_cmap("tab20" if n_people > 10 else "tab10")
n_shown = 9
badge = {"facecolor": "black", "linewidth": 0, "pad": 1}
figure = plt.figure(figsize=(11, 0.55 * min(n_people, 10) + 0.5), layout="constrained")
for part, (name, model) in zip(figure.subfigures(1, 2), models.items(), strict=True):
    part.suptitle(name)
    axes = part.subplots(min(n_people, 10), n_shown)
    for k, row in enumerate(axes):
        members = np.flatnonzero(person == k)
        selected = members[np.linspace(0, len(members) - 1, n_shown).astype(int)]
        for ax, i in zip(row, selected, strict=True):
            ax.imshow(X[i].reshape(shape), cmap="gray", aspect="auto")
            ax.set(xticks=[], yticks=[])
            cluster = model.labels_[i]
            ax.spines[:].set(color=colors(cluster % 20), linewidth=3)
            ax.text(0, 0, cluster, va="top", fontsize=7, color="white", bbox=badge)
plt.show()
