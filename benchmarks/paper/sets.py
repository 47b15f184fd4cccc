# SPDX-License-Identifier: BSD-3-Clause
"""The data sets of the paper, their preprocessing, and the paper's scores.

There are two modes of preprocessing. "paper", as in the code of the paper's authors:
pixels in [0, 1], and if ``pca`` the principal components with 98 % of the variance;
tables as they are. "default": unit rows for images, z-scores for tables
(``benchmarks/studies/sets.py``).
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

from benchmarks.studies.sets import read_archive

MODES = ("paper", "default")
VARIANCE = 0.98


@dataclass(frozen=True)
class DataSet:
    """A data set; ``name`` is that of the paper, if it has the set."""

    name: str
    pca: bool = False
    remark: str = ""


# By file name, in the order of the paper's tables; then sets that are not in them.
SETS = {
    "yaleb": DataSet("Yale-B"),
    "ionosphere": DataSet("Ionosphere"),
    "georgia_tech": DataSet(
        "Georgia Face", pca=True, remark="40 x 30, gray; the paper has colors"
    ),
    "coil20": DataSet("COIL-20"),
    "coil100": DataSet("COIL-100"),
    "pie": DataSet("CMU PIE", pca=True, remark="stored as JPEG"),
    "umist": DataSet("UMIST Face", pca=True, remark="32 x 32; the paper has 112 x 92"),
    "mpie_s2": DataSet("MPIE S2", pca=True),
    "mpie_s3": DataSet("MPIE S3", pca=True),
    "mpie_s4": DataSet("MPIE S4", pca=True),
    "mnist": DataSet("MNIST"),
    "cifar10_test_16x16": DataSet(
        "CIFAR-10",
        remark="the test images, 16 x 16; the paper has all 60 000, 32 x 32",
    ),
    "mini_imagenet_train64_16x16": DataSet(
        "Mini-ImageNet", remark="16 x 16; the paper has 84 x 84"
    ),
    "yale": DataSet("Yale", remark="in the paper's text, not in its tables"),
    "pie_pose27": DataSet("PIE pose 27", pca=True, remark="not in the paper"),
}

# AC(NMI) as printed: Y. Yang and P. Li, Discriminative Similarity for Data Clustering,
# ICLR 2022, tables 1 and 2, where K-Means is also called KM. MPIE S1 has no file.
_TABLES = (
    """
Yale-B | Ionosphere | Georgia Face | COIL-20 | COIL-100 | CMU PIE | UMIST Face
K-Means      .09(.13) .71(.13) .50(.69) .65(.76) .49(.75) .08(.19) .42(.64)
SC           .11(.15) .74(.22) .52(.70) .43(.62) .28(.59) .07(.18) .42(.61)
l1-Graph     .79(.78) .51(.12) .54(.70) .79(.91) .53(.80) .23(.34) .44(.65)
SMCE         .34(.39) .68(.09) .60(.74) .88(.88) .56(.81) .16(.34) .45(.66)
Lap-l1-Graph .79(.78) .50(.09) .58(.73) .79(.91) .56(.81) .30(.51) .50(.69)
RAG          .13(.19) .70(.11) .17(.38) .50(.64) .58(.81) .14(.34) .26(.28)
MMC          .71(.69) .75(.21) .42(.58) .80(.89) .61(.63) .22(.30) .51(.56)
BMMC         .65(.63) .70(.15) .34(.41) .82(.93) .64(.69) .18(.23) .55(.61)
RIM          .62(.74) .59(.08) .39(.56) .77(.82) .71(.79) .26(.34) .40(.53)
RatioRF      .39(.53) .62(.05) .18(.40) .65(.75) .36(.64) .15(.36) .29(.34)
CDSK         .83(.86) .76(.25) .60(.74) .93(.97) .78(.92) .32(.50) .67(.80)
""",
    """
MPIE S1 | MPIE S2 | MPIE S3 | MPIE S4 | MNIST | CIFAR-10 | Mini-ImageNet
K-Means      .12(.50) .13(.48) .13(.48) .13(.49) .52(.47) .19(.06) .27(.33)
SC           .13(.53) .14(.51) .14(.52) .15(.53) .38(.36) .21(.04) .29(.35)
l1-Graph     .59(.77) .70(.81) .63(.79) .68(.81) .57(.61) .28(.24) .28(.37)
SMCE         .17(.55) .19(.53) .19(.52) .18(.53) .65(.67) .31(.30) .29(.37)
Lap-l1-Graph .59(.77) .70(.81) .63(.79) .68(.81) .56(.60) .29(.30) .29(.37)
RAG          .34(.75) .30(.69) .31(.68) .29(.70) .59(.51) .22(.10) .18(.33)
MMC          .49(.58) .51(.60) .53(.65) .50(.61) .64(.60) .31(.28) .19(.34)
BMMC         .40(.51) .44(.59) .45(.61) .49(.66) .66(.69) .29(.26) .16(.32)
RIM          .50(.63) .52(.68) .55(.71) .51(.67) .54(.62) .20(.25) .17(.38)
RatioRF      .54(.85) .55(.86) .64(.86) .62(.86) .48(.39) .20(.09) .26(.38)
CDSK         .66(.85) .72(.88) .68(.87) .73(.89) .76(.75) .46(.39) .31(.41)
""",
)


@cache
def paper_scores():
    """Return {(row, set name): (accuracy, NMI)} of the paper's tables."""
    found = {}
    for table in _TABLES:
        head, *lines = table.strip().splitlines()
        names = [name.strip() for name in head.split("|")]
        for line in lines:
            row, cells = line.split(maxsplit=1)
            scores = re.findall(r"([\d.]+)\(([\d.]+)\)", cells)
            for name, (accuracy, nmi) in zip(names, scores, strict=True):
                found[row, name] = float(accuracy), float(nmi)
    return found


def load(folder, key, mode, sample=None):
    """Return preprocessed points and labels of a set, or of a balanced sample of it."""
    path = Path(folder, f"{key}.npz")
    if mode == "default":
        X, y = read_archive(path, np.inf)
    else:
        with np.load(path) as archive:
            X, y = archive["X"], archive["y"].ravel()
        X = np.ascontiguousarray(X, float) / (255.0 if X.dtype == np.uint8 else 1.0)
    if len(X) != len(y):
        raise ValueError(
            f"{path.name} must have a label for each row; got {len(X)} rows and "
            f"{len(y)} labels."
        )
    if sample is not None:
        part = balanced(y, sample)
        X, y = X[part], y[part]
    if mode == "paper" and SETS[key].pca:
        X = PCA(VARIANCE, svd_solver="full").fit_transform(X)
    return X, y


def balanced(y, size):
    """Return the rows of a random sample of at most ``size``, equally many per class.

    The sample is the same for every method and seed. Labels are used only here and for
    the scores. If a class has fewer points than its share, all of them are included.
    """
    rng, classes = np.random.RandomState(0), np.unique(y)
    share = max(size // len(classes), 1)
    drawn = [rng.permutation(np.flatnonzero(y == label))[:share] for label in classes]
    return np.sort(np.concatenate(drawn))
