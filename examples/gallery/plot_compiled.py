"""
From Cython, C++ and numba
==========================

The compiled functions of cdsk are plain C functions: other compiled code calls them
without the GIL and with memory of its own. ``examples/embed`` of the source has
complete programs, and ``docs/embedding.md`` the contracts. Two of the programs are run
here, if there are a compiler and numba: one in C++ that tries bandwidths on threads of
its own, one in numba that estimates a density from few of the points.
"""

import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

# the site runs programs in their folder and gives them no __file__
here = Path(globals().get("__file__", "plot_compiled.py")).absolute()
embed = here.parents[1] / "embed"
in_cpp = in_numba = None

# %%
# In **Cython** it takes one line, and ``meson.build`` needs nothing special:
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
# **C and C++** include ``cdsk.h``, a header without a library behind it, from the
# folder ``cdsk.get_include()``. This function learns the weights of a classifier, in
# memory that is a ``std::vector``:
#
# .. literalinclude:: ../../examples/embed/cpp/holdout.cpp
#    :language: cpp
#    :start-at: int solve_weights
#    :end-before: Score score


def build(folder):
    """The folder of the C++ program, built by meson."""
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
        in_cpp = runpy.run_path(str(source / "demo.py"), run_name="__main__")

# %%
# **numba** takes the address of a function and its prototype:
#
# .. literalinclude:: ../../examples/embed/numba_votes.py
#    :language: python
#    :start-at: cdsk_solve_qp = ctypes
#    :end-at: fmt: skip

try:
    in_numba = runpy.run_path(str(embed / "numba_votes.py"), run_name="__main__")
except ImportError as error:
    print(f"The numba program was not run: {error}")

# %%
# Left, the numbers are those of the points that carry weight. Right, large points carry
# more of it.


def draw_scores(ax, bandwidths, scores):
    accuracy, support, *_ = zip(*scores, strict=True)
    ax.semilogx(bandwidths, accuracy, "o-", color="#0072B2")
    for place in zip(bandwidths, accuracy, support, strict=True):
        ax.annotate(
            *(place[2], place[:2]),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
        )
    ax.set_xticks(bandwidths, bandwidths)
    ax.minorticks_off()
    ax.margins(y=0.15)
    ax.set(xlabel="bandwidth", ylabel="accuracy")
    ax.spines[["top", "right"]].set_visible(False)


def draw_density(ax, X, weights, bandwidth, log_density):
    axis = np.linspace(-4.5, 4.5, 120)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    kept = weights > 0
    density = log_density(grid, X[kept], weights[kept], bandwidth)
    levels = density.max() - np.arange(5, -0.5, -0.5)
    ax.contourf(axis, axis, density.reshape(120, 120), levels=levels, cmap="Blues")
    ax.scatter(*X.T, s=3, color="#777777", linewidths=0)
    sizes = 15 + 500 * weights[kept]
    ax.scatter(*X[kept].T, s=sizes, color="#D55E00", edgecolors="white")
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.set_xlabel(f"{kept.sum()} of {len(X)} points carry weight")


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.set_title("C++: a bandwidth per thread")
right.set_title("numba: a density from few points")
if in_cpp:
    draw_scores(left, in_cpp["BANDWIDTHS"], in_cpp["scores"]())
if in_numba:
    names = ("X", "weights", "bandwidth", "log_density")
    draw_density(right, *(in_numba[name] for name in names))
plt.show()
