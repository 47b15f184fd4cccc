# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a clustering. Needs matplotlib, imported only when a picture is made."""

from pathlib import Path

import numpy as np

__all__ = ["scatter"]

# Colours that colour-blind readers can tell apart: Okabe & Ito's without black, and
# three of Paul Tol's.
_COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442"),
    *("#882255", "#332288", "#999933"),
)
_GREY = "#9a9a9a"

# Points along each side of the grid on which boundaries are drawn.
_GRID = 300


def scatter(model, X, *, ax=None, title=None, boundaries=False):
    """Draw points coloured by cluster, large and opaque where they carry weight.

    Points without weight are small and hollow. Data of more than two features are shown
    by their first two principal components, data of one feature against their weights.

    Parameters
    ----------
    model : CDSK
        Fitted model. Another fitted clusterer is drawn with equal weights.
    X : array-like of shape (n_samples, n_features)
        The points it was fitted to; for a precomputed kernel, any coordinates of them.
    ax : matplotlib Axes, default=None
        Where to draw; None means the current ones of pyplot.
    title : str, default=None
        Title of the axes.
    boundaries : bool, default=False
        Draw the boundaries between the regions of ``model.predict``; for models of two
        features only.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from cdsk import CDSK, plot
    >>> ax = plot.scatter(CDSK(3).fit(X), X, title="Three clusters")  # doctest: +SKIP
    """
    require_matplotlib()
    points, labels, weights = _check(model, X)
    if boundaries:
        _check_boundaries(model)
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.gca()
    places, names = _plane(points, weights, getattr(model, "feature_names_in_", None))
    colours = _palette(int(labels.max()) + 1)[labels]
    _draw(ax, places, colours, weights)
    if boundaries:
        _draw_boundaries(ax, model)
    ax.set(xlabel=names[0], ylabel=names[1], title=title)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def require_matplotlib():
    """Refuse in words if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "Pictures need matplotlib, which is not installed: pip install cdsk[plot]"
        ) from None


def check_picture(path):
    """Refuse a picture that could not be written for its format."""
    require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in known:
        raise ValueError(
            f"cannot tell the format of the picture {path}: expected a name that ends "
            f"in {', '.join('.' + ending for ending in sorted(known))}."
        )


def save_scatter(model, X, path, names=None):
    """Write ``scatter`` of a model as a picture, without pyplot or a screen.

    ``names`` are those of the features, for a model that was fitted without.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    ax = scatter(model, X, ax=figure.add_subplot())
    if names is not None and len(names) <= 2:
        ax.set(**dict(zip(("xlabel", "ylabel"), names, strict=False)))
    figure.savefig(path, dpi=200)


def _check(model, X):
    points = np.asarray(X, dtype=np.float64)
    labels = np.asarray(model.labels_)
    if points.ndim != 2 or len(points) != len(labels) or not points.size:
        raise ValueError(
            f"X must hold the points of the model, shape ({len(labels)}, n_features); "
            f"got shape {points.shape}."
        )
    weights = getattr(model, "weights_", None)
    return points, labels, np.ones(len(labels)) if weights is None else weights


def _check_boundaries(model):
    n_features = getattr(model, "n_features_in_", None)
    precomputed = getattr(model, "kernel", None) == "precomputed"
    if n_features != 2 or precomputed or not hasattr(model, "decision_function"):
        raise ValueError(
            "boundaries needs a CDSK model of 2 features; got "
            f"{type(model).__name__} of {n_features} features"
            f"{' with a precomputed kernel' if precomputed else ''}."
        )


def _plane(points, weights, names):
    """Two coordinates per point, and what they are."""
    n_features = points.shape[1]
    if names is None:
        names = [f"feature {j + 1}" for j in range(n_features)]
    if n_features == 2:
        return points, names
    if n_features == 1:
        return np.column_stack([points[:, 0], weights]), [names[0], "weight"]
    from sklearn.decomposition import PCA

    pca = PCA(2, random_state=0)
    places = pca.fit_transform(points)
    shares = pca.explained_variance_ratio_
    return places, [
        f"principal component {j + 1} ({share:.0%} of the variance)"
        for j, share in enumerate(shares)
    ]


def _palette(n_clusters):
    """Return an (n_clusters, 4) array of colours."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba_array

    if n_clusters <= len(_COLOURS):
        return to_rgba_array(_COLOURS[:n_clusters])
    if n_clusters <= 20:
        return colormaps["tab20"](np.arange(n_clusters))
    return colormaps["turbo"](np.linspace(0.0, 1.0, n_clusters))


def _draw(ax, places, colours, weights):
    """Points with weight as discs, light ones first; others as small rings."""
    share = np.sqrt(weights / weights.max())
    area = np.clip(20000 / len(places), 6.0, 42.0)
    empty = np.flatnonzero(share == 0)
    ax.scatter(
        *places[empty].T,
        s=0.4 * area,
        facecolors="none",
        edgecolors=colours[empty],
        linewidths=0.5,
        alpha=0.6,
        zorder=1.9,
    )
    full = np.flatnonzero(share)
    full = full[np.argsort(share[full], kind="stable")]
    share = share[full]
    ax.scatter(
        *places[full].T,
        s=area * (0.3 + 0.7 * share),
        c=colours[full],
        alpha=0.25 + 0.65 * share,
        edgecolors="white",
        linewidths=0.25,
        zorder=2,
    )


def _draw_boundaries(ax, model):
    """Thin lines around the region of every cluster, within the present limits."""
    limits = ax.get_xlim(), ax.get_ylim()
    x, y = (np.linspace(*limit, _GRID) for limit in limits)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    votes = model.decision_function(grid).T
    for label in np.flatnonzero(np.isfinite(votes).all(axis=1)):
        # The lead of a cluster over the others changes its sign at its boundary.
        lead = votes[label] - np.delete(votes, label, axis=0).max(axis=0)
        if lead.min() < 0 < lead.max():
            ax.contour(
                *(x, y, lead.reshape(_GRID, _GRID)),
                levels=[0.0],
                colors=_GREY,
                linewidths=0.7,
                zorder=1.5,
            )
    ax.set(xlim=limits[0], ylim=limits[1])
