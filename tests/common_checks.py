"""Checks of scikit-learn that a clusterer cannot pass, and why."""

from sklearn.utils import get_tags


def not_for_clusterers(estimator):
    """Checks that ask for the probabilities of the classes of y.

    They read ``classifier_tags``, which no clusterer has; tests/test_estimator.py shows
    that nothing else in them fails.
    """
    if not get_tags(estimator).input_tags.sparse:
        # scikit-learn 1.6 makes it without asking for the tag
        name = "check_sample_weight_equivalence_on_sparse_data"
        return {name: "the estimator does not take sparse points"}
    reason = "scikit-learn takes an estimator with predict_proba for a classifier"
    names = "check_estimator_sparse_array", "check_estimator_sparse_matrix"
    return dict.fromkeys(names, reason)
