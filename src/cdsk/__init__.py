# SPDX-License-Identifier: BSD-3-Clause
"""Kernel clustering that learns its own similarity.

Names are imported from the modules in ``__init__.pyi`` when first used (SPEC 1):
``cdsk --help`` does not wait for scikit-learn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
