"""The choice among partitions, on partitions made by hand."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import reference
from cdsk._neighbors import Neighbors
from cdsk._operators.dense import DenseKernel
from cdsk._operators.sparse import NeighborGraph
from cdsk._partition_choice import (
    cohesive_agreement,
    select_partition,
    select_weights,
)

N = 120
THIRDS = np.arange(N) // 40


def noisy(labels, n_changed, seed):
    """``labels`` with some of them moved to the next cluster."""
    rng = np.random.default_rng(seed)
    labels = labels.copy()
    moved = rng.choice(len(labels), n_changed, replace=False)
    labels[moved] = (labels[moved] + 1) % 3
    return labels


def outliers(*points):
    """A partition that cuts off single points."""
    labels = np.zeros(N, dtype=int)
    labels[list(points)] = np.arange(1, len(points) + 1)
    return labels


def chosen(partitions, n_clusters=3, neighborhood=None):
    names = [str(i) for i in range(len(partitions))]
    return select_partition(names, partitions, n_clusters, neighborhood)


def graph_of(X, k=20):
    """The kernel that is 1 for neighbors, and the same as an array."""
    kernel = NeighborGraph(Neighbors(X, k)).kernel(np.inf, 1)
    return kernel, kernel.matrix.toarray()


def test_scores_are_those_of_the_definition(rng):
    partitions = [rng.integers(0, c, size=50) for c in (2, 3, 4, 4, 4)]
    partitions.append(noisy(THIRDS[:50], 3, 0))
    choice = chosen(partitions, 4)
    expected = reference.partition_scores(partitions, 4)
    np.testing.assert_allclose(choice.scores, expected, rtol=1e-12, atol=1e-15)
    assert choice.chosen == np.argmax(expected)
    assert choice.names == ("0", "1", "2", "3", "4", "5")
    assert (choice.agreement == choice.agreement.T).all()


@pytest.mark.parametrize("k", [2, 7])
def test_scores_with_neighbors_are_those_of_the_definition(rng, k):
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(8, 1, size=(10, 2))])
    partitions = [rng.integers(0, c, size=50) for c in (2, 3)]
    partitions += [(np.arange(50) >= i).astype(int) for i in (25, 38, 40, 48)]
    kernel, A = graph_of(X, k)
    choice = chosen(partitions, 3, kernel)
    expected = reference.partition_scores(partitions, 3, A)
    np.testing.assert_allclose(choice.scores, expected, rtol=1e-12, atol=1e-15)
    winner = choice.chosen
    assert choice.support == choice.scores[winner] * choice.balance[winner]
    part = choice.restricted(slice(winner, None))
    assert part.support == choice.support
    assert part.chosen == 0
    assert len(part.names) == len(part.agreement) == len(partitions) - winner
    held = [reference.cohesion(p, 3, A) for p in partitions]
    np.testing.assert_allclose(choice.cohesion, held, atol=1e-14)
    pairs = [
        np.sqrt(held[i] * held[j]) * adjusted_rand_score(partitions[i], partitions[j])
        for i in range(6)
        for j in range(6)
    ]
    pairs = np.reshape(pairs, (6, 6))
    mean = cohesive_agreement(partitions, 3, kernel)
    assert mean == pytest.approx(np.mean(pairs[np.tri(6, k=-1) > 0]), abs=1e-14)


def test_cohesion_of_what_is_known_by_hand(rng):
    A = np.kron(np.eye(3), np.ones((40, 40)))
    kernel = DenseKernel(A, 1)
    halves, random = np.arange(N) // 60, rng.integers(0, 3, size=N)
    found = chosen([THIRDS, halves, np.zeros(N, dtype=int)], 3, kernel).cohesion
    # halves: of each a whole block of 40 and 20 of one that they share
    inside = 2 * (40 * 39 + 20 * 19) / (60 * 39)
    np.testing.assert_allclose(found, [1, (inside - 1) / 2, 0], atol=1e-14)
    many = [rng.permutation(THIRDS) for _ in range(30)]
    assert chosen(many, 3, kernel).cohesion.mean() < 0.02
    assert chosen([random], 1, kernel).cohesion == 1
    assert np.isnan(chosen([THIRDS]).cohesion).all()


def test_copies_of_a_point_are_inside():
    # one heap of copies far away, whose neighbors are all in the other cluster
    X = np.append(np.arange(300.0), 1000.0)[:, np.newaxis]
    multiplicity = np.append(np.ones(300), 50.0)
    kernel = NeighborGraph(Neighbors(X, 2), multiplicity).kernel(np.inf, 1)
    labels = np.append(np.zeros(300, dtype=int), 1)
    (held,) = chosen([labels], 2, kernel).cohesion
    (alone,) = chosen([labels], 2, graph_of(X, 2)[0]).cohesion
    assert held > 0.5 > alone


def test_small_clusters_outvote_a_cut_through_a_large_one(rng):
    X = np.concatenate([rng.normal(size=(950, 2)), rng.normal(12, 1, size=(50, 2))])
    small = (np.arange(1000) >= 950).astype(int)
    cut = (X[:, 0] > np.median(X[:, 0])).astype(int)
    kernel, _ = graph_of(X)
    assert chosen([cut, small, small, small], 2).chosen == 0
    assert chosen([cut, small, small, small], 2, kernel).chosen == 1


def test_outliers_do_not(rng):
    X = rng.normal(size=(1000, 2))
    outlying = np.zeros(1000, dtype=int)
    outlying[np.argsort(-np.linalg.norm(X, axis=1))[:3]] = 1
    cut = (X[:, 0] > np.median(X[:, 0])).astype(int)
    kernel, _ = graph_of(X)
    assert chosen([cut, outlying, outlying, outlying], 2, kernel).chosen == 0


def test_balance_is_one_for_equal_clusters_and_least_for_a_single_one():
    choice = chosen([THIRDS, np.zeros(N, dtype=int), outliers(3, 5)])
    np.testing.assert_allclose(choice.balance[:2], [1, 0], atol=1e-14)
    assert 0 < choice.balance[2] < 0.1


def test_the_partition_in_the_middle_wins():
    middle = noisy(THIRDS, 6, 0)
    around = [noisy(middle, 15, seed) for seed in range(1, 5)]
    assert chosen([*around[:2], middle, *around[2:]]).chosen == 2


def test_partitions_that_cut_off_outliers_lose_against_balanced_ones():
    # three times the same partition, agreeing entirely, against three that agree less
    cut_off = [outliers(7, 90)] * 3
    balanced = [noisy(THIRDS, 20, seed) for seed in range(3)]
    agreement = chosen(cut_off + balanced).agreement
    assert agreement[:3, :3].min() == 1.0
    assert agreement[3:, 3:][~np.eye(3, dtype=bool)].max() < 0.7
    assert agreement[:3].mean() > agreement[3:].mean()
    assert chosen(cut_off + balanced).chosen >= 3


def test_one_deviating_partition_among_many_loses():
    partitions = [np.arange(N) % 3] + [noisy(THIRDS, 4, seed) for seed in range(5)]
    assert chosen(partitions).chosen != 0


def test_order_of_candidates_changes_nothing(rng):
    partitions = [noisy(THIRDS, 5 + 4 * i, i) for i in range(6)]
    winner, scores = chosen(partitions).chosen, chosen(partitions).scores
    for _ in range(10):
        order = rng.permutation(6)
        choice = chosen([partitions[i] for i in order])
        assert order[choice.chosen] == winner
        np.testing.assert_allclose(choice.scores, scores[order], rtol=1e-12)


def test_numbers_of_labels_change_nothing(rng):
    partitions = [noisy(THIRDS, 5 + 4 * i, i) for i in range(6)]
    choice = chosen(partitions)
    renumbered = chosen([rng.permutation(3)[p] for p in partitions])
    assert renumbered.chosen == choice.chosen
    np.testing.assert_allclose(renumbered.scores, choice.scores, rtol=1e-12)


@pytest.mark.parametrize("sizes", [(40, 80), (7, 113), (10, 30, 80), (1, 2, 117)])
@pytest.mark.parametrize("count", range(2, 10))
def test_ties_go_to_the_first(sizes, count):
    labels = np.arange(len(sizes)).repeat(sizes)
    assert chosen([labels] * count).chosen == 0


@pytest.mark.parametrize("count", range(2, 8))
def test_ties_of_two_groups_go_to_the_first(count):
    # two partitions of the same sizes, as often each, in turn: all scores are equal
    one, two = np.arange(N) % 3, THIRDS
    assert chosen([one, two] * count).chosen == 0


def test_a_single_candidate_is_chosen():
    choice = chosen([outliers(1, 2)])
    assert choice.chosen == 0
    np.testing.assert_allclose(choice.scores, 1)


def test_everything_in_one_cluster_is_no_division_by_zero():
    choice = chosen([np.zeros(N, dtype=int)] * 3)
    assert choice.chosen == 0
    assert (choice.scores == 0).all()


def test_clusters_left_empty_count_as_imbalance():
    # numbers 0 and 2 only
    halves = 2 * (np.arange(N) // 60)
    np.testing.assert_allclose(chosen([halves]).balance, 1 / 2)


@pytest.mark.parametrize("seed", range(5))
def test_agreement_is_scikit_learns_adjusted_rand_index(seed):
    rng = np.random.RandomState(seed)
    partitions = [rng.randint(c, size=50) for c in (1, 2, 5, 50)]
    agreement = select_partition("abcd", partitions, 50).agreement
    expected = [[adjusted_rand_score(a, b) for b in partitions] for a in partitions]
    np.testing.assert_allclose(agreement, expected, atol=1e-14)


CLOUDS = np.random.default_rng(0).normal(size=(N, 2)) + 20 * THIRDS[:, np.newaxis]


@pytest.mark.parametrize(
    "learned, initial, trees, kept",
    [
        (THIRDS, noisy(THIRDS, 20, 0), [THIRDS, outliers(0, 1)], "learned"),
        (THIRDS, (THIRDS + 1) % 3, [noisy(THIRDS, 5, 1)], "learned"),  # equal
        # not as cohesive
        (noisy(THIRDS, 20, 0), THIRDS, [noisy(THIRDS, 20, 0)], "initial"),
        # far from the trees
        (THIRDS, np.minimum(THIRDS, 1), [noisy(np.minimum(THIRDS, 1), 1, 0)] * 2,
         "initial"),
        # a tree finds the initial partition only
        (THIRDS, outliers(0, 1), [outliers(0, 1), noisy(THIRDS, 1, 0),
         noisy(THIRDS, 1, 1), noisy(THIRDS, 1, 2)], "initial"),
        # and both
        (THIRDS, outliers(0, 1), [outliers(0, 1), THIRDS, THIRDS], "learned"),
    ],
)  # fmt: skip
def test_weights_are_selected_as_defined(learned, initial, trees, kept):
    kernel, A = graph_of(CLOUDS)
    choice = select_weights(learned, initial, trees, 3, kernel)
    assert choice.kept == kept
    both = learned, initial
    held = [reference.cohesion(p, 3, A) for p in both]
    np.testing.assert_allclose(choice.cohesion, held, atol=1e-14)
    agreement = [[max(adjusted_rand_score(p, t), 0) for t in trees] for p in both]
    np.testing.assert_allclose(
        choice.mean_agreement, np.mean(agreement, axis=1), atol=1e-14
    )
    assert choice.is_tree.tolist() == [max(values) == 1 for values in agreement]
