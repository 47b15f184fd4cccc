# SPDX-License-Identifier: BSD-3-Clause
"""A tree of minima over n pairs of numbers (tests/test_smo.py).

Leaf i is a pair. An inner node holds lower bounds of both numbers over its FAN
children. A leaf that becomes smaller lowers the bounds above it; a leaf that becomes
larger leaves them as they are. Bounds are made exact only on the path to the smallest
leaf, so a change nearly always costs O(1).

NaN is never a minimum.
"""
from libc.math cimport HUGE_VAL

cdef enum:
    SHIFT = 5                # measured: 4 and 6 are no faster
    FAN = 1 << SHIFT
    MAX_LEVELS = 8           # FAN^7 > 2^31 leaves


cdef struct pair:
    double low
    double high


cdef struct min_tree:
    int top                              # level of the root; 0: of the leaves
    Py_ssize_t size[MAX_LEVELS]          # nodes of a level
    pair* level[MAX_LEVELS]


cdef inline Py_ssize_t set_sizes(min_tree* tree, Py_ssize_t n) noexcept nogil:
    """Set the sizes of the levels; return the number of pairs of all levels."""
    cdef Py_ssize_t total = n
    tree.top, tree.size[0] = 0, n
    while tree.size[tree.top] > 1:
        tree.size[tree.top + 1] = (tree.size[tree.top] + FAN - 1) >> SHIFT
        tree.top += 1
        total += tree.size[tree.top]
    return total


cdef inline Py_ssize_t children_end(
    const min_tree* tree, int level, Py_ssize_t node
) noexcept nogil:
    """Return one past the last child on the level below; node << SHIFT is the first."""
    return min((node + 1) << SHIFT, tree.size[level - 1])


cdef inline pair smaller_pair(pair a, pair b) noexcept nogil:
    """Return the minimum of both numbers; that of b where a is NaN."""
    return pair(
        a.low if a.low < b.low else b.low, a.high if a.high < b.high else b.high
    )


cdef inline pair min_of_children(
    const min_tree* tree, int level, Py_ssize_t node
) noexcept nogil:
    cdef const pair* child = tree.level[level - 1]
    cdef Py_ssize_t c = node << SHIFT, end = children_end(tree, level, node)
    cdef pair least = pair(HUGE_VAL, HUGE_VAL)
    cdef pair other = smaller_pair(child[end - 1], least)
    # two chains: a minimum depends on the one before
    while c + 1 < end:
        least = smaller_pair(child[c], least)
        other = smaller_pair(child[c + 1], other)
        c += 2
    return smaller_pair(least, other)


cdef inline void build_tree(min_tree* tree, pair* memory) noexcept nogil:
    """Build all levels in the memory, which begins with the leaves."""
    cdef int level
    cdef Py_ssize_t node
    tree.level[0] = memory
    for level in range(1, tree.top + 1):
        tree.level[level] = tree.level[level - 1] + tree.size[level - 1]
        for node in range(tree.size[level]):
            tree.level[level][node] = min_of_children(tree, level, node)


cdef inline void set_leaf(min_tree* tree, Py_ssize_t i, pair value) noexcept nogil:
    """Set leaf i and lower the bounds above it that are larger."""
    cdef int level
    cdef pair bound
    tree.level[0][i] = value
    for level in range(1, tree.top + 1):
        i = i >> SHIFT
        bound = tree.level[level][i]
        if not ((value.low < bound.low) | (value.high < bound.high)):
            return
        tree.level[level][i] = smaller_pair(value, bound)


cdef inline void refresh_path(
    min_tree* tree, int level, Py_ssize_t node
) noexcept nogil:
    """Recompute the bounds of a node and of all nodes above it."""
    while level <= tree.top:
        tree.level[level][node] = min_of_children(tree, level, node)
        node = node >> SHIFT
        level += 1


cdef inline double value_of(
    const min_tree* tree, int level, Py_ssize_t i, int which
) noexcept nogil:
    """Return low (which = 0) or high (1) of a node."""
    return (&tree.level[level][i].low)[which]


cdef inline Py_ssize_t argmin(min_tree* tree, int which) noexcept nogil:
    """Return the first leaf with the smallest value; makes the root exact for it."""
    cdef int level = tree.top
    cdef Py_ssize_t node = 0, child, end
    cdef double least = value_of(tree, level, 0, which)
    while level > 0:
        child, end = node << SHIFT, children_end(tree, level, node)
        while child < end and value_of(tree, level - 1, child, which) != least:
            child += 1
        if child < end:
            node = child
            level -= 1
        elif least == HUGE_VAL:  # all are NaN
            return node << (SHIFT * level)
        else:
            refresh_path(tree, level, node)
            level, node, least = tree.top, 0, value_of(tree, tree.top, 0, which)
    return node


cdef inline Py_ssize_t argmin_low(min_tree* tree) noexcept nogil:
    return argmin(tree, 0)


cdef inline Py_ssize_t argmin_high(min_tree* tree) noexcept nogil:
    return argmin(tree, 1)
