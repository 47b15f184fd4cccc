/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The leaf loops of cdsk that are worth compiling once per instruction set.
 *
 * simd.c is compiled several times with different target flags; each copy fills
 * one table of the type below, and cdsk_simd_select() returns the widest table this
 * processor can run. Nothing here allocates, starts threads or knows Python.
 * Threads belong to the callers.
 *
 * Packed points. A *tile* is CDSK_TILE points in groups of CDSK_GROUP, each group stored
 * feature by feature: feature k of point i is
 *   packed[(i / CDSK_GROUP * d + k) * CDSK_GROUP + i % CDSK_GROUP],
 * missing points are zero.
 *
 * Every result depends only on its inputs and the instruction set, never on how
 * callers divide the work.
 */
#ifndef CDSK_SIMD_H
#define CDSK_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* 48: a multiple of every register block in simd.c; 48 x 48 doubles are 18 KiB, half
 * of a 32 KiB level-1 cache. */
#define CDSK_TILE 48

/* 8 doubles, a cache line: loops over features read whole lines one after the other. */
#define CDSK_GROUP 8

/* Products that near_pairs sums before it stores a partial sum. */
#define CDSK_SINGLE_DEPTH 64

/* Largest number of columns of one call of `product`. */
#define CDSK_MAX_COLUMNS 64

/* Largest number of rows of K of one call of `product`: enough to amortize loading V into
 * the level-2 cache, and few enough that all threads get some. */
#define CDSK_PRODUCT_ROWS 32

/* Floats of a position of a layout: one cache line, whatever the number of coordinates.
 * Those that are not used are zero. */
#define CDSK_LAYOUT_WIDTH 16

/* Largest number of random points that repel an end of an edge. */
#define CDSK_MAX_NEGATIVES 32

/* Added to the squared distances of a repulsion: no force is larger than 3.8. */
#define CDSK_SOFTENING 0.0625f

/* One epoch of a layout: a graph of n points in CSR format, and where the points are.
 * Fractions are integers, in units of 2^-32: entry e acts in this epoch if
 * phases[e] + (epoch + 1) rates[e] exceeds a multiple of 2^32 that
 * phases[e] + epoch rates[e] does not. Random numbers are hashes of
 * (seed, epoch, id of a point, place of an entry in its row). */
typedef struct {
    ptrdiff_t n;
    const int64_t *starts;    /* (n + 1,) */
    const int32_t *neighbors; /* (n_entries,) */
    const uint32_t *rates;    /* (n_entries,) */
    const uint32_t *phases;   /* (n_entries,) */
    const int32_t *ids;       /* (n,) a permutation of 0 ... n - 1 */
    const int32_t *points;    /* (n,) its inverse */
    const float *positions;   /* (n, CDSK_LAYOUT_WIDTH) */
    uint64_t seed;
    uint32_t epoch;
    int n_negatives;          /* at most CDSK_MAX_NEGATIVES */
    float step;
} cdsk_epoch;

typedef struct {
    const char *name;

    /* |a_i|^2 of a tile. a (d, TILE) in, packed   out (TILE,) out */
    void (*squared_norms)(const double *a, ptrdiff_t d, double *out);

    /* Tile of K_ij = exp(-|a_i - b_j|^2 wa_i wb_j), values below the smallest normal
     * number of the output type are exactly 0.
     *   a, b     (d, TILE) in, packed          wa, wb  (TILE,) in
     *   sa, sb   (TILE,) in, squared norms: |a_i - b_j|^2 is then expanded, which is
     *            faster, except where sa_i < 0; or NULL: it is summed from differences
     *   out      (na, nb) out, row stride `stride`
     *   mirror   (nb, na) out, the transpose with the same stride, or NULL */
    void (*gaussian_f64)(const double *a, const double *b, ptrdiff_t d,
                         const double *wa, const double *wb,
                         const double *sa, const double *sb,
                         ptrdiff_t na, ptrdiff_t nb,
                         double *out, double *mirror, ptrdiff_t stride);
    void (*gaussian_f32)(const double *a, const double *b, ptrdiff_t d,
                         const double *wa, const double *wb,
                         const double *sa, const double *sb,
                         ptrdiff_t na, ptrdiff_t nb,
                         float *out, float *mirror, ptrdiff_t stride);

    /* Adds the nb points of tile b to a running log-sum-exp per point of tile a:
     * afterwards log(total_i) + peak_i = log sum_j alpha_j exp(-|a_i-b_j|^2 wa_i wb_j).
     *   alpha        (TILE,) in, > 0 for the first nb points
     *   peak, total  (TILE,) in/out, start with -HUGE_VAL and 0 */
    void (*log_votes)(const double *a, const double *b, ptrdiff_t d,
                      const double *wa, const double *wb,
                      const double *sa, const double *sb, const double *alpha,
                      ptrdiff_t nb, double *peak, double *total);

    /* Rows `first` ... first + rows - 1 of (K - diag K) V', rows <= CDSK_PRODUCT_ROWS.
     *   K    (n, n) in     V  (m, n) in, one column per row, m <= CDSK_MAX_COLUMNS
     *   out  (m, n) out: out[l, i] = sum_{j != i} K_ij V_lj for these rows i */
    void (*product_f64)(const double *K, ptrdiff_t first, ptrdiff_t rows, ptrdiff_t n,
                        const double *V, ptrdiff_t m, double *out);
    void (*product_f32)(const float *K, ptrdiff_t first, ptrdiff_t rows, ptrdiff_t n,
                        const double *V, ptrdiff_t m, double *out);

    /* Blocks of long vectors, one per row.
     * inner:   out[r, l] = sum_{begin <= j < end} A_rj B_lj
     *   A (p, n) in   B (q, n) in, q <= CDSK_MAX_COLUMNS   out (p, q) out
     * combine: out[l, j] = sum_r C_rl A_rj for begin <= j < end
     *   C (p, q) in   A (p, n) in                          out (q, n) out */
    void (*inner)(const double *A, ptrdiff_t p, const double *B, ptrdiff_t q,
                  ptrdiff_t n, ptrdiff_t begin, ptrdiff_t end, double *out);
    void (*combine)(const double *C, const double *A, ptrdiff_t p, ptrdiff_t q,
                    ptrdiff_t n, ptrdiff_t begin, ptrdiff_t end, double *out);

    /* out_j = scale * k_j * sum_l y_l Y_lj: a row of scale * K o (Y'Y).
     *   k (n,) in   Y (c, n) in   y (c,) in   out (n,) out, may be k itself */
    void (*hadamard_row)(const double *k, const double *Y, const double *y,
                         double scale, ptrdiff_t c, ptrdiff_t n, double *out);

    /* Neighbors. Here a tile is stored feature by feature: feature k of point i is
     * [k * CDSK_TILE + i]. Points are shifted and scaled so that float32 separates near
     * pairs from far ones; pairs within its error are left to squared_distance.
     *
     * single_tile: out = (a - center) * scale in float32, norms = |that|^2 in float64.
     *   a (d, TILE) in   center (d,) in   out (d, TILE) out   norms (TILE,) out */
    void (*single_tile)(const double *a, const double *center, double scale, ptrdiff_t d,
                        float *out, double *norms);

    /* Points of a whose squared distance from a box is at most reach_i, or NaN.
     *   a (d, TILE) in   low, high (d,) in   reach (TILE,) in
     *   rows (TILE,) out, their indices; returns their number */
    ptrdiff_t (*points_near_box)(const float *a, ptrdiff_t d, const float *low,
                                 const float *high, const float *reach, int32_t *rows);

    /* Set bit j of near[r], i = rows[r], if a_i b_j + shift_j >= least_i, or NaN, or
     * >= bound_a_i + bound_b_j unless bound_b is NULL. Products are summed
     * CDSK_SINGLE_DEPTH at a time, shift_j first.
     *   a, b (d, TILE) in   shift, least, bound_a, bound_b (TILE,) in
     *   rows (n_rows,) in   near (n_rows,) out */
    void (*near_pairs)(const float *a, const float *b, ptrdiff_t d, const float *shift,
                       const float *least, const float *bound_a, const float *bound_b,
                       const int32_t *rows, ptrdiff_t n_rows, uint64_t *near);

    /* |a - b|^2 from differences, the same for (b, a). a, b (d,) in */
    double (*squared_distance_f64)(const double *a, const double *b, ptrdiff_t d);
    double (*squared_distance_f32)(const double *a, const float *b, ptrdiff_t d);

    /* Squared distance between two boxes; *centers is that between their centers. */
    double (*box_distance)(const double *low_a, const double *high_a,
                           const double *low_b, const double *high_b, ptrdiff_t d,
                           double *centers);

    /* SMO, second-order choice: the i with the largest
     *   (g_i - g_j)^2 / max(diag_i + diag_j - 2 q_i, floor)   among g_i > g_j,
     * where q is row j of Q and can_decrease_i is 0 if x_i may decrease, else -inf.
     * Returns i, or -1 if there is none. */
    ptrdiff_t (*smo_partner)(const double *g, const double *can_decrease,
                             const double *diag, const double *q, double g_j,
                             double diag_j, double floor, ptrdiff_t n);

    /* SMO, gradient step and the next first-order choice in one pass:
     *   g += step * (q_j - q_i);  returns argmin(g + can_increase), -1 if that is +inf;
     *   *low = that minimum, *high = max(g + can_decrease).  can_increase_i is 0 if x_i
     *   may increase, else +inf.  q_j = q_i = NULL leaves g as it is. */
    ptrdiff_t (*smo_update)(double *g, const double *q_j, const double *q_i,
                            double step, const double *can_increase,
                            const double *can_decrease, ptrdiff_t n,
                            double *low, double *high);

    /* k-means, for the points begin ... end - 1:
     *   nearest_i = min(nearest_i, min_j |x_i - center_j|^2),
     * labels_i the first j with the minimum, 0 if none is below nearest_i. Returns
     * sum_i weights_i nearest_i.
     *   points (d, n) in   centers (c, d) in   weights (n,) in
     *   nearest (n,) in/out                    labels (n,) out, or NULL */
    double (*assign_nearest)(const double *points, ptrdiff_t n, ptrdiff_t begin,
                             ptrdiff_t end, ptrdiff_t d, const double *centers,
                             ptrdiff_t c, const double *weights, double *nearest,
                             int64_t *labels);

    /* Layout: where an epoch moves the points begin ... end - 1; all others are where they
     * were before. With s_j = |y - y_j|^2 and the step length a, y = y_i goes for each entry
     * (i, j) that acts, one after the other,
     *   twice to  y - a 2 (y - y_j) / (1 + s_j),  once for each direction of the edge, and
     *   to  y + a sum_k 2 (y - y_k) / ((CDSK_SOFTENING + s_k) (1 + s_k))  for n_negatives
     *   random points k; i itself does not count.
     *   moved (n, CDSK_LAYOUT_WIDTH) out, rows begin ... end - 1 */
    void (*move_points)(const cdsk_epoch *epoch, ptrdiff_t begin, ptrdiff_t end,
                        float *moved);
} cdsk_simd;

/* The widest table for this processor. The environment variable CDSK_SIMD may name the
 * widest level allowed ("base", "v3"); any other value means no limit. */
const cdsk_simd *cdsk_simd_select(void);

#endif
