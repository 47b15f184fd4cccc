"""Every stage again in plain NumPy, from the equations of docs/method.md.

Slow and obvious on purpose. ``lam`` is the paper's lambda, n times the estimator's.
"""

import numpy as np
from scipy.optimize import brentq


def squared_distances(A, B):
    A, B = np.asarray(A, dtype=np.longdouble), np.asarray(B, dtype=np.longdouble)
    return ((A[:, np.newaxis] - B[np.newaxis]) ** 2).sum(axis=-1)


def gaussian_rows(A, B, bandwidth_a, bandwidth_b):
    a = np.broadcast_to(np.asarray(bandwidth_a, dtype=np.longdouble), len(A))
    b = np.broadcast_to(np.asarray(bandwidth_b, dtype=np.longdouble), len(B))
    return np.exp(-squared_distances(A, B) / (2 * np.outer(a, b)))


def gaussian_gram(X, bandwidth):
    return gaussian_rows(X, X, bandwidth, bandwidth)


def log_votes(X, points, labels, weights, bandwidth, n_clusters):
    """log sum over the points of a cluster, in extended precision."""
    K = gaussian_rows(X, points, bandwidth, bandwidth) * weights
    with np.errstate(divide="ignore"):
        return np.log(
            np.stack([K[:, labels == y].sum(axis=1) for y in range(n_clusters)], axis=1)
        )


def product(K, columns):
    """(K - diag K) times each row of columns."""
    K = np.asarray(K, dtype=float)
    return columns @ (K - np.diag(np.diag(K)))


def similarity(K, alpha, lam):
    """S, and its degrees without the diagonal."""
    K = np.asarray(K, dtype=float)
    S = 2 * (alpha[:, np.newaxis] + alpha - lam * np.outer(alpha, alpha)) * K
    return S, S.sum(axis=1) - np.diag(S)


def components(K, alpha, lam, negligible):
    S, degrees = similarity(K, alpha, lam)
    joined = np.minimum.outer(degrees, degrees) * negligible < S
    label = np.full(len(K), -1)
    count = 0
    for i in range(len(K)):
        if label[i] < 0:
            stack = [i]
            while stack:
                j = stack.pop()
                if label[j] < 0:
                    label[j] = count
                    stack.extend(np.flatnonzero(joined[j] & (label < 0)))
            count += 1
    return count, label


def normalized(K, alpha, lam):
    """D^-1/2 S D^-1/2 without self-similarity."""
    S, degrees = similarity(K, alpha, lam)
    S = S - np.diag(np.diag(S))
    root = 1 / np.sqrt(degrees)
    return root[:, np.newaxis] * S * root


def embedding(K, alpha, lam, n_clusters):
    """Columns of Y with unit rows, and all eigenvalues, largest first."""
    _, degrees = similarity(K, alpha, lam)
    values, vectors = np.linalg.eigh(normalized(K, alpha, lam))
    Y = vectors[:, ::-1][:, :n_clusters] / np.sqrt(degrees)[:, np.newaxis]
    return (Y / np.linalg.norm(Y, axis=1, keepdims=True)).T, values[::-1]


def eigh(A):
    """Eigenvalues, smallest first, and eigenvectors as columns: LAPACK's."""
    return np.linalg.eigh(A)


def weight_qp(K, columns, lam):
    """Q and p of the weight step: minimize p'a + a'Qa."""
    K = np.asarray(K, dtype=float)
    G = columns.T @ columns
    return lam * K * G, (K * (1 - 2 * G)).sum(axis=1)


def kkt_gap(Q, p, x, upper):
    g = p + 2 * Q @ x
    high = g[x > 0].max() if (x > 0).any() else -np.inf
    low = g[x < upper].min() if (x < upper).any() else np.inf
    return max(high - low, 0.0)


def smo(Q, p, upper, tol, max_iter=100_000):
    """The solver's loop with first-order pairs and whole-gradient recomputation."""
    n = len(p)
    x = np.full(n, 1 / n)
    for _ in range(max_iter):
        g = p + 2 * Q @ x
        receives, gives = x < upper, x > 0
        if not receives.any() or not gives.any():
            break
        j = np.argmin(np.where(receives, g, np.inf))
        i = np.argmax(np.where(gives, g, -np.inf))
        if g[i] - g[j] <= tol:
            break
        curvature = max(Q[i, i] + Q[j, j] - 2 * Q[i, j], 1e-300)
        t = min((g[i] - g[j]) / (2 * curvature), x[i], upper - x[j])
        x[i], x[j] = x[i] - t, x[j] + t
        if x[i] < 1e-15:
            x[i] = 0.0
        if x[j] > upper - 1e-15:
            x[j] = upper
    return x


def split(K):
    """K+ and K- of a symmetric matrix."""
    values, vectors = np.linalg.eigh(np.asarray(K, dtype=float))
    positive = (vectors * np.maximum(values, 0)) @ vectors.T
    negative = (vectors * np.maximum(-values, 0)) @ vectors.T
    return positive, negative


def general_similarity(K, alpha, lam):
    """max(S, 0) of CDS, its degrees without the diagonal, and S before."""
    K = np.asarray(K, dtype=float)
    positive, negative = split(K)
    sums, products = alpha[:, np.newaxis] + alpha, np.outer(alpha, alpha)
    raw = 2 * sums * K - 2 * lam * products * positive - 2 * lam * products * negative
    S = np.maximum(raw, 0)
    return S, S.sum(axis=1) - np.diag(S), raw


def general_normalized(K, alpha, lam):
    S, degrees, _ = general_similarity(K, alpha, lam)
    S = S - np.diag(np.diag(S))
    return S / np.sqrt(np.outer(degrees, degrees))


def general_weight_qp(K, columns, lam):
    positive, negative = split(K)
    G = columns.T @ columns
    return lam * (positive + negative) * G, (K * (1 - 2 * G)).sum(axis=1)


def sparse_objective(X, a, tau):
    """sum_i |x_i - sum_{j != i} x_j a_j|^2 + tau |a|_0, term by term."""
    rests = [
        x - sum(a[j] * X[j] for j in range(len(X)) if j != i) for i, x in enumerate(X)
    ]
    return sum(rest @ rest for rest in rests) + tau * np.count_nonzero(a)


def votes(S, labels, weights):
    """h(x_i, y) for every point and class."""
    classes = np.unique(labels)
    return np.stack(
        [(S * np.where(labels == y, weights, 0)).sum(axis=1) for y in classes], axis=1
    )


def margin_loss(S, labels, weights, gamma):
    total = 0.0
    for y, h in zip(labels, votes(S, labels, weights), strict=True):
        own = np.unique(labels) == y
        margin = h[own][0] - h[~own].max()
        total += min(1, max(0, 1 - margin / gamma))
    return total / len(S)


def similarity_loss(S, labels, weights, gamma):
    """Equation similarity-error-similarity as printed, sum by sum."""
    n = len(S)
    first = second = 0.0
    for i in range(n):
        for j in range(n):
            first += (weights[i] + weights[j]) / 2 * S[i, j]
            if i < j and labels[i] != labels[j]:
                second += 2 * (weights[i] + weights[j]) * S[i, j]
    return 1 - first / (n * gamma) + second / (n * gamma)


def ise_terms(X, labels, weights, bandwidth):
    """Equations hat-ise and reg-ise as printed, sum by sum."""
    n = len(X)
    K = gaussian_gram(X, bandwidth).astype(float)
    wide = gaussian_gram(X, np.sqrt(2) * bandwidth).astype(float)
    pairs = [(i, j) for i in range(n) for j in range(i) if labels[i] != labels[j]]
    empirical = 4 * sum((weights[i] + weights[j]) * K[i, j] for i, j in pairs)
    empirical -= ((weights[:, np.newaxis] + weights) * K).sum()
    regularizer = weights @ wide @ weights
    regularizer -= 4 * sum(weights[i] * weights[j] * wide[i, j] for i, j in pairs)
    return empirical, regularizer


def normalized_cut(S, labels):
    """Sum of cut / volume over the parts, without self-similarity."""
    S = S - np.diag(np.diag(S))
    parts = [labels == y for y in np.unique(labels)]
    return sum(S[p][:, ~p].sum() / S[p].sum() for p in parts)


def nearest(A, B, k):
    """Sorted distances of each row of A to the k nearest rows of B."""
    return np.sqrt(np.sort(squared_distances(A, B), axis=1)[:, :k]).astype(float)


def truncated_gram(X, bandwidth, neighbors):
    """The Gaussian kernel without its diagonal, 0 but for neighbors of each other."""
    K = gaussian_gram(X, bandwidth).astype(float)
    near = np.zeros(K.shape, dtype=bool)
    for i, row in enumerate(neighbors):
        for j in row:
            near[i, j] = near[j, i] = True
    return np.where(near, K, 0.0)


def sparse_row(starts, columns, values, diagonal, i):
    row = np.zeros(len(diagonal))
    for k in range(starts[i], starts[i + 1]):
        row[columns[k]] = values[k]
    row[i] = diagonal[i]
    return row


def leave_one_out(K, labels, weights):
    """Votes of the others for the own cluster less those for the best other one.

    In units of all votes, which come second.
    """
    K = K - np.diag(np.diag(K))
    margins, total = np.zeros(len(K)), np.zeros(len(K))
    for i, own in enumerate(labels):
        h = {y: K[i, labels == y] @ weights[labels == y] for y in set(labels)}
        best = max((v for y, v in h.items() if y != own), default=0.0)
        total[i] = sum(h.values())
        if total[i] > 0:
            margins[i] = (h[own] - best) / total[i]
    return margins, total


def whitened(X, m):
    """First m principal components at variance 1, each up to its sign."""
    left, _, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return np.sqrt(len(X)) * left[:, :m]


def neighbor_graph(X, k):
    """1 between points of which one is among the k nearest of the other."""
    distances = squared_distances(X, X)
    np.fill_diagonal(distances, np.inf)
    A = np.zeros(distances.shape)
    for i, row in enumerate(np.argsort(distances, axis=1)[:, :k]):
        A[i, row] = A[row, i] = 1
    return A


def relaxed_cut(X, k, n_clusters):
    """Mean of the smallest Laplacian eigenvalues of the graph of the k nearest."""
    A = neighbor_graph(X, k)
    root = 1 / np.sqrt(A.sum(axis=1))
    L = np.eye(len(A)) - root[:, np.newaxis] * A * root
    return np.linalg.eigvalsh(L)[:n_clusters].mean()


def cohesion(labels, n_clusters, A):
    """Share of each cluster's edges in the graph A that are inside, beyond chance."""
    inside = 0.0
    for y in set(labels):
        mine = np.flatnonzero(labels == y)
        edges = [A[i, j] for i in mine for j in range(len(A)) if A[i, j]]
        kept = [A[i, j] for i in mine for j in mine if A[i, j]]
        inside += sum(kept) / sum(edges) if edges else 0.0
    return max(inside - 1, 0) / (n_clusters - 1)


def partition_scores(partitions, n_clusters, A=None):
    """Votes of all partitions for each, weighted by balance or cohesion, sum by sum."""

    def balance(labels):
        shares = [np.mean(labels == y) for y in set(labels)]
        effective = np.prod([share**-share for share in shares])
        return (effective - 1) / (n_clusters - 1)

    b = [balance(p) for p in partitions]
    if A is not None:
        held = [cohesion(p, n_clusters, A) for p in partitions]
        b = [max(one, two**12) for one, two in zip(b, held, strict=True)]
    return np.array(
        [
            sum(
                w * max(adjusted_rand(p, q), 0) ** 4
                for w, q in zip(b, partitions, strict=True)
            )
            / sum(b)
            for p in partitions
        ]
    )


def adjusted_rand(a, b):
    """Hubert & Arabie (1985), from the counts of pairs."""
    pairs = np.triu(np.ones((len(a), len(a)), dtype=bool), 1)
    same_a, same_b = (np.equal.outer(x, x)[pairs] for x in (a, b))
    both, expected = np.sum(same_a & same_b), same_a.sum() * same_b.mean()
    most = (same_a.sum() + same_b.sum()) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def hash_64(x):
    """The finalizer of MurmurHash3."""
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD % 2**64
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return x ^ x >> 33


def acts(rate, phase, epoch):
    """Whether the time of an entry, in units of 2^-32, passes a whole number."""
    before = int(phase) + epoch * int(rate)
    return (before + int(rate)) // 2**32 > before // 2**32


def negatives(seed, epoch, own_id, place, n, count):
    """The random ids that one acting entry of a row draws."""
    stream = hash_64((seed + epoch * 2**32) % 2**64)
    state = hash_64((stream + own_id * 2**32 + place) % 2**64)
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        yield (hash_64(state) >> 32) * n >> 32


def layout_move(Y, graph, ids, *, epoch, step, n_negatives, seed, softening=1 / 16):
    """Where an epoch moves the points (n, d); ``graph`` is (starts, neighbors, ...)."""
    starts, neighbors, rates, phases = graph
    Y = np.asarray(Y, dtype=float)
    points, moved = np.argsort(ids), np.empty_like(Y)
    for i in range(len(Y)):
        y = Y[i].copy()
        for e in range(starts[i], starts[i + 1]):
            if not acts(rates[e], phases[e], epoch):
                continue
            for _ in range(2):
                difference = y - Y[neighbors[e]]
                y -= step * 2 * difference / (1 + difference @ difference)
            place, repulsion = e - int(starts[i]), np.zeros(Y.shape[1])
            for k in negatives(seed, epoch, int(ids[i]), place, len(Y), n_negatives):
                difference = y - Y[points[k]]
                s = difference @ difference
                if points[k] != i:
                    repulsion += 2 * difference / ((softening + s) * (1 + s))
            y += step * repulsion
        moved[i] = y
    return moved


def umap_layout(W, start, n_epochs, n_negatives, rng):
    """UMAP as published, a = b = 1: edges in turn, each moves its ends at once."""
    Y, n = start.astype(float), len(start)
    heads, tails = np.nonzero(W)
    intervals = W.max() / W[heads, tails]
    due = intervals.copy()
    for epoch in range(1, n_epochs + 1):
        step = 1 - (epoch - 1) / n_epochs
        for e in np.flatnonzero(due <= epoch):
            i, j = heads[e], tails[e]
            difference = Y[i] - Y[j]
            pull = step * 2 * difference / (1 + difference @ difference)
            Y[i] -= pull
            Y[j] += pull
            for k in rng.integers(n, size=n_negatives):
                difference = Y[i] - Y[k]
                s = difference @ difference
                push = 2 * difference / ((0.001 + s) * (1 + s))
                Y[i] += step * np.clip(push, -4, 4)
            due[e] += intervals[e]
    return Y


def layout_loss(W, Y, n_negatives, softening=1 / 16):
    """The loss of each point, from the dense weights W."""
    rates, n = W / W.max(), len(Y)
    loss = np.zeros(n)
    for i in range(n):
        for k in range(n):
            s = float(np.sum((Y[i] - Y[k]) ** 2))
            loss[i] += 2 * rates[i, k] * np.log(1 + s)
            if k != i:
                repulsion = np.log((1 + s) / (softening + s)) / (1 - softening)
                loss[i] += n_negatives * rates[i].sum() / n * repulsion
    return loss


def fuzzy_weights(distances, indices):
    """UMAP's weights, a row at a time; the decay of each by a solver of SciPy."""
    n, k = distances.shape
    A = np.zeros((n, n))
    for i, (row, columns) in enumerate(zip(distances, indices, strict=True)):
        positive = row[row > 0]
        beyond = np.maximum(row - (positive.min() if len(positive) else 0.0), 0.0)
        least = 1e-3 * row.mean() or 1e-300

        def excess(decay, beyond=beyond):
            return np.exp(-beyond / decay).sum() - np.log2(k + 1)

        is_small = excess(least) >= 0
        decay = least if is_small else brentq(excess, least, 1e3 * row.max())
        A[i, columns] = np.exp(-beyond / decay)
    return A + A.T - A * A.T
