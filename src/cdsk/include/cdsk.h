/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiled functions of cdsk for C (C99) and C++. Include path: cdsk.get_include().
 *
 *     #include <Python.h>
 *     #include <cdsk.h>
 *
 * Call cdsk_import() once with the GIL held, best in the init function of your module. It
 * imports cdsk and returns 0, or -1 with a Python exception set. Afterwards the names
 * below are called like functions. They are static pointers: every translation unit that
 * includes this file has its own and calls cdsk_import() itself.
 *
 * What holds for all of them:
 *   - Arrays are C-contiguous and the caller's. `in` is only read. Nothing is allocated,
 *     and nothing kept after the return. No pointer may be NULL unless stated.
 *   - No function raises, needs the GIL, or keeps state between calls; all may run on
 *     several threads at once, each call with its own out and work arrays.
 *   - n_threads >= 1 is the most threads a call may start; results are the same bits for
 *     any number. Pass 1 in a forked child: OpenMP does not survive fork().
 *   - The return value is 0, or -1 for a size, bandwidth or weight out of range; then out
 *     arrays are undefined. Points and matrices must be finite, which is not checked.
 *   - `work` is scratch space of the number of doubles stated.
 *   - A bandwidth comes with a step: 0 means one number for all points, 1 one per point.
 *   - _f32 functions read and write points and matrices as float; the rest is double, and
 *     so are all sums.
 */
#ifndef CDSK_H
#define CDSK_H

#include <Python.h>

#include <string.h>

#if defined(__GNUC__)
#define CDSK_FUNCTION static __attribute__((unused))
#else
#define CDSK_FUNCTION static
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- kernels */

/* Doubles of work space for n points of d features. */
CDSK_FUNCTION Py_ssize_t (*cdsk_packed_size)(Py_ssize_t n, Py_ssize_t d);

/* K_ij = exp(-|x_i - x_j|^2 / (2 b_i b_j)), exactly symmetric with unit diagonal.
 *   X          (n, d) in
 *   bandwidth  (1,) or (n,) in, between 1e-150 and 1e150
 *   K          (n, n) out
 *   work       cdsk_packed_size(n, d) */
CDSK_FUNCTION int (*cdsk_gram_f64)(
    const double *X, Py_ssize_t n, Py_ssize_t d,
    const double *bandwidth, Py_ssize_t bandwidth_step,
    double *K, double *work, int n_threads);
CDSK_FUNCTION int (*cdsk_gram_f32)(
    const float *X, Py_ssize_t n, Py_ssize_t d,
    const double *bandwidth, Py_ssize_t bandwidth_step,
    float *K, double *work, int n_threads);

/* K_ij = exp(-|a_i - b_j|^2 / (2 bandwidth_a_i bandwidth_b_j)).
 *   A            (n_a, d) in
 *   B            (n_b, d) in
 *   bandwidth_a  (1,) or (n_a,) in, 1e-150 to 1e150; bandwidth_b likewise
 *   K            (n_a, n_b) out
 *   work         cdsk_packed_size(n_a, d) + cdsk_packed_size(n_b, d) */
CDSK_FUNCTION int (*cdsk_rows_f64)(
    const double *A, Py_ssize_t n_a, const double *B, Py_ssize_t n_b, Py_ssize_t d,
    const double *bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double *bandwidth_b, Py_ssize_t bandwidth_b_step,
    double *K, double *work, int n_threads);
CDSK_FUNCTION int (*cdsk_rows_f32)(
    const float *A, Py_ssize_t n_a, const float *B, Py_ssize_t n_b, Py_ssize_t d,
    const double *bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double *bandwidth_b, Py_ssize_t bandwidth_b_step,
    float *K, double *work, int n_threads);

/* votes[i, y] = log of the sum over the points j of cluster y of alpha_j K(a_i, b_j),
 * without underflow however far a_i is; -inf for an empty cluster.
 *   A        (n_a, d) in
 *   B        (n_b, d) in, sorted by cluster
 *   alpha    (n_b,) in, > 0
 *   offsets  (n_clusters + 1,) in: the points of cluster y are offsets[y] ...
 *            offsets[y + 1] - 1; offsets[0] = 0, offsets[n_clusters] = n_b, ascending
 *   votes    (n_a, n_clusters) out
 *   work     cdsk_packed_size(n_a, d) + cdsk_packed_size(n_b, d)
 * Bandwidths as for cdsk_rows. */
CDSK_FUNCTION int (*cdsk_log_votes_f64)(
    const double *A, Py_ssize_t n_a, const double *B, Py_ssize_t n_b, Py_ssize_t d,
    const double *bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double *bandwidth_b, Py_ssize_t bandwidth_b_step,
    const double *alpha, const Py_ssize_t *offsets, Py_ssize_t n_clusters,
    double *votes, double *work, int n_threads);
CDSK_FUNCTION int (*cdsk_log_votes_f32)(
    const float *A, Py_ssize_t n_a, const float *B, Py_ssize_t n_b, Py_ssize_t d,
    const double *bandwidth_a, Py_ssize_t bandwidth_a_step,
    const double *bandwidth_b, Py_ssize_t bandwidth_b_step,
    const double *alpha, const Py_ssize_t *offsets, Py_ssize_t n_clusters,
    double *votes, double *work, int n_threads);

/* out[l] = (K - diag K) columns[l], K symmetric or not.
 *   K        (n, n) in
 *   columns  (m, n) in, one column per row
 *   out      (m, n) out */
CDSK_FUNCTION int (*cdsk_product_f64)(
    const double *K, Py_ssize_t n, const double *columns, Py_ssize_t m, double *out,
    int n_threads);
CDSK_FUNCTION int (*cdsk_product_f32)(
    const float *K, Py_ssize_t n, const double *columns, Py_ssize_t m, double *out,
    int n_threads);

/* S_ij = 2 (alpha_i + alpha_j - n lam alpha_i alpha_j) K_ij, and its degrees.
 *   K        (n, n) in
 *   alpha    (n,) in
 *   lam      as in cdsk.CDSK
 *   S        (n, n) out, may be K
 *   degrees  (n,) out, row sums of S without the diagonal */
CDSK_FUNCTION int (*cdsk_similarity_f64)(
    const double *K, Py_ssize_t n, const double *alpha, double lam, double *S,
    double *degrees, int n_threads);
CDSK_FUNCTION int (*cdsk_similarity_f32)(
    const float *K, Py_ssize_t n, const double *alpha, double lam, float *S,
    double *degrees, int n_threads);

/* ---------------------------------------------------------------- quadratic program */

/* Row i of a symmetric matrix: either fill scratch (n doubles) and return it, or return a
 * pointer to the stored row. Two rows are in use at a time, with different scratch: a
 * row returned must outlive the next call. Runs without the GIL and must not throw. */
typedef const double *(*cdsk_row)(void *user, Py_ssize_t i, double *scratch);

/* Minimize p'x + x'Qx over sum(x) = 1, 0 <= x <= upper, Q positive semi-definite.
 *   row, user  rows of Q; user is passed to row
 *   diagonal   (n,) in, of Q
 *   p          (n,) in, finite
 *   upper      more than 1 means 1
 *   tol        KKT gap at which to stop; absolute, so relate it to the size of p
 *   max_iter   most steps; about n are usual from uniform weights
 *   x          (n,) in/out, feasible start and solution; its sum, 1 up to 1e-6, is kept
 *   gradient   (n,) out, p + 2Qx
 *   work       4 n
 *   gap        (1,) out, KKT gap at x for the gradient as the steps updated it, so up to
 *              their rounding: the objective is at most this far above its minimum
 *   n_iter     (1,) out
 * Returns 0 if gap <= tol, 1 if max_iter steps were not enough, 2 if rounding (or, with an
 * infinite gap, a row that is not finite) allows no further progress, -1 for sizes, bounds,
 * p or a start out of range (then x is unchanged).
 * A call cannot be interrupted; calling again with the x returned goes on from there. */
CDSK_FUNCTION int (*cdsk_solve_qp)(
    Py_ssize_t n, cdsk_row row, void *user, const double *diagonal, const double *p,
    double upper, double tol, Py_ssize_t max_iter,
    double *x, double *gradient, double *work, double *gap, Py_ssize_t *n_iter);

/* The same steps, in the same order, for a sparse Q: each costs O(k) for rows of k entries
 * in place of O(n).
 *   indptr     (n + 1,) in: the entries of row i are indptr[i] ... indptr[i + 1] - 1;
 *              indptr[0] = 0, ascending
 *   indices    (indptr[n],) in, their columns: ascending in each row, each once, without
 *              the diagonal; both (i, j) and (j, i)
 *   values     (indptr[n],) in
 *   diagonal   (n,) in, of Q, zeros included
 *   work       3 n + 64
 * The rest, and what is returned, as for cdsk_solve_qp; -1 also where indptr and indices
 * are not as above. That Q is symmetric is not checked. */
CDSK_FUNCTION int (*cdsk_solve_qp_csr)(
    Py_ssize_t n, const Py_ssize_t *indptr, const int *indices, const double *values,
    const double *diagonal, const double *p, double upper, double tol,
    Py_ssize_t max_iter, double *x, double *gradient, double *work, double *gap,
    Py_ssize_t *n_iter);

/* ---------------------------------------------------------------- import */

/* Internal: the pointer inside a capsule of a compiled module, or NULL and ImportError
 * unless it is there with this signature, which is its name. */
CDSK_FUNCTION void *cdsk_capsule_pointer(
    const char *module, const char *name, const char *signature)
{
    void *pointer = NULL;
    PyObject *capsules = NULL, *capsule = NULL;
    PyObject *imported = PyImport_ImportModule(module);
    if (imported == NULL)
        return NULL; /* with the exception of that import */
    capsules = PyObject_GetAttrString(imported, "__pyx_capi__");
    if (capsules != NULL)
        capsule = PyMapping_GetItemString(capsules, name);
    if (capsule != NULL && PyCapsule_IsValid(capsule, signature)) {
        pointer = PyCapsule_GetPointer(capsule, signature);
    } else {
        const char *found = "nothing";
        PyErr_Clear();
        if (capsule != NULL && PyCapsule_CheckExact(capsule))
            found = PyCapsule_GetName(capsule);
        PyErr_Format(
            PyExc_ImportError,
            "%s.%s: this module was compiled for the signature %s, the installed cdsk has "
            "%s; compile it again with that version's cdsk.h",
            module, name, signature, found);
    }
    Py_XDECREF(capsule);
    Py_XDECREF(capsules);
    Py_DECREF(imported);
    return pointer;
}

/* 0, or -1 with a Python exception set; then none of the functions may be called. */
CDSK_FUNCTION int cdsk_import(void)
{
    static const struct {
        const char *module, *name, *signature;
        void *target;
    } functions[] = {
        {"cdsk._kernel", "cdsk_packed_size", "Py_ssize_t (Py_ssize_t, Py_ssize_t)",
         &cdsk_packed_size},
        {"cdsk._kernel", "cdsk_gram_f64",
         "int (double const *, Py_ssize_t, Py_ssize_t, double const *, Py_ssize_t, "
         "double *, double *, int)",
         &cdsk_gram_f64},
        {"cdsk._kernel", "cdsk_gram_f32",
         "int (float const *, Py_ssize_t, Py_ssize_t, double const *, Py_ssize_t, "
         "float *, double *, int)",
         &cdsk_gram_f32},
        {"cdsk._kernel", "cdsk_rows_f64",
         "int (double const *, Py_ssize_t, double const *, Py_ssize_t, Py_ssize_t, "
         "double const *, Py_ssize_t, double const *, Py_ssize_t, double *, double *, int)",
         &cdsk_rows_f64},
        {"cdsk._kernel", "cdsk_rows_f32",
         "int (float const *, Py_ssize_t, float const *, Py_ssize_t, Py_ssize_t, "
         "double const *, Py_ssize_t, double const *, Py_ssize_t, float *, double *, int)",
         &cdsk_rows_f32},
        {"cdsk._kernel", "cdsk_log_votes_f64",
         "int (double const *, Py_ssize_t, double const *, Py_ssize_t, Py_ssize_t, "
         "double const *, Py_ssize_t, double const *, Py_ssize_t, double const *, "
         "Py_ssize_t const *, Py_ssize_t, double *, double *, int)",
         &cdsk_log_votes_f64},
        {"cdsk._kernel", "cdsk_log_votes_f32",
         "int (float const *, Py_ssize_t, float const *, Py_ssize_t, Py_ssize_t, "
         "double const *, Py_ssize_t, double const *, Py_ssize_t, double const *, "
         "Py_ssize_t const *, Py_ssize_t, double *, double *, int)",
         &cdsk_log_votes_f32},
        {"cdsk._kernel", "cdsk_product_f64",
         "int (double const *, Py_ssize_t, double const *, Py_ssize_t, double *, int)",
         &cdsk_product_f64},
        {"cdsk._kernel", "cdsk_product_f32",
         "int (float const *, Py_ssize_t, double const *, Py_ssize_t, double *, int)",
         &cdsk_product_f32},
        {"cdsk._kernel", "cdsk_similarity_f64",
         "int (double const *, Py_ssize_t, double const *, double, double *, double *, "
         "int)",
         &cdsk_similarity_f64},
        {"cdsk._kernel", "cdsk_similarity_f32",
         "int (float const *, Py_ssize_t, double const *, double, float *, double *, int)",
         &cdsk_similarity_f32},
        {"cdsk._smo", "cdsk_solve_qp",
         "int (Py_ssize_t, double const *(*)(void *, Py_ssize_t, double *), void *, "
         "double const *, double const *, double, double, Py_ssize_t, double *, double *, "
         "double *, double *, Py_ssize_t *)",
         &cdsk_solve_qp},
        {"cdsk._smo", "cdsk_solve_qp_csr",
         "int (Py_ssize_t, Py_ssize_t const *, int const *, double const *, "
         "double const *, double const *, double, double, Py_ssize_t, double *, double *, "
         "double *, double *, Py_ssize_t *)",
         &cdsk_solve_qp_csr},
    };
    size_t i;
    for (i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *pointer = cdsk_capsule_pointer(
            functions[i].module, functions[i].name, functions[i].signature);
        if (pointer == NULL)
            return -1;
        /* ISO C has no cast from an object pointer to a function pointer */
        memcpy(functions[i].target, &pointer, sizeof pointer);
    }
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif
