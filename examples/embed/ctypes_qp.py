# SPDX-License-Identifier: BSD-3-Clause
"""Minimum-variance weights for a long series of measurements, with ctypes only.

The weighted mean of n measurements with covariance C has minimum variance for the
weights that minimize x'Cx with sum(x) = 1 and 0 <= x_i <= upper. Errors are correlated
with those of the two previous and next measurements, so C is sparse, and the solver
takes it as CSR arrays: the cost of a step does not depend on n.

Run it with cdsk installed: python examples/embed/ctypes_qp.py
"""

import ctypes
import random
from array import array

import cdsk._smo

SOLVE_QP_CSR = (
    b"int (Py_ssize_t, Py_ssize_t const *, int const *, double const *, "
    b"double const *, double const *, double, double, Py_ssize_t, double *, double *, "
    b"double *, double *, Py_ssize_t *)"
)
pointer, size, number = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_double
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = pointer
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
# raises a ValueError if the signature differs
solve_qp_csr = ctypes.CFUNCTYPE(
    ctypes.c_int, size, pointer, pointer, pointer, pointer, pointer, number, number,
    size, pointer, pointer, pointer, pointer, pointer,
)(
    capsule_pointer(cdsk._smo.__pyx_capi__["cdsk_solve_qp_csr"], SOLVE_QP_CSR)
)  # fmt: skip


def covariance(errors):
    """Return C_ij = s_i s_j 2^-|i - j|, |i - j| <= 2, as CSR arrays and diagonal."""
    n = len(errors)
    indptr, indices, values = array("q", [0]), array("i"), array("d")
    for i in range(n):
        for j in range(max(i - 2, 0), min(i + 3, n)):
            if j != i:
                indices.append(j)
                values.append(errors[i] * errors[j] * 0.5 ** abs(i - j))
        indptr.append(len(indices))
    return indptr, indices, values, array("d", [s * s for s in errors])


def least_variance(indptr, indices, values, diagonal, upper, tol):
    """Return the weights, their variance, the KKT gap and the number of steps."""
    n = len(diagonal)
    x, p = array("d", [1 / n]) * n, array("d", bytes(8 * n))
    gradient, work = array("d", bytes(8 * n)), array("d", bytes(8 * (3 * n + 64)))
    gap, n_iter = number(), size()
    status = solve_qp_csr(
        n, *(a.buffer_info()[0] for a in (indptr, indices, values, diagonal, p)),
        upper, tol, 1000 * n, *(a.buffer_info()[0] for a in (x, gradient, work)),
        ctypes.addressof(gap), ctypes.addressof(n_iter),
    )  # fmt: skip
    if status != 0:
        raise ValueError(f"cdsk_solve_qp_csr: status {status}")
    # p = 0, so that the gradient is 2 C x
    variance = sum(a * b for a, b in zip(x, gradient, strict=True)) / 2
    return x, variance, gap.value, n_iter.value


if __name__ == "__main__":
    random.seed(0)
    n = 10_000
    arrays = covariance([random.uniform(0.5, 2) for _ in range(n)])
    equal = (sum(arrays[2]) + sum(arrays[3])) / n**2
    x, variance, gap, n_iter = least_variance(*arrays, upper=10 / n, tol=1e-3 * equal)
    print(f"variance {variance:.3e} after {n_iter} steps, equal weights {equal:.3e}")
