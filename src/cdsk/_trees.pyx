# SPDX-License-Identifier: BSD-3-Clause
"""Minimum spanning trees and partitions along them (tests/test_spanning_tree.py).

    spanning_tree(...)     the edges of a minimum spanning tree, by Kruskal's algorithm
    merge_clusters(...)    merge along the tree, with a bound on the Gini index of sizes
    cut_edges(...)         cut the longest edges that leave enough mass on both sides

Only the order of the weights counts: edges come sorted, shortest first. Sizes of points
are integers, so that all sums are exact and no result depends on their order.

*Merging.* Single linkage merges at the shortest edge between two clusters, and outliers
remain clusters of their own. Here, while the Gini index of the sizes of k clusters,

    G = sum_{a < b} |s_a - s_b| / ((k - 1) sum_a s_a),

exceeds a limit, only edges at a cluster of the smallest size are merged (Gagolewski,
Bartoszuk & Cena, Genie: a new, fast, and outlier-resistant hierarchical clustering
algorithm, Information Sciences 2016). The clusters of total size N have O(sqrt(N))
distinct sizes, and a merge updates the sum over pairs in one pass over these. An edge
that touches no cluster of the smallest size will not touch one before the smallest size
changes, because clusters only grow: the search for an edge goes on where it ended. It
starts again for a new smallest size s, with the at most N / s edges that remain. So
the time is O(n sqrt(N) + N log(n)).

*Cutting.* Cutting the longest edges is single linkage too. Here an edge is cut only if
the tree has a mass of at least ``least`` on both sides of it, within its piece. Pieces
only shrink, so an edge that fails once always fails. The tree has a root; ``mass[v]``
is the mass below v within the piece, for every edge (v, parent) that has not failed,
and for the top point of a piece the mass of the piece. A cut walks up to the top. If it
fails because too little remains above, all edges on its way fail as well, and later
walks skip them: failures take O(n) time altogether, and c - 1 cuts O(c depth).
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport llabs

from cdsk._signals cimport add_work, gather_work, work_interval


cdef inline int32_t find(int32_t* parent, int32_t v) noexcept nogil:
    """Return the representative of the set of v, and halve the path to it."""
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


def spanning_tree(
    const int32_t[:, ::1] edges,  # (m, 2) in, shortest first
    int32_t[:, ::1] tree,         # (n - 1, 2) out, shortest first
):
    """Select the edges that connect two components of those before; return how many.

    These are n - 1 if the graph is connected. Edges may come twice.
    """
    cdef Py_ssize_t e, m = edges.shape[0], n = tree.shape[0] + 1, count = 0
    cdef int32_t[::1] parent = np.arange(n, dtype=np.int32)
    cdef int32_t a, b
    cdef double work_done = 0.0, interval = work_interval()
    with nogil:
        for e in range(m):
            if count == n - 1:
                break
            add_work(&work_done, gather_work(2), interval)
            a, b = find(&parent[0], edges[e, 0]), find(&parent[0], edges[e, 1])
            if a != b:
                parent[max(a, b)] = min(a, b)
                tree[count, 0], tree[count, 1] = edges[e, 0], edges[e, 1]
                count += 1
    return count


cdef struct size_counts:
    Py_ssize_t n_distinct
    int64_t* size                 # (n_distinct,) ascending
    int64_t* count                # (n_distinct,) clusters of this size


cdef void add_cluster(size_counts* counts, int64_t size) noexcept nogil:
    """Count a cluster, whose size is most likely among the largest."""
    cdef Py_ssize_t t = counts.n_distinct, other
    while t > 0 and counts.size[t - 1] >= size:
        t -= 1
    if t == counts.n_distinct or counts.size[t] != size:
        for other in range(counts.n_distinct, t, -1):
            counts.size[other] = counts.size[other - 1]
            counts.count[other] = counts.count[other - 1]
        counts.size[t], counts.count[t] = size, 0
        counts.n_distinct += 1
    counts.count[t] += 1


cdef void remove_cluster(size_counts* counts, int64_t size) noexcept nogil:
    cdef Py_ssize_t t = 0, other
    while counts.size[t] != size:
        t += 1
    counts.count[t] -= 1
    if counts.count[t] == 0:
        counts.n_distinct -= 1
        for other in range(t, counts.n_distinct):
            counts.size[other] = counts.size[other + 1]
            counts.count[other] = counts.count[other + 1]


cdef int64_t merge_sizes(size_counts* counts, int64_t a, int64_t b) noexcept nogil:
    """Merge clusters of sizes a and b; return the change of sum_{s < t} |s - t|."""
    cdef Py_ssize_t t
    cdef int64_t size, change = -llabs(a - b)
    remove_cluster(counts, a)
    remove_cluster(counts, b)
    for t in range(counts.n_distinct):
        size = counts.size[t]
        change += counts.count[t] * (
            llabs(size - a - b) - llabs(size - a) - llabs(size - b)
        )
    add_cluster(counts, a + b)
    return change


# Edges of the tree that are not merged, and some that are.
cdef struct edge_list:
    Py_ssize_t n
    int32_t* edge                 # (n,) shortest first
    uint8_t* is_merged            # of all edges of the tree
    Py_ssize_t shortest           # all before this position are merged
    Py_ssize_t scanned            # none before it touches a cluster of this size
    int64_t size


cdef int32_t shortest_edge(edge_list* rest) noexcept nogil:
    while rest.is_merged[rest.edge[rest.shortest]]:
        rest.shortest += 1
    return rest.edge[rest.shortest]


cdef void restart_scan(edge_list* rest, int64_t size) noexcept nogil:
    """Scan for clusters of another size from now on; drop the merged edges."""
    cdef Py_ssize_t t, kept = 0
    for t in range(rest.shortest, rest.n):
        if not rest.is_merged[rest.edge[t]]:
            rest.edge[kept] = rest.edge[t]
            kept += 1
    rest.n, rest.shortest, rest.scanned, rest.size = kept, 0, 0, size


cdef int32_t shortest_edge_at_size(
    edge_list* rest, const int32_t* tree, int32_t* cluster, const int64_t* mass
) noexcept nogil:
    """Return the shortest edge at a cluster of the size scanned for."""
    cdef int32_t edge
    while True:
        edge = rest.edge[rest.scanned]
        if not rest.is_merged[edge] and rest.size in (
            mass[find(cluster, tree[2 * edge])], mass[find(cluster, tree[2 * edge + 1])]
        ):
            return edge
        rest.scanned += 1


def merge_clusters(
    const int32_t[:, ::1] tree,   # (n - 1, 2) in, shortest edge first
    const int64_t[::1] sizes,     # (n,) in, positive
    Py_ssize_t n_clusters,        # 1 ... n
    double limit,
    int32_t[::1] labels,          # (n,) out: a point of the cluster
):
    """Merge along the tree until there are n_clusters, the Gini index bounded."""
    ascending = np.sort(sizes)
    distinct, frequency = np.unique(ascending, return_counts=True)
    cdef Py_ssize_t n = sizes.shape[0], k, t
    cdef double total = ascending.sum()
    cdef int64_t spread = ascending @ np.arange(1 - n, n, 2)
    # distinct sizes of sum N are fewer than sqrt(2 N)
    table = np.zeros((2, int((2 * total) ** 0.5) + 1), dtype=np.int64)
    table[:, : distinct.size] = distinct, frequency
    cdef int64_t[::1] size = table[0], count = table[1], mass = np.array(sizes)
    cdef uint8_t[::1] is_merged = np.zeros(n, dtype=np.uint8)
    cdef int32_t[::1] remaining = np.arange(n, dtype=np.int32)
    cdef size_counts counts = size_counts(distinct.size, &size[0], &count[0])
    cdef edge_list rest = edge_list(n - 1, &remaining[0], &is_merged[0], 0, 0, 0)
    cdef int32_t edge, a, b
    cdef double work, work_done = 0.0, interval = work_interval()
    np.asarray(labels)[:] = np.arange(n)
    with nogil:
        for k in range(n, n_clusters, -1):
            work = gather_work(2) + counts.n_distinct
            if spread / ((k - 1) * total) <= limit:
                edge = shortest_edge(&rest)
            else:
                if rest.size != size[0]:
                    work += rest.n
                    restart_scan(&rest, size[0])
                work -= gather_work(2 * rest.scanned)
                edge = shortest_edge_at_size(&rest, &tree[0, 0], &labels[0], &mass[0])
                work += gather_work(2 * rest.scanned)
            add_work(&work_done, work, interval)
            a, b = find(&labels[0], tree[edge, 0]), find(&labels[0], tree[edge, 1])
            is_merged[edge] = True
            spread += merge_sizes(&counts, mass[a], mass[b])
            if mass[a] < mass[b]:
                a, b = b, a
            labels[b] = a
            mass[a] += mass[b]
        for t in range(n):
            labels[t] = find(&labels[0], <int32_t> t)


cdef void cut(
    int32_t v, int32_t top, const int32_t* above, int64_t* mass
) noexcept nogil:
    """Subtract the mass of v from all points above it in the piece."""
    cdef int32_t u = v
    while u != top:
        u = above[u]
        mass[u] -= mass[v]


cdef void contract(
    int32_t v, int32_t top, int32_t* above, uint8_t* has_failed
) noexcept nogil:
    """Let all edges between v and the top fail, and walks skip them."""
    cdef int32_t u
    while v != top:
        u, above[v], has_failed[v] = above[v], top, True
        v = u


def cut_edges(
    const int32_t[::1] order,     # (n,) in, the root first, parents before children
    const int32_t[::1] parent,    # (n,) in; that of the root is not used
    const int32_t[::1] children,  # (n - 1,) in: (v, parent[v]), shortest edge first
    const int64_t[::1] sizes,     # (n,) in, positive
    Py_ssize_t n_clusters,        # 1 ... n
    double least,
    int32_t[::1] labels,          # (n,) out: a point of the cluster
):
    """Cut the longest edges with ``least`` on both sides until there are n_clusters.

    If there are not enough of them, half of ``least`` is tried. Return the last one.
    """
    cdef Py_ssize_t n = sizes.shape[0], n_pieces = 0, t, n_steps
    cdef int64_t[::1] mass = np.empty(n, dtype=np.int64)
    cdef int32_t[::1] above = np.empty(n, dtype=np.int32)
    cdef uint8_t[::1] is_top = np.empty(n, dtype=np.uint8)
    cdef uint8_t[::1] has_failed = np.empty(n, dtype=np.uint8)
    cdef int32_t v, top
    cdef double work_done = 0.0, interval = work_interval()
    with nogil:
        while True:
            for t in range(n):
                mass[t], above[t] = sizes[t], parent[t]
                is_top[t], has_failed[t] = t == order[0], False
            n_pieces = 1
            for t in range(n - 1, 0, -1):
                add_work(&work_done, gather_work(2), interval)
                mass[parent[order[t]]] += mass[order[t]]
            for t in range(n - 2, -1, -1):
                if n_pieces == n_clusters:
                    break
                add_work(&work_done, gather_work(1), interval)
                v = children[t]
                if has_failed[v] or mass[v] < least:
                    continue
                top, n_steps = above[v], 1
                while not is_top[top]:
                    top, n_steps = above[top], n_steps + 1
                add_work(&work_done, gather_work(2 * n_steps), interval)
                if mass[top] - mass[v] >= least:
                    cut(v, top, &above[0], &mass[0])
                    is_top[v] = True
                    n_pieces += 1
                else:
                    contract(v, top, &above[0], &has_failed[0])
            # every edge can be cut if no point has less
            if n_pieces == n_clusters or least <= 1.0:
                break
            least /= 2.0
        for t in range(n):
            v = order[t]
            labels[v] = v if is_top[v] else labels[parent[v]]
    return least
