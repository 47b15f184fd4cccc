"""All plots of a model in one figure, and its report: docs/overview.png.

The data are five blobs, some of which overlap. Run it with the package and matplotlib
installed: python examples/overview.py [overview.png]
"""

import sys

from sklearn.datasets import make_blobs

from cdsk import CDSK, plot


def main(path="overview.png"):
    X, _ = make_blobs(600, centers=5, cluster_std=1.6, random_state=6)
    model = CDSK(n_clusters=5, random_state=0).fit(X)
    print(model.report())
    plot.overview(model, X).savefig(path, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
