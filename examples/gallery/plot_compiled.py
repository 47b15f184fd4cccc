"""
From Cython, C++ and numba
==========================

The compiled functions of cdsk are plain C functions. Other compiled code calls them
without the GIL and with its own memory. ``examples/embed`` contains complete programs,
and ``docs/embedding.md`` describes the functions. This example runs two of the
programs, if a compiler and numba are installed: one in C++ that compares bandwidths on
its own threads, and one in numba that estimates a density from a subset of the points.
"""

import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

# the documentation build runs programs without __file__
here = Path(globals().get("__file__", "plot_compiled.py")).absolute()
embed = here.parents[1] / "embed"
cpp_program = numba_program = None

# %%
# **Cython** needs one line, and nothing special in ``meson.build``:
#
# .. code-block:: cython
#
#     from cdsk cimport cdsk_gram_f64
#
#     cdef int gram(
#         const double[:, ::1] X, double bandwidth, double[:, ::1] K, double[::1] work
#     ) noexcept nogil:  # work: cdsk_packed_size(n, d)
#         return cdsk_gram_f64(
#             &X[0, 0], X.shape[0], X.shape[1], &bandwidth, 0, &K[0, 0], &work[0], 2)
#
# **C and C++** include ``cdsk.h`` from the folder ``cdsk.get_include()``; there is no
# library to link. This function learns the weights of a classifier, in memory held by
# ``std::vector``:
#
# .. literalinclude:: ../../examples/embed/cpp/holdout.cpp
#    :language: cpp
#    :start-at: int solve_weights
#    :end-before: Score score


def build(folder):
    """Build the C++ program with meson, and return its directory."""
    source = Path(shutil.copytree(embed / "cpp", Path(folder, "cpp")))
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    for step in (["setup", "build"], ["compile", "-C", "build"]):
        subprocess.run(meson + step, cwd=source, check=True, capture_output=True)
    return source


with tempfile.TemporaryDirectory() as folder:
    try:
        source = build(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"The C++ program was not built: {error}")
    else:
        sys.path.insert(0, str(source / "build"))
        cpp_program = runpy.run_path(str(source / "demo.py"), run_name="__main__")

# %%
# **numba** calls a function by its address and its prototype:
#
# .. literalinclude:: ../../examples/embed/numba_votes.py
#    :language: python
#    :start-at: cdsk_solve_qp = ctypes
#    :end-at: fmt: skip

try:
    numba_program = runpy.run_path(str(embed / "numba_votes.py"), run_name="__main__")
except ImportError as error:
    print(f"The numba program was not run: {error}")

# %%
# Left: the numbers count the points of positive weight. Right: larger points have more
# weight.


def plot_scores(ax, bandwidths, scores):
    accuracy, support, *_ = zip(*scores, strict=True)
    ax.semilogx(bandwidths, accuracy, "o-", color="#0072B2")
    for x, y, n_support in zip(bandwidths, accuracy, support, strict=True):
        ax.annotate(
            text=n_support,
            xy=(x, y),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
        )
    ax.set_xticks(bandwidths, bandwidths)
    ax.minorticks_off()
    ax.margins(y=0.15)
    ax.set(xlabel="bandwidth", ylabel="accuracy")
    ax.spines[["top", "right"]].set_visible(False)


def plot_density(ax, X, weights, bandwidth, log_density):
    axis = np.linspace(-4.5, 4.5, 120)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    is_support = weights > 0
    density = log_density(grid, X[is_support], weights[is_support], bandwidth)
    levels = density.max() - np.arange(5, -0.5, -0.5)
    ax.contourf(axis, axis, density.reshape(120, 120), levels=levels, cmap="Blues")
    ax.scatter(*X.T, s=3, color="#777777", linewidths=0)
    sizes = 15 + 500 * weights[is_support]
    ax.scatter(*X[is_support].T, s=sizes, color="#D55E00", edgecolors="white")
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.set_xlabel(f"{is_support.sum()} of {len(X)} points have positive weight")


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.set_title("C++: one bandwidth per thread")
right.set_title("numba: density from a subset of the points")
if cpp_program:
    plot_scores(left, cpp_program["BANDWIDTHS"], cpp_program["scores"]())
if numba_program:
    names = ("X", "weights", "bandwidth", "log_density")
    plot_density(right, *(numba_program[name] for name in names))
plt.show()
