/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chooses among the tables that meson compiled: CDSK_HAVE_V3 and CDSK_HAVE_V4 say which.
 * Called once per extension module, at import.
 */
#include "simd.h"

#include <stdlib.h>
#include <string.h>

extern const cdsk_simd cdsk_simd_base;
#ifdef CDSK_HAVE_V3
extern const cdsk_simd cdsk_simd_v3;
#endif
#ifdef CDSK_HAVE_V4
extern const cdsk_simd cdsk_simd_v4;
#endif

const cdsk_simd *cdsk_simd_select(void)
{
    const char *limit = getenv("CDSK_SIMD");
    const int base_only = limit && !strcmp(limit, "base");
    const int no_v4 = base_only || (limit && !strcmp(limit, "v3"));
    (void)base_only;
    (void)no_v4;
#ifdef CDSK_HAVE_V4
    if (!no_v4 && __builtin_cpu_supports("x86-64-v4"))
        return &cdsk_simd_v4;
#endif
#ifdef CDSK_HAVE_V3
    if (!base_only && __builtin_cpu_supports("x86-64-v3"))
        return &cdsk_simd_v3;
#endif
    return &cdsk_simd_base;
}
