# SPDX-License-Identifier: BSD-3-Clause
"""Weights of least variance for a long series of measurements, with ctypes alone.

The mean of n measurements with covariance C has least variance with the weights that
minimise x'Cx over sum(x) = 1; none may be negative, nor exceed `most`. Errors are
correlated with those of the two measurements before and after, so C is sparse, and the
solver takes it as CSR arrays: a step costs a few entries, however many there are.

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
# another signature than the one named is a ValueError
solve_qp_csr = ctypes.CFUNCTYPE(
    ctypes.c_int, size, pointer, pointer, pointer, pointer, pointer, number, number,
    size, pointer, pointer, pointer, pointer, pointer,
)(
    capsule_pointer(cdsk._smo.__pyx_capi__["cdsk_solve_qp_csr"], SOLVE_QP_CSR)
)  # fmt: skip


def covariance(errors):
    """CSR arrays of C_ij = s_i s_j 2^-|i - j| for |i - j| <= 2, and its diagonal."""
    n = len(errors)
    indptr, indices, values = array("q", [0]), array("i"), array("d")
    for i in range(n):
        for j in range(max(i - 2, 0), min(i + 3, n)):
            if j != i:
                indices.append(j)
                values.append(errors[i] * errors[j] * 0.5 ** abs(i - j))
        indptr.append(len(indices))
    return indptr, indices, values, array("d", [s * s for s in errors])


def least_variance(indptr, indices, values, diagonal, most, tol):
    """The weights, the KKT gap, and the number of steps."""
    n = len(diagonal)
    x, p = array("d", [1 / n]) * n, array("d", bytes(8 * n))
    gradient, work = array("d", bytes(8 * n)), array("d", bytes(8 * (3 * n + 64)))
    gap, n_iter = number(), size()
    status = solve_qp_csr(
        n, *(a.buffer_info()[0] for a in (indptr, indices, values, diagonal, p)),
        most, tol, 1000 * n, *(a.buffer_info()[0] for a in (x, gradient, work)),
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
    x, variance, gap, n_iter = least_variance(*arrays, most=10 / n, tol=1e-3 * equal)
    print(f"variance {variance:.3e} after {n_iter} steps, of equal weights {equal:.3e}")
