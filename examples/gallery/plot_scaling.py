"""
Units, ranks and whitening: views of the data
=============================================

Distances depend on the units of the features. CDSK compares several views of the data
(as given, standardised, normal scores of the ranks, whitened) and takes the one whose
partitions agree most over the scales of the kernel. Labels have no part in it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import normalized_mutual_info_score

from cdsk import CDSK

iris, wine = load_iris(return_X_y=True), load_wine(return_X_y=True)
cancer = load_breast_cancer(return_X_y=True)
digits = [part[:900] for part in load_digits(return_X_y=True)]
millimetres = iris[0] * [1, 10, 1, 10], iris[1]
sets = {
    "iris": iris,
    "iris, two features in mm": millimetres,
    "wine": wine,
    "wine, log": (np.log(1 + wine[0]), wine[1]),
    "breast cancer": cancer,
    "digits": digits,
}
views = ["raw", "standardize", "normal_scores", "whiten", "auto"]

# %%
# ``whiten`` has all components here if it is named; ``auto`` tries several numbers of
# them where there are many features.

scores = np.empty((len(sets), len(views)))
taken = []
for i, (X, y) in enumerate(sets.values()):
    for j, view in enumerate(views):
        model = CDSK(len(np.unique(y)), representation=view, random_state=0).fit(X)
        scores[i, j] = normalized_mutual_info_score(y, model.labels_)
    taken.append(model.representation_.view)
    print(f"{list(sets)[i]:26s} auto took: {taken[-1]}")

# %%
# Agreement with the classes, dark for good. The last column is what one gets without
# looking, and the view it took.

figure, ax = plt.subplots(figsize=(8.5, 3.9), layout="constrained")
ax.imshow(scores, cmap="cividis_r", vmin=0, vmax=1, aspect="auto")
for i, j in np.ndindex(scores.shape):
    text = f"{scores[i, j]:.2f}"
    if views[j] == "auto":
        text += f"\n{taken[i]}"
    ax.text(
        *(j, i, text),
        ha="center",
        va="center",
        fontsize=10 if views[j] != "auto" else 8.5,
        color="white" if scores[i, j] > 0.5 else "black",
    )
ax.set_xticks(range(len(views)), views)
ax.set_yticks(range(len(sets)), sets)
ax.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
ax.spines[:].set_visible(False)
ax.axvline(len(views) - 1.5, color="white", linewidth=6)
plt.show()
