"""
Standardization, ranks and whitening
====================================

Distances depend on the units of the features. CDSK compares several views of the data
(as given, standardized, normal scores of the ranks, whitened) and chooses the one whose
partitions agree most across kernel scales, without labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import normalized_mutual_info_score

from cdsk import CDSK

iris, wine = load_iris(return_X_y=True), load_wine(return_X_y=True)
cancer = load_breast_cancer(return_X_y=True)
digits = [part[:900] for part in load_digits(return_X_y=True)]
millimeters = iris[0] * [1, 10, 1, 10], iris[1]
sets = {
    "iris": iris,
    "iris, two features in mm": millimeters,
    "wine": wine,
    "wine, log": (np.log(1 + wine[0]), wine[1]),
    "breast cancer": cancer,
    "digits": digits,
}
representations = ["raw", "standardize", "normal_scores", "whiten", "auto"]

# %%
# ``whiten`` keeps all components here; ``auto`` tries several numbers of components if
# there are many features.

scores = np.empty((len(sets), len(representations)))
selected = []
for i, (X, y) in enumerate(sets.values()):
    for j, name in enumerate(representations):
        model = CDSK(len(np.unique(y)), representation=name, random_state=0).fit(X)
        scores[i, j] = normalized_mutual_info_score(y, model.labels_)
    selected.append(model.representation_.view)
    print(f"{list(sets)[i]:26s} auto selected {selected[-1]}")

# %%
# Agreement with the classes; darker is better. The last column is the default, with the
# view that it chose.

figure, ax = plt.subplots(figsize=(8.5, 3.9), layout="constrained")
ax.imshow(scores, cmap="cividis_r", vmin=0, vmax=1, aspect="auto")
for i, j in np.ndindex(scores.shape):
    text = f"{scores[i, j]:.2f}"
    is_auto = representations[j] == "auto"
    if is_auto:
        text += f"\n{selected[i]}"
    ax.text(
        x=j,
        y=i,
        s=text,
        ha="center",
        va="center",
        fontsize=8.5 if is_auto else 10,
        color="white" if scores[i, j] > 0.5 else "black",
    )
ax.set_xticks(range(len(representations)), representations)
ax.set_yticks(range(len(sets)), sets)
ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
ax.spines[:].set_visible(False)
ax.axvline(len(representations) - 1.5, color="white", linewidth=6)
plt.show()
