# SPDX-License-Identifier: BSD-3-Clause
"""The compiled names other Cython code may use: ``from cdsk cimport cdsk_gram_f64``.

A contract: names and signatures are pinned by tests/test_exported_names.py. A new
signature gets a new name.
"""
from cdsk._kernel cimport (
    cdsk_gram_f32,
    cdsk_gram_f64,
    cdsk_log_votes_f32,
    cdsk_log_votes_f64,
    cdsk_packed_size,
    cdsk_product_f32,
    cdsk_product_f64,
    cdsk_rows_f32,
    cdsk_rows_f64,
    cdsk_similarity_f32,
    cdsk_similarity_f64,
)
from cdsk._smo cimport (
    cdsk_solve_qp,
    cdsk_solve_qp_csr,
)
