"""The compiled functions of cdsk as ctypes functions, made from their signatures."""

import ctypes
import importlib
import re

import numpy as np

ROW = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p
)
_TYPES = {
    "Py_ssize_t": ctypes.c_ssize_t,
    "double": ctypes.c_double,
    "int": ctypes.c_int,
    "row": ROW,
}

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def signatures(module):
    """{name: signature} of the functions a compiled module exports."""
    capsules = importlib.import_module(module).__pyx_capi__
    return {name: _name(capsule).decode() for name, capsule in capsules.items()}


def function(module, name):
    """A function that takes arrays for pointers; calling it releases the GIL."""
    capsule = importlib.import_module(module).__pyx_capi__[name]
    signature = _name(capsule).decode()
    result, arguments = re.fullmatch(r"(\w+) \((.*)\)", signature).groups()
    arguments = re.sub(r"\w+ const \*\(\*\)\([^)]*\)", "row", arguments).split(", ")
    types = [ctypes.c_void_p if "*" in a else _TYPES[a] for a in arguments]
    call = ctypes.CFUNCTYPE(_TYPES[result], *types)(
        _pointer(capsule, signature.encode())
    )

    def with_arrays(*values):
        return call(
            *(v.ctypes.data if isinstance(v, np.ndarray) else v for v in values)
        )

    return with_arrays
