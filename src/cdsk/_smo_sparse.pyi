# The sparse solver has no names for Python: _smo.solve calls it.
