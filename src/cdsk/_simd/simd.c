/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compiled once per instruction set with CDSK_LEVEL = base, v3 or v4; see simd.h.
 *
 * Written with the vector extension of gcc and clang, so that sums stay in registers
 * whatever the auto-vectorizer does.
 *
 * Squared distances come in two forms. Sums of squared differences never cancel; the
 * expansion |a|^2 + |b|^2 - 2ab saves the subtraction, but its error is that of the norms,
 * and callers use it only where that is small enough, point by point. In both, duplicates
 * have distance exactly 0: norms and products are summed in the same order.
 */
#include "simd.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 8  /* doubles in a register */
#define MR 8     /* register block: MR points by NV registers of points, */
#define NV 3     /* 24 accumulators of 32 registers */
#define COLUMNS 4 /* register block of products: ROWS rows by COLUMNS columns */
#elif defined(__AVX2__)
#define WIDTH 4
#define MR 4     /* 8 accumulators of 16 registers: enough to hide the latency of FMA */
#define NV 2
#define COLUMNS 3
#else
#define WIDTH 2
#define MR 4
#define NV 2
#define COLUMNS 2
#endif

#define ROWS 4

#define NR (NV * WIDTH)
#define TILE CDSK_TILE
#define GROUP CDSK_GROUP
#define ALIGNED __attribute__((aligned(64))) /* to a cache line */

/* Features summed before a partial sum is stored, which also keeps the rounding of long
 * sums small: 128 x (24 + 8) doubles, the points of a register block, are 32 KiB and stay
 * in level 1 during the loop over the other points. */
#define DEPTH 128

/* Columns of K, and entries of V, per block of a product: ROWS x 512 of K stay in level 1
 * during the loop over the columns of V, 28 x 512 of V in level 2 during that over rows. */
#define CHUNK 512

typedef double vec __attribute__((vector_size(8 * WIDTH)));
typedef int64_t ivec __attribute__((vector_size(8 * WIDTH)));
typedef float fvec __attribute__((vector_size(4 * WIDTH)));
typedef float wide __attribute__((vector_size(8 * WIDTH))); /* as many floats as fit */
typedef int32_t iwide __attribute__((vector_size(8 * WIDTH)));
#define LANES (2 * WIDTH)

static inline vec load(const double *x)
{
    vec v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline void store(double *x, vec v) { memcpy(x, &v, sizeof v); }

static inline ptrdiff_t smaller_of(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static inline ptrdiff_t larger_of(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

static inline vec load_f32(const float *x)
{
    fvec v;
    memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, vec);
}

static inline vec splat(double x) { return (vec){0} + x; }

static inline vec choose(ivec mask, vec yes, vec no)
{
    return (vec)((mask & (ivec)yes) | (~mask & (ivec)no));
}

static inline vec larger(vec a, vec b) { return choose(a > b, a, b); }

static inline double horizontal_sum(vec v)
{
    double part[WIDTH];
    store(part, v);
    for (int half = WIDTH / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            part[l] += part[l + half];
    return part[0];
}

/* exp(x) for -745 < x <= 0 within 1 ulp, exactly 1 at 0; 0 where x < floor, which must be
 * at least log(DBL_MIN). x = n log 2 + r with |r| <= log(2)/2, Taylor series to r^13 (next
 * term < 5e-18), then n goes into the exponent bits. */
static inline vec exp_below_zero(vec x, double floor)
{
    const double shift = 0x1.8p52; /* adding it rounds to an integer */
    const double log2_high = 0x1.62e42fefa3800p-1, log2_low = 0x1.ef35793c76730p-45;
    const ivec underflow = x < floor;
    x = choose(underflow, splat(floor), x);
    const vec shifted = x * 0x1.71547652b82fep0 + shift;
    const vec n = shifted - shift;
    const vec r = (x - n * log2_high) - n * log2_low;
    vec p = splat(1.0 / 6227020800.0);
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    const vec power = (vec)(((ivec)shifted << 52) + (ivec)splat(1.0));
    return choose(underflow, splat(0.0), p * power);
}


/* Point i of a packed tile, see simd.h. */
static inline const double *point(const double *packed, ptrdiff_t d, int i)
{
    return packed + i / GROUP * d * GROUP + i % GROUP;
}

/* tile[i, j] = (first ? 0 : tile[i, j]) + sum over `depth` features of (a_i - b_j)^2, or of
 * a_i b_j, for MR x NR points. Inlined with a constant `differences`. */
static inline __attribute__((always_inline)) void sum_block(
    const double *a, const double *b, ptrdiff_t d, ptrdiff_t depth, int first,
    int differences, double *tile)
{
    vec sum[MR][NV];
    for (int r = 0; r < MR; r++)
        for (int v = 0; v < NV; v++)
            sum[r][v] = splat(0.0);
    for (ptrdiff_t k = 0; k < depth; k++) {
        vec bk[NV];
        for (int v = 0; v < NV; v++)
            bk[v] = load(point(b, d, v * WIDTH) + k * GROUP);
        for (int r = 0; r < MR; r++) {
            const double ak = a[k * GROUP + r];
            for (int v = 0; v < NV; v++) {
                if (differences) {
                    const vec difference = bk[v] - ak;
                    sum[r][v] += difference * difference;
                } else {
                    sum[r][v] += bk[v] * ak;
                }
            }
        }
    }
    for (int r = 0; r < MR; r++)
        for (int v = 0; v < NV; v++) {
            double *place = tile + r * TILE + v * WIDTH;
            store(place, first ? sum[r][v] : load(place) + sum[r][v]);
        }
}

/* Rows begin ... end - 1 of the tile, multiples of MR. */
static inline __attribute__((always_inline)) void sum_rows(
    const double *a, const double *b, ptrdiff_t d, int begin, int end, int differences,
    double *tile)
{
    for (ptrdiff_t k = 0; k < d; k += DEPTH) {
        const ptrdiff_t depth = d - k < DEPTH ? d - k : DEPTH;
        for (int j = 0; j < TILE; j += NR)
            for (int i = begin; i < end; i += MR)
                sum_block(point(a, d, i) + k * GROUP, point(b, d, j) + k * GROUP, d,
                          depth, k == 0, differences, tile + i * TILE + j);
    }
}

static void sum_differences(const double *a, const double *b, ptrdiff_t d, int begin,
                            int end, double *tile)
{
    sum_rows(a, b, d, begin, end, 1, tile);
}

static void sum_products(const double *a, const double *b, ptrdiff_t d, double *tile)
{
    sum_rows(a, b, d, 0, TILE, 0, tile);
}

static void squared_norms(const double *a, ptrdiff_t d, double *out)
{
    for (int i = 0; i < TILE; i += WIDTH) {
        vec total = {0};
        for (ptrdiff_t k = 0; k < d;) {
            vec sum = {0};
            for (const ptrdiff_t end = smaller_of(k + DEPTH, d); k < end; k++) {
                const vec x = load(point(a, d, i) + k * GROUP);
                sum += x * x;
            }
            total += sum;
        }
        store(out + i, total);
    }
}

/* Recompute from differences the rows of the tile whose points must not be expanded. */
static void recompute_rows(const double *a, const double *b, ptrdiff_t d,
                           const double *sa, double *tile)
{
    for (int i = 0; i < TILE; i += MR) {
        double rows[MR * TILE] ALIGNED;
        int needed = 0;
        for (int r = i; r < i + MR; r++)
            needed |= sa[r] < 0;
        if (!needed)
            continue;
        /* sum_differences writes to rows i ... of a tile: `rows` stands for them */
        sum_differences(point(a, d, i), b, d, 0, MR, rows);
        for (int r = 0; r < MR; r++)
            if (sa[i + r] < 0)
                memcpy(tile + (i + r) * TILE, rows + r * TILE, TILE * sizeof(double));
    }
}

/* tile (TILE, TILE) out: -|a_i - b_j|^2 wa_i wb_j */
static void exponents(const double *a, const double *b, ptrdiff_t d,
                      const double *wa, const double *wb, const double *sa,
                      const double *sb, double *tile)
{
    int expanded = 0;
    for (int i = 0; sa && i < TILE; i++)
        expanded += sa[i] >= 0;
    if (expanded)
        sum_products(a, b, d, tile);
    else
        sum_differences(a, b, d, 0, TILE, tile);
    if (0 < expanded && expanded < TILE)
        recompute_rows(a, b, d, sa, tile);
    for (int i = 0; i < TILE; i++) {
        const int expand = sa && sa[i] >= 0;
        for (int j = 0; j < TILE; j += WIDTH) {
            /* sums and products of the pair first: they commute, so K is symmetric */
            const vec w = load(wb + j) * wa[i];
            vec squared = load(tile + i * TILE + j);
            if (expand)
                squared = larger((load(sb + j) + sa[i]) - 2.0 * squared, splat(0.0));
            store(tile + i * TILE + j, -squared * w);
        }
    }
}

#define GAUSSIAN(name, type, floor)                                                     \
    static void name(const double *a, const double *b, ptrdiff_t d, const double *wa,   \
                     const double *wb, const double *sa, const double *sb,              \
                     ptrdiff_t na, ptrdiff_t nb, type *out, type *mirror,               \
                     ptrdiff_t stride)                                                  \
    {                                                                                   \
        double tile[TILE * TILE] ALIGNED;                                               \
        exponents(a, b, d, wa, wb, sa, sb, tile);                                       \
        for (int i = 0; i < TILE * TILE; i += WIDTH)                                    \
            store(tile + i, exp_below_zero(load(tile + i), floor));                     \
        for (ptrdiff_t i = 0; i < na; i++)                                              \
            for (ptrdiff_t j = 0; j < nb; j++)                                          \
                out[i * stride + j] = (type)tile[i * TILE + j];                         \
        if (mirror)                                                                     \
            for (ptrdiff_t j = 0; j < nb; j++)                                          \
                for (ptrdiff_t i = 0; i < na; i++)                                      \
                    mirror[j * stride + i] = (type)tile[i * TILE + j];                  \
    }

GAUSSIAN(gaussian_f64, double, -708.396) /* log(DBL_MIN) = -708.3964... */
GAUSSIAN(gaussian_f32, float, -87.336)   /* log(FLT_MIN) = -87.3365... */

static void log_votes(const double *a, const double *b, ptrdiff_t d, const double *wa,
                      const double *wb, const double *sa, const double *sb,
                      const double *alpha, ptrdiff_t nb, double *peak, double *total)
{
    double tile[TILE * TILE] ALIGNED, weight[TILE] ALIGNED;
    exponents(a, b, d, wa, wb, sa, sb, tile);
    for (int j = 0; j < TILE; j++)
        weight[j] = j < nb ? alpha[j] : 0;
    for (int i = 0; i < TILE; i++) {
        double *e = tile + i * TILE;
        for (ptrdiff_t j = nb; j < TILE; j++) /* missing points */
            e[j] = -HUGE_VAL;
        vec highest = splat(peak[i]);
        for (int j = 0; j < TILE; j += WIDTH)
            highest = larger(highest, load(e + j));
        double top = highest[0];
        for (int l = 1; l < WIDTH; l++)
            top = highest[l] > top ? highest[l] : top;
        if (top == -HUGE_VAL) /* every distance overflows: nothing to add */
            continue;
        vec sum = {0};
        for (int j = 0; j < TILE; j += WIDTH)
            sum += load(weight + j) * exp_below_zero(load(e + j) - top, -708.396);
        if (top > peak[i])
            total[i] *= exp(peak[i] - top);
        total[i] += horizontal_sum(sum);
        peak[i] = top;
    }
}

/* sums[r, l] (registers of partial sums) += K_rj V_lj over `size` columns j. */
#define PRODUCT(name, type, load_type)                                                  \
    static inline __attribute__((always_inline)) void name##_block(                     \
        const type *K, ptrdiff_t stride, ptrdiff_t size, const double *V,               \
        ptrdiff_t v_stride, int rows, int columns, vec *sums)                           \
    {                                                                                   \
        vec s[ROWS][COLUMNS];                                                           \
        for (int r = 0; r < rows; r++)                                                  \
            for (int l = 0; l < columns; l++)                                           \
                s[r][l] = sums[r * CDSK_MAX_COLUMNS + l];                               \
        ptrdiff_t j = 0;                                                                \
        for (; j + WIDTH <= size; j += WIDTH) {                                         \
            vec v[COLUMNS];                                                             \
            for (int l = 0; l < columns; l++)                                           \
                v[l] = load(V + l * v_stride + j);                                      \
            for (int r = 0; r < rows; r++) {                                            \
                const vec k = load_type(K + r * stride + j);                            \
                for (int l = 0; l < columns; l++)                                       \
                    s[r][l] += k * v[l];                                                \
            }                                                                           \
        }                                                                               \
        for (; j < size; j++)                                                           \
            for (int r = 0; r < rows; r++)                                              \
                for (int l = 0; l < columns; l++)                                       \
                    s[r][l][0] += (double)K[r * stride + j] * V[l * v_stride + j];      \
        for (int r = 0; r < rows; r++)                                                  \
            for (int l = 0; l < columns; l++)                                           \
                sums[r * CDSK_MAX_COLUMNS + l] = s[r][l];                               \
    }                                                                                   \
                                                                                        \
    /* The same for ROWS rows or fewer, m columns of V, and begin <= j < end. */        \
    static void name##_rows(const type *K, ptrdiff_t rows, ptrdiff_t stride,            \
                            ptrdiff_t begin, ptrdiff_t end, const double *V,            \
                            ptrdiff_t m, ptrdiff_t n, vec *sums)                        \
    {                                                                                   \
        const ptrdiff_t size = end - begin;                                             \
        ptrdiff_t l = 0;                                                                \
        if (size <= 0)                                                                  \
            return;                                                                     \
        K += begin;                                                                     \
        V += begin;                                                                     \
        if (rows == ROWS) {                                                             \
            for (; l + COLUMNS <= m; l += COLUMNS)                                      \
                name##_block(K, stride, size, V + l * n, n, ROWS, COLUMNS, sums + l);   \
            for (; l + 2 <= m; l += 2)                                                  \
                name##_block(K, stride, size, V + l * n, n, ROWS, 2, sums + l);         \
            for (; l < m; l++)                                                          \
                name##_block(K, stride, size, V + l * n, n, ROWS, 1, sums + l);         \
        }                                                                               \
        for (; l < m; l++)                                                              \
            for (ptrdiff_t r = 0; r < rows; r++)                                        \
                name##_block(K + r * stride, stride, size, V + l * n, n, 1, 1,          \
                             sums + r * CDSK_MAX_COLUMNS + l);                          \
    }                                                                                   \
                                                                                        \
    static void name(const type *K, ptrdiff_t first, ptrdiff_t rows, ptrdiff_t n,       \
                     const double *V, ptrdiff_t m, double *out)                         \
    {                                                                                   \
        vec sums[CDSK_PRODUCT_ROWS * CDSK_MAX_COLUMNS];                                 \
        memset(sums, 0, (size_t)rows * CDSK_MAX_COLUMNS * sizeof(vec));                 \
        K += first * n;                                                                 \
        for (ptrdiff_t j = 0; j < n; j += CHUNK)                                        \
            for (ptrdiff_t r = 0; r < rows; r += ROWS) {                                \
                /* all but the square around the diagonal */                            \
                const ptrdiff_t part = smaller_of(ROWS, rows - r);                      \
                const ptrdiff_t square = first + r, end = smaller_of(j + CHUNK, n);     \
                vec *s = sums + r * CDSK_MAX_COLUMNS;                                   \
                const type *k = K + r * n;                                              \
                name##_rows(k, part, n, j, smaller_of(end, square), V, m, n, s);        \
                name##_rows(k, part, n, larger_of(j, square + part), end, V, m, n, s);  \
            }                                                                           \
        for (ptrdiff_t r = 0; r < rows; r++) {                                          \
            const ptrdiff_t square = first + r / ROWS * ROWS;                           \
            const ptrdiff_t end = smaller_of(square + ROWS, first + rows);              \
            for (ptrdiff_t l = 0; l < m; l++) {                                         \
                double s = horizontal_sum(sums[r * CDSK_MAX_COLUMNS + l]);              \
                for (ptrdiff_t j = square; j < end; j++)                                \
                    if (j != first + r)                                                 \
                        s += (double)K[r * n + j] * V[l * n + j];                       \
                out[l * n + first + r] = s;                                             \
            }                                                                           \
        }                                                                               \
    }

PRODUCT(product_f64, double, load)
PRODUCT(product_f32, float, load_f32)

static void inner(const double *A, ptrdiff_t p, const double *B, ptrdiff_t q,
                  ptrdiff_t n, ptrdiff_t begin, ptrdiff_t end, double *out)
{
    for (ptrdiff_t first = 0; first < p; first += ROWS) {
        const ptrdiff_t rows = smaller_of(ROWS, p - first);
        vec sums[ROWS * CDSK_MAX_COLUMNS];
        memset(sums, 0, sizeof sums);
        for (ptrdiff_t j = begin; j < end; j += CHUNK)
            product_f64_rows(A + first * n, rows, n, j, smaller_of(j + CHUNK, end), B, q,
                             n, sums);
        for (ptrdiff_t r = 0; r < rows; r++)
            for (ptrdiff_t l = 0; l < q; l++)
                out[(first + r) * q + l] = horizontal_sum(sums[r * CDSK_MAX_COLUMNS + l]);
    }
}

/* `columns` combinations for 2 * WIDTH places j; always inlined, so that the sums stay in
 * registers. */
static inline __attribute__((always_inline)) void combine_group(
    const double *C, const double *A, ptrdiff_t p, ptrdiff_t q, ptrdiff_t n, int columns,
    double *out)
{
    vec sum[4][2] = {{{0}}};
    for (ptrdiff_t r = 0; r < p; r++)
        for (int v = 0; v < 2; v++) {
            const vec a = load(A + r * n + v * WIDTH);
            for (int l = 0; l < columns; l++)
                sum[l][v] += a * C[r * q + l];
        }
    for (int l = 0; l < columns; l++)
        for (int v = 0; v < 2; v++)
            store(out + l * n + v * WIDTH, sum[l][v]);
}

static void combine(const double *C, const double *A, ptrdiff_t p, ptrdiff_t q,
                    ptrdiff_t n, ptrdiff_t begin, ptrdiff_t end, double *out)
{
    ptrdiff_t j = begin;
    for (; j + 2 * WIDTH <= end; j += 2 * WIDTH) {
        ptrdiff_t l = 0;
        for (; l + 4 <= q; l += 4)
            combine_group(C + l, A + j, p, q, n, 4, out + l * n + j);
        for (; l < q; l++)
            combine_group(C + l, A + j, p, q, n, 1, out + l * n + j);
    }
    for (; j < end; j++)
        for (ptrdiff_t l = 0; l < q; l++) {
            double sum = 0;
            for (ptrdiff_t r = 0; r < p; r++)
                sum += A[r * n + j] * C[r * q + l];
            out[l * n + j] = sum;
        }
}

static void hadamard_row(const double *k, const double *Y, const double *y,
                         double scale, ptrdiff_t c, ptrdiff_t n, double *out)
{
    ptrdiff_t j = 0;
    /* four registers at a time: each y_l is then loaded once for all of them */
    for (; j + 4 * WIDTH <= n; j += 4 * WIDTH) {
        vec g[4] = {{0}};
        for (ptrdiff_t l = 0; l < c; l++)
            for (int v = 0; v < 4; v++)
                g[v] += load(Y + l * n + j + v * WIDTH) * y[l];
        for (int v = 0; v < 4; v++)
            store(out + j + v * WIDTH, load(k + j + v * WIDTH) * g[v] * scale);
    }
    for (; j < n; j++) {
        double g = 0;
        for (ptrdiff_t l = 0; l < c; l++)
            g += Y[l * n + j] * y[l];
        out[j] = k[j] * g * scale;
    }
}

/* The lane index of each element, for searches that return an index. */
static inline ivec lanes(void)
{
    ivec index;
    for (int l = 0; l < WIDTH; l++)
        index[l] = l;
    return index;
}

static ptrdiff_t smo_partner(const double *g, const double *can_decrease,
                             const double *diag, const double *q, double g_j,
                             double diag_j, double floor, ptrdiff_t n)
{
    vec best = {0};
    ivec place = (ivec){0} - 1, here = lanes();
    ptrdiff_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH, here += WIDTH) {
        const vec gain = load(g + i) + load(can_decrease + i) - g_j;
        vec curvature = load(diag + i) - 2.0 * load(q + i) + diag_j;
        curvature = larger(curvature, splat(floor));
        const vec score = gain * gain / curvature;
        const ivec better = (gain > 0.0) & (score > best);
        best = choose(better, score, best);
        place = (better & here) | (~better & place);
    }
    double top = 0;
    ptrdiff_t partner = -1;
    for (int l = 0; l < WIDTH; l++)
        if (place[l] >= 0 && (best[l] > top || (best[l] == top && place[l] < partner))) {
            top = best[l];
            partner = (ptrdiff_t)place[l];
        }
    for (; i < n; i++) {
        const double gain = g[i] + can_decrease[i] - g_j;
        double curvature = diag[i] - 2.0 * q[i] + diag_j;
        curvature = curvature > floor ? curvature : floor;
        if (gain > 0 && gain * gain / curvature > top) {
            top = gain * gain / curvature;
            partner = i;
        }
    }
    return partner;
}

static ptrdiff_t smo_update(double *g, const double *q_j, const double *q_i, double step,
                            const double *can_increase, const double *can_decrease,
                            ptrdiff_t n, double *low, double *high)
{
    vec least = splat(HUGE_VAL), most = splat(-HUGE_VAL);
    ivec place = (ivec){0} - 1, here = lanes();
    ptrdiff_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH, here += WIDTH) {
        vec gradient = load(g + i);
        if (q_j) {
            gradient += step * (load(q_j + i) - load(q_i + i));
            store(g + i, gradient);
        }
        const vec up = gradient + load(can_increase + i);
        const vec down = gradient + load(can_decrease + i);
        const ivec better = up < least;
        least = choose(better, up, least);
        place = (better & here) | (~better & place);
        most = larger(down, most);
    }
    double minimum = HUGE_VAL, maximum = -HUGE_VAL;
    ptrdiff_t next = -1;
    for (int l = 0; l < WIDTH; l++) {
        if (place[l] >= 0
            && (least[l] < minimum || (least[l] == minimum && place[l] < next))) {
            minimum = least[l];
            next = (ptrdiff_t)place[l];
        }
        maximum = most[l] > maximum ? most[l] : maximum;
    }
    for (; i < n; i++) {
        if (q_j)
            g[i] += step * (q_j[i] - q_i[i]);
        if (g[i] + can_increase[i] < minimum) {
            minimum = g[i] + can_increase[i];
            next = i;
        }
        maximum = g[i] + can_decrease[i] > maximum ? g[i] + can_decrease[i] : maximum;
    }
    *low = minimum;
    *high = maximum;
    return next;
}

/* Neighbors: tiles are (d, TILE) here. */

static inline wide load_wide(const float *x)
{
    wide v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline void store_wide(float *x, wide v) { memcpy(x, &v, sizeof v); }

static inline wide larger_wide(wide a, wide b)
{
    const iwide mask = a > b;
    return (wide)((mask & (iwide)a) | (~mask & (iwide)b));
}

/* Bit l is set where lane l is. */
static inline uint64_t bits(iwide mask)
{
#if defined(__AVX512DQ__)
    return (uint64_t)_mm512_movepi32_mask((__m512i)mask);
#elif defined(__AVX2__)
    return (uint64_t)(unsigned)_mm256_movemask_ps((__m256)mask);
#elif defined(__SSE2__)
    return (uint64_t)(unsigned)_mm_movemask_ps((__m128)mask);
#else
    uint64_t all = 0;
    for (int l = 0; l < LANES; l++)
        all |= (uint64_t)(mask[l] != 0) << l;
    return all;
#endif
}

static void single_tile(const double *a, const double *center, double scale, ptrdiff_t d,
                        float *out, double *norms)
{
    vec sum[TILE / WIDTH];
    for (int v = 0; v < TILE / WIDTH; v++)
        sum[v] = splat(0.0);
    for (ptrdiff_t k = 0; k < d; k++)
        for (int v = 0; v < TILE / WIDTH; v++) {
            const ptrdiff_t place = k * TILE + v * WIDTH;
            const vec x = (load(a + place) - center[k]) * scale;
            const fvec rounded = __builtin_convertvector(x, fvec);
            memcpy(out + place, &rounded, sizeof rounded);
            sum[v] += x * x;
        }
    for (int v = 0; v < TILE / WIDTH; v++)
        store(norms + v * WIDTH, sum[v]);
}

static ptrdiff_t points_near_box(const float *a, ptrdiff_t d, const float *low,
                                 const float *high, const float *reach, int32_t *rows)
{
    wide sum[TILE / LANES];
    for (int v = 0; v < TILE / LANES; v++)
        sum[v] = (wide){0};
    for (ptrdiff_t k = 0; k < d; k++)
        for (int v = 0; v < TILE / LANES; v++) {
            const wide x = load_wide(a + k * TILE + v * LANES);
            const wide gap = larger_wide(larger_wide(low[k] - x, x - high[k]), (wide){0});
            sum[v] += gap * gap;
        }
    uint64_t near = 0;
    for (int v = 0; v < TILE / LANES; v++)
        near |= bits(~(sum[v] > load_wide(reach + v * LANES))) << v * LANES;
    ptrdiff_t count = 0;
    for (; near; near &= near - 1)
        rows[count++] = __builtin_ctzll(near);
    return count;
}

/* tile[r, j] = (shift ? shift_j : tile[r, j]) + sum over `depth` features of a_r b_j.
 * Each call brings some of what is needed next, from `ahead` on, into the cache. */
static inline void single_products(const float *const a[MR], const float *b,
                                   ptrdiff_t depth, const float *shift, float *tile,
                                   const float *ahead)
{
    wide sum[MR][NV];
    for (int r = 0; r < MR; r++)
        for (int v = 0; v < NV; v++)
            sum[r][v] = load_wide((shift ? shift : tile + r * TILE) + v * LANES);
    for (ptrdiff_t k = 0; k < depth; k++) {
        wide bk[NV];
        __builtin_prefetch(ahead + k * 16);
        for (int v = 0; v < NV; v++)
            bk[v] = load_wide(b + k * TILE + v * LANES);
        for (int r = 0; r < MR; r++) {
            const float ak = a[r][k * TILE];
            for (int v = 0; v < NV; v++)
                sum[r][v] += bk[v] * ak;
        }
    }
    for (int r = 0; r < MR; r++)
        for (int v = 0; v < NV; v++)
            store_wide(tile + r * TILE + v * LANES, sum[r][v]);
}

static void near_pairs(const float *a, const float *b, ptrdiff_t d, const float *shift,
                       const float *least, const float *bound_a, const float *bound_b,
                       const int32_t *rows, ptrdiff_t n_rows, uint64_t *near)
{
    float tile[TILE * TILE] ALIGNED;
    for (ptrdiff_t k = 0; k < d; k += CDSK_SINGLE_DEPTH) {
        const ptrdiff_t depth = smaller_of(d - k, CDSK_SINGLE_DEPTH);
        for (ptrdiff_t i = 0; i < n_rows; i += MR) {
            const float *points[MR];
            for (int r = 0; r < MR; r++) /* the last one repeated */
                points[r] = a + k * TILE + rows[smaller_of(i + r, n_rows - 1)];
            for (int j = 0; j < TILE; j += NV * LANES)
                single_products(points, b + k * TILE + j, depth, k ? NULL : shift + j,
                                tile + i * TILE + j,
                                b + (k + depth) * TILE + i / MR * depth * 16);
        }
    }
    for (ptrdiff_t r = 0; r < n_rows; r++) {
        const float bound = least[rows[r]];
        near[r] = 0;
        for (int j = 0; j < TILE; j += LANES) {
            const wide value = load_wide(tile + r * TILE + j);
            iwide small = value < bound;
            if (bound_b)
                small &= value < bound_a[rows[r]] + load_wide(bound_b + j);
            near[r] |= bits(~small) << j;
        }
    }
}

#define SQUARED_DISTANCE(name, type, load_type)                                         \
    static double name(const double *a, const type *b, ptrdiff_t d)                     \
    {                                                                                   \
        vec sum[4] = {{0}};                                                             \
        ptrdiff_t k = 0;                                                                \
        for (; k + 4 * WIDTH <= d; k += 4 * WIDTH)                                      \
            for (int v = 0; v < 4; v++) {                                               \
                const ptrdiff_t place = k + v * WIDTH;                                  \
                const vec difference = load(a + place) - load_type(b + place);          \
                sum[v] += difference * difference;                                      \
            }                                                                           \
        for (; k + WIDTH <= d; k += WIDTH) {                                            \
            const vec difference = load(a + k) - load_type(b + k);                      \
            sum[0] += difference * difference;                                          \
        }                                                                               \
        double rest = 0;                                                                \
        for (; k < d; k++)                                                              \
            rest += (a[k] - (double)b[k]) * (a[k] - (double)b[k]);                      \
        return d < WIDTH ? rest                                                         \
                         : rest + horizontal_sum((sum[0] + sum[1]) + (sum[2] + sum[3])); \
    }

SQUARED_DISTANCE(squared_distance_f64, double, load)
SQUARED_DISTANCE(squared_distance_f32, float, load_f32)

static double box_distance(const double *low_a, const double *high_a,
                           const double *low_b, const double *high_b, ptrdiff_t d,
                           double *centers)
{
    vec sum = {0}, between = {0};
    double total = 0, apart = 0;
    ptrdiff_t k = 0;
    for (; k + WIDTH <= d; k += WIDTH) {
        const vec before = load(low_b + k) - load(high_a + k);
        const vec behind = load(low_a + k) - load(high_b + k);
        const vec gap = larger(larger(before, behind), splat(0.0));
        sum += gap * gap;
        between += (before - behind) * (before - behind);
    }
    for (; k < d; k++) {
        const double before = low_b[k] - high_a[k], behind = low_a[k] - high_b[k];
        const double gap = before > behind ? before : behind;
        total += gap > 0 ? gap * gap : 0;
        apart += (before - behind) * (before - behind);
    }
    *centers = apart + horizontal_sum(between);
    return total + horizontal_sum(sum);
}

/* Registers of points that assign_nearest compares with a center at once. */
#define NEAR 4

static double assign_nearest(const double *points, ptrdiff_t n, ptrdiff_t begin,
                             ptrdiff_t end, ptrdiff_t d, const double *centers,
                             ptrdiff_t c, const double *weights, double *nearest,
                             int64_t *labels)
{
    vec sum = {0};
    double total = 0;
    ptrdiff_t i = begin;
    for (; i + NEAR * WIDTH <= end; i += NEAR * WIDTH) {
        vec least[NEAR];
        ivec label[NEAR] = {{0}};
        for (int v = 0; v < NEAR; v++)
            least[v] = load(nearest + i + v * WIDTH);
        for (ptrdiff_t j = 0; j < c; j++) {
            vec squared[NEAR] = {{0}};
            for (ptrdiff_t l = 0; l < d; l++)
                for (int v = 0; v < NEAR; v++) {
                    const vec difference =
                        load(points + l * n + i + v * WIDTH) - centers[j * d + l];
                    squared[v] += difference * difference;
                }
            for (int v = 0; v < NEAR; v++) {
                const ivec nearer = squared[v] < least[v];
                least[v] = choose(nearer, squared[v], least[v]);
                label[v] = (nearer & j) | (~nearer & label[v]);
            }
        }
        for (int v = 0; v < NEAR; v++) {
            sum += load(weights + i + v * WIDTH) * least[v];
            store(nearest + i + v * WIDTH, least[v]);
            if (labels)
                memcpy(labels + i + v * WIDTH, &label[v], sizeof label[v]);
        }
    }
    for (; i < end; i++) {
        int64_t label = 0;
        for (ptrdiff_t j = 0; j < c; j++) {
            double squared = 0;
            for (ptrdiff_t l = 0; l < d; l++) {
                const double difference = points[l * n + i] - centers[j * d + l];
                squared += difference * difference;
            }
            if (squared < nearest[i]) {
                nearest[i] = squared;
                label = j;
            }
        }
        total += weights[i] * nearest[i];
        if (labels)
            labels[i] = label;
    }
    return total + horizontal_sum(sum);
}

/* Layout: a position is REGISTERS registers. */

#define REGISTERS (CDSK_LAYOUT_WIDTH / LANES)

typedef uint32_t uwide __attribute__((vector_size(8 * WIDTH)));
typedef float quad __attribute__((vector_size(16)));
typedef struct {
    wide part[REGISTERS];
} position;

static inline position load_position(const float *x)
{
    position y;
    for (int v = 0; v < REGISTERS; v++)
        y.part[v] = load_wide(x + v * LANES);
    return y;
}

static inline void store_position(float *x, position y)
{
    for (int v = 0; v < REGISTERS; v++)
        store_wide(x + v * LANES, y.part[v]);
}

static inline position difference(position a, position b)
{
    for (int v = 0; v < REGISTERS; v++)
        a.part[v] -= b.part[v];
    return a;
}

/* a + factor b */
static inline position add_multiple(position a, float factor, position b)
{
    for (int v = 0; v < REGISTERS; v++)
        a.part[v] += factor * b.part[v];
    return a;
}

static inline float squared_length(position a)
{
    wide sum = a.part[0] * a.part[0];
    for (int v = 1; v < REGISTERS; v++)
        sum += a.part[v] * a.part[v];
    quad part[LANES / 4];
    memcpy(part, &sum, sizeof sum);
    for (int half = LANES / 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            part[l] += part[l + half];
    return (part[0][0] + part[0][2]) + (part[0][1] + part[0][3]);
}

/* The finalizer of MurmurHash3: every bit of x changes half of the bits. */
static inline uint64_t hash(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* Bit l is set if entry l of up to 64 acts. */
static inline uint64_t acting_entries(const uint32_t *rates, const uint32_t *phases,
                                      ptrdiff_t count, uint32_t epoch)
{
    uint64_t acting = 0;
    ptrdiff_t l = 0;
    for (; l + LANES <= count; l += LANES) {
        uwide rate, phase;
        memcpy(&rate, rates + l, sizeof rate);
        memcpy(&phase, phases + l, sizeof phase);
        acting |= bits((iwide)(phase + epoch * rate > ~rate)) << l;
    }
    for (; l < count; l++)
        acting |= (uint64_t)(phases[l] + epoch * rates[l] > ~rates[l]) << l;
    return acting;
}

/* Draw the negatives of an acting entry, and bring where they are into the cache. */
static inline void draw_negatives(const cdsk_epoch *epoch, uint64_t key, int32_t *drawn)
{
    uint64_t random = hash(key);
    for (int l = 0; l < epoch->n_negatives; l++) {
        random += 0x9e3779b97f4a7c15u;
        drawn[l] = epoch->points[(hash(random) >> 32) * (uint64_t)epoch->n >> 32];
        __builtin_prefetch(epoch->positions + (ptrdiff_t)drawn[l] * CDSK_LAYOUT_WIDTH);
    }
}

/* y after the attraction to a neighbor, once for each direction of the edge */
static inline position attract(position y, const float *neighbor, float step)
{
    for (int direction = 0; direction < 2; direction++) {
        const position d = difference(y, load_position(neighbor));
        y = add_multiple(y, -2.0f * step / (1.0f + squared_length(d)), d);
    }
    return y;
}

/* y after the repulsion from the points drawn, of which i does not count; all from the
 * same place, so that none has to wait for the one before */
static inline position repel(position y, const cdsk_epoch *epoch, const int32_t *drawn,
                             ptrdiff_t i)
{
    position sum = {{{0}}};
    for (int l = 0; l < epoch->n_negatives; l++) {
        if (drawn[l] == i)
            continue;
        const float *other = epoch->positions + (ptrdiff_t)drawn[l] * CDSK_LAYOUT_WIDTH;
        const position d = difference(y, load_position(other));
        const float s = squared_length(d);
        sum = add_multiple(sum, 2.0f / ((CDSK_SOFTENING + s) * (1.0f + s)), d);
    }
    return add_multiple(y, epoch->step, sum);
}

static void move_points(const cdsk_epoch *epoch, ptrdiff_t begin, ptrdiff_t end,
                        float *moved)
{
    int32_t drawn[64][CDSK_MAX_NEGATIVES];
    const float *positions = epoch->positions;
    const uint64_t stream = hash(epoch->seed + ((uint64_t)epoch->epoch << 32));
    for (ptrdiff_t i = begin; i < end; i++) {
        position y = load_position(positions + i * CDSK_LAYOUT_WIDTH);
        const int64_t first = epoch->starts[i], last = epoch->starts[i + 1];
        for (int64_t e = first; e < last; e += 64) {
            const uint64_t key =
                stream + ((uint64_t)epoch->ids[i] << 32) + (uint64_t)(e - first);
            const uint64_t acting =
                acting_entries(epoch->rates + e, epoch->phases + e,
                               smaller_of(last - e, 64), epoch->epoch);
            for (uint64_t rest = acting; rest; rest &= rest - 1) {
                const int l = __builtin_ctzll(rest);
                draw_negatives(epoch, key + (uint64_t)l, drawn[l]);
            }
            for (uint64_t rest = acting; rest; rest &= rest - 1) {
                const int l = __builtin_ctzll(rest);
                const ptrdiff_t j = epoch->neighbors[e + l];
                y = attract(y, positions + j * CDSK_LAYOUT_WIDTH, epoch->step);
                y = repel(y, epoch, drawn[l], i);
            }
        }
        store_position(moved + i * CDSK_LAYOUT_WIDTH, y);
    }
}

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

const cdsk_simd JOIN(cdsk_simd_, CDSK_LEVEL) = {
    TEXT(CDSK_LEVEL),
    squared_norms,
    gaussian_f64,
    gaussian_f32,
    log_votes,
    product_f64,
    product_f32,
    inner,
    combine,
    hadamard_row,
    single_tile,
    points_near_box,
    near_pairs,
    squared_distance_f64,
    squared_distance_f32,
    box_distance,
    smo_partner,
    smo_update,
    assign_nearest,
    move_points,
};
