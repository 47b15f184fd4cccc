"""The choice among partitions, on partitions made by hand."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import reference
from cdsk._choices.partition import choose

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


def chosen(partitions, n_clusters=3):
    names = [str(i) for i in range(len(partitions))]
    return choose(names, partitions, n_clusters)


def test_scores_are_those_of_the_definition(rng):
    partitions = [rng.integers(0, c, size=50) for c in (2, 3, 4, 4, 4)]
    partitions.append(noisy(THIRDS[:50], 3, 0))
    choice = chosen(partitions, 4)
    expected = reference.partition_scores(partitions, 4)
    np.testing.assert_allclose(choice.scores, expected, rtol=1e-12, atol=1e-15)
    assert choice.chosen == np.argmax(expected)
    assert choice.names == ("0", "1", "2", "3", "4", "5")
    assert (choice.agreement == choice.agreement.T).all()


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


def test_one_stray_partition_among_many_loses():
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
    agreement = choose("abcd", partitions, 50).agreement
    expected = [[adjusted_rand_score(a, b) for b in partitions] for a in partitions]
    np.testing.assert_allclose(agreement, expected, atol=1e-14)
