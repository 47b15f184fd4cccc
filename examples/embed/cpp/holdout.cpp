// SPDX-License-Identifier: BSD-3-Clause
//
// Python module: scores bandwidths of a weighted kernel classifier by hold-out, one C++
// thread per bandwidth, without the GIL.
//
// For each bandwidth: the Gram matrix K of the training points, their weights a from
//
//     minimize q'a + n lam a'(K o G)a,    sum(a) = 1,  0 <= a_i <= 1 / (n lam)
//
// with G_ij = 1[y_i = y_j] and q_i = sum_j K_ij (1 - 2 G_ij), and the accuracy on the test
// points, whose label y maximizes the vote log sum_{i: y_i = y} a_i K(x, x_i).
#include <Python.h>
#include <cdsk.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace {

using Index = Py_ssize_t;

// Training points are sorted by label: class y is offsets[y] ... offsets[y + 1] - 1.
struct Data {
    const double *train, *test;     // (n, d), (m, d)
    const Index *offsets, *truth;   // (n_classes + 1,), (m,)
    Index n, m, d, n_classes;
};

struct Score {
    double accuracy = 0.0, gap = 0.0;
    Index n_support = 0;
    int status = 0;
};

// n lam K o G, computed row by row.
struct LabeledKernel {
    const Data &data;
    const std::vector<double> &K;
    double scale;

    static const double *row(void *user, Index i, double *scratch)
    {
        const auto &[data, K, scale] = *static_cast<const LabeledKernel *>(user);
        const Index *end = std::upper_bound(data.offsets, data.offsets + data.n_classes, i);
        std::fill(scratch, scratch + data.n, 0.0);
        for (Index j = end[-1]; j < end[0]; j++)
            scratch[j] = scale * K[i * data.n + j];
        return scratch;
    }
};

int solve_weights(const Data &data, double bandwidth, double lam,
                  std::vector<double> &alpha, double &gap)
{
    const Index n = data.n;
    std::vector<double> K(n * n), q(n), gradient(n), diagonal(n, n * lam);
    std::vector<double> work(std::max(4 * n, cdsk_packed_size(n, data.d)));
    if (cdsk_gram_f64(data.train, n, data.d, &bandwidth, 0, K.data(), work.data(), 1) != 0)
        return -1;
    for (Index y = 0; y < data.n_classes; y++)
        for (Index i = data.offsets[y]; i < data.offsets[y + 1]; i++)
            for (Index j = 0; j < n; j++) {
                const bool same = data.offsets[y] <= j && j < data.offsets[y + 1];
                q[i] += same ? -K[i * n + j] : K[i * n + j];
            }
    LabeledKernel Q{data, K, n * lam};
    Index n_iter;
    alpha.assign(n, 1.0 / n);
    return cdsk_solve_qp(n, LabeledKernel::row, &Q, diagonal.data(), q.data(),
                         1.0 / (n * lam), 1e-6, 1000 * n, alpha.data(), gradient.data(),
                         work.data(), &gap, &n_iter);
}

Score score(const Data &data, double bandwidth, double lam)
{
    Score result;
    std::vector<double> alpha;
    result.status = solve_weights(data, bandwidth, lam, alpha, result.gap);
    if (result.status != 0)
        return result;

    std::vector<double> support, weights;
    std::vector<Index> offsets{0};
    for (Index y = 0; y < data.n_classes; y++) {
        for (Index i = data.offsets[y]; i < data.offsets[y + 1]; i++)
            if (alpha[i] > 0.0) {
                const double *point = data.train + i * data.d;
                support.insert(support.end(), point, point + data.d);
                weights.push_back(alpha[i]);
            }
        offsets.push_back(static_cast<Index>(weights.size()));
    }
    result.n_support = offsets.back();

    std::vector<double> votes(data.m * data.n_classes);
    std::vector<double> work(cdsk_packed_size(data.m, data.d) +
                             cdsk_packed_size(result.n_support, data.d));
    result.status = cdsk_log_votes_f64(
        data.test, data.m, support.data(), result.n_support, data.d, &bandwidth, 0,
        &bandwidth, 0, weights.data(), offsets.data(), data.n_classes, votes.data(),
        work.data(), 1);
    for (Index i = 0; i < data.m; i++) {
        const double *first = votes.data() + i * data.n_classes;
        const Index label = std::max_element(first, first + data.n_classes) - first;
        result.accuracy += (label == data.truth[i]) / static_cast<double>(data.m);
    }
    return result;
}

std::vector<Score> score_all(const Data &data, const std::vector<double> &bandwidths,
                             double lam)
{
    std::vector<Score> results(bandwidths.size());
    std::vector<std::thread> threads;
    for (size_t k = 0; k < bandwidths.size(); k++)
        threads.emplace_back([&, k] { results[k] = score(data, bandwidths[k], lam); });
    for (auto &thread : threads)
        thread.join();
    return results;
}

// Arguments are contiguous float64 and intp arrays, as demo.py passes them.
PyObject *scores(PyObject *, PyObject *args)
{
    Py_buffer train, offsets, test, truth, bandwidths;
    double lam;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*d", &train, &offsets, &test, &truth,
                          &bandwidths, &lam))
        return nullptr;
    Data data{};
    data.train = static_cast<const double *>(train.buf);
    data.test = static_cast<const double *>(test.buf);
    data.offsets = static_cast<const Index *>(offsets.buf);
    data.truth = static_cast<const Index *>(truth.buf);
    data.n_classes = offsets.len / sizeof(Index) - 1;
    data.n = data.offsets[data.n_classes];
    data.m = truth.len / sizeof(Index);
    data.d = train.len / (data.n * sizeof(double));
    const auto *first = static_cast<const double *>(bandwidths.buf);
    const std::vector<double> candidates(first, first + bandwidths.len / sizeof(double));

    std::vector<Score> results;
    Py_BEGIN_ALLOW_THREADS
    results = score_all(data, candidates, lam);
    Py_END_ALLOW_THREADS

    for (Py_buffer *buffer : {&train, &offsets, &test, &truth, &bandwidths})
        PyBuffer_Release(buffer);
    PyObject *list = PyList_New(results.size());
    for (size_t k = 0; list != nullptr && k < results.size(); k++) {
        const Score &r = results[k];
        PyObject *item = Py_BuildValue("dndi", r.accuracy, r.n_support, r.gap, r.status);
        if (item == nullptr)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, k, item);
    }
    return list;
}

PyMethodDef methods[] = {
    {"scores", scores, METH_VARARGS,
     "scores(train, offsets, test, truth, bandwidths, lam)\n\n"
     "(accuracy, number of support points, KKT gap, status) for each bandwidth."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "holdout", nullptr, -1, methods,
                      nullptr, nullptr, nullptr, nullptr};

} // namespace

PyMODINIT_FUNC PyInit_holdout()
{
    if (cdsk_import() != 0)
        return nullptr;
    return PyModule_Create(&module);
}
