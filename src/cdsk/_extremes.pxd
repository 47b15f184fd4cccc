# SPDX-License-Identifier: BSD-3-Clause
"""A tree of minima over n pairs of numbers (tests/test_smo.py).

Leaf i is a pair; a node above holds a lower bound of each half over its FAN children.
A smaller leaf lowers the bounds above it, as far as they are larger; one that has grown
leaves them as they are. They are made exact on the way to the smallest leaf, where they
matter: a change costs O(1) nearly always, and most nodes never look at their children.

NaN counts as no number: it is never a minimum.
"""
from libc.math cimport HUGE_VAL

cdef enum:
    SHIFT = 5                # measured: 4 and 6 are no faster
    FAN = 1 << SHIFT
    MOST_LEVELS = 8          # FAN^7 > 2^31 leaves


cdef struct pair:
    double low
    double high


cdef struct extremes:
    int top                              # level of the root; 0: of the leaves
    Py_ssize_t size[MOST_LEVELS]         # nodes of a level
    pair* level[MOST_LEVELS]


cdef inline Py_ssize_t shape_tree(extremes* tree, Py_ssize_t n) noexcept nogil:
    """Set the sizes of the levels; returns how many pairs all of them have."""
    cdef Py_ssize_t total = n
    tree.top, tree.size[0] = 0, n
    while tree.size[tree.top] > 1:
        tree.size[tree.top + 1] = (tree.size[tree.top] + FAN - 1) >> SHIFT
        tree.top += 1
        total += tree.size[tree.top]
    return total


cdef inline Py_ssize_t end_of_children(
    const extremes* tree, int level, Py_ssize_t node
) noexcept nogil:
    """One past the last child, on the level below; node << SHIFT is the first."""
    return min((node + 1) << SHIFT, tree.size[level - 1])


cdef inline pair smaller(pair a, pair b) noexcept nogil:
    """Of each half; that of b if a is NaN."""
    return pair(
        a.low if a.low < b.low else b.low, a.high if a.high < b.high else b.high
    )


cdef inline pair least_child(
    const extremes* tree, int level, Py_ssize_t node
) noexcept nogil:
    cdef const pair* child = tree.level[level - 1]
    cdef Py_ssize_t c = node << SHIFT, end = end_of_children(tree, level, node)
    cdef pair least = pair(HUGE_VAL, HUGE_VAL), other = smaller(child[end - 1], least)
    # two at a time: a minimum waits for the one before
    while c + 1 < end:
        least = smaller(child[c], least)
        other = smaller(child[c + 1], other)
        c += 2
    return smaller(least, other)


cdef inline void build_tree(extremes* tree, pair* memory) noexcept nogil:
    """Put the levels into the memory, whose first pairs are the leaves."""
    cdef int level
    cdef Py_ssize_t node
    tree.level[0] = memory
    for level in range(1, tree.top + 1):
        tree.level[level] = tree.level[level - 1] + tree.size[level - 1]
        for node in range(tree.size[level]):
            tree.level[level][node] = least_child(tree, level, node)


cdef inline void put_leaf(extremes* tree, Py_ssize_t i, pair value) noexcept nogil:
    """Change leaf i, and the bounds above it that are larger."""
    cdef int level
    cdef pair known
    tree.level[0][i] = value
    for level in range(1, tree.top + 1):
        i = i >> SHIFT
        known = tree.level[level][i]
        if not ((value.low < known.low) | (value.high < known.high)):
            return
        tree.level[level][i] = smaller(value, known)


cdef inline void refresh(extremes* tree, int level, Py_ssize_t node) noexcept nogil:
    """Bounds of a node, and of all above it, from those of their children."""
    while level <= tree.top:
        tree.level[level][node] = least_child(tree, level, node)
        node = node >> SHIFT
        level += 1


cdef inline double half(
    const extremes* tree, int level, Py_ssize_t i, int which
) noexcept nogil:
    """Low (0) or high (1) of a node."""
    return (&tree.level[level][i].low)[which]


cdef inline Py_ssize_t first_least(extremes* tree, int which) noexcept nogil:
    """The first leaf with the smallest half; that of the root is exact afterwards."""
    cdef int level = tree.top
    cdef Py_ssize_t node = 0, child, end
    cdef double least = half(tree, level, 0, which)
    while level > 0:
        child, end = node << SHIFT, end_of_children(tree, level, node)
        while child < end and half(tree, level - 1, child, which) != least:
            child += 1
        if child < end:
            node = child
            level -= 1
        elif least == HUGE_VAL:  # nothing but NaN
            return node << (SHIFT * level)
        else:
            refresh(tree, level, node)
            level, node, least = tree.top, 0, half(tree, tree.top, 0, which)
    return node


cdef inline Py_ssize_t first_lowest(extremes* tree) noexcept nogil:
    return first_least(tree, 0)


cdef inline Py_ssize_t first_highest(extremes* tree) noexcept nogil:
    return first_least(tree, 1)
