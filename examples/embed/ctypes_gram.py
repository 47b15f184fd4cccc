# SPDX-License-Identifier: BSD-3-Clause
"""Write a Gram matrix directly into a memory-mapped file, with ctypes only.

Run it with cdsk installed: python examples/embed/ctypes_gram.py
"""

import array
import ctypes
import mmap
import random
import tempfile

import cdsk._kernel

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

GRAM_F32 = (
    b"int (float const *, Py_ssize_t, Py_ssize_t, double const *, Py_ssize_t, float *, "
    b"double *, int)"
)


def cdsk_function(name, signature, restype, *argtypes):
    """Return a C function by name; calling it releases the GIL."""
    capsule = cdsk._kernel.__pyx_capi__[name]
    if _capsule_name(capsule) != signature:
        raise ImportError(f"{name} has the signature {_capsule_name(capsule)}")
    address = _capsule_pointer(capsule, signature)
    return ctypes.CFUNCTYPE(restype, *argtypes)(address)


pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
packed_size = cdsk_function(
    "cdsk_packed_size", b"Py_ssize_t (Py_ssize_t, Py_ssize_t)", size, size, size
)
gram_f32 = cdsk_function(
    "cdsk_gram_f32", GRAM_F32, ctypes.c_int,
    pointer, size, size, pointer, size, pointer, pointer, ctypes.c_int,
)  # fmt: skip


def gram_to_file(X, d, bandwidth, file, n_threads=1):
    """Fill the file with the float32 Gram matrix of X, an array("f") of (n, d)."""
    n = len(X) // d
    file.truncate(4 * n * n)
    b = ctypes.c_double(bandwidth)
    work = (ctypes.c_double * packed_size(n, d))()
    with mmap.mmap(file.fileno(), 4 * n * n) as memory:
        K = (ctypes.c_float * (n * n)).from_buffer(memory)
        status = gram_f32(
            X.buffer_info()[0], n, d, ctypes.addressof(b), 0,
            ctypes.addressof(K), work, n_threads,
        )  # fmt: skip
        del K  # its reference keeps the map open
    if status != 0:
        raise ValueError("cdsk_gram_f32: arguments out of range")


if __name__ == "__main__":
    random.seed(0)
    n, d = 500, 3
    X = array.array("f", [random.gauss(0, 1) for _ in range(n * d)])
    with tempfile.TemporaryFile() as file:
        gram_to_file(X, d, 1.0, file)
        file.seek(0)
        K = array.array("f", file.read())
    print(f"{len(K)} kernel values, mean {sum(K) / len(K):.4f}, K[0, 1] = {K[1]:.4f}")
