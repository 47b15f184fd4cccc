"""
Moons in noise
==============

Two half circles among uniform noise.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from cdsk import CDSK, plot

X, y = make_moons(300, noise=0.07, random_state=0)
model = CDSK(2, random_state=0).fit(X)
plot.scatter(model, X)
plt.show()
