"""Columns of a sparse Jacobian that can share a directional derivative."""

import numpy as np
import scipy.sparse as sp


def colour_columns(pattern: sp.csr_array) -> np.ndarray:
    """A colour for each column, such that no row has two entries of one colour: the first that is free, column by column."""
    A = sp.csr_array((np.ones(pattern.nnz, np.int32), pattern.indices, pattern.indptr), shape=pattern.shape)
    conflicts = sp.csr_array(A.T @ A)
    starts, indices = conflicts.indptr.tolist(), conflicts.indices
    colours = np.full(A.shape[1], -1)
    seen_by = np.full(int(np.diff(conflicts.indptr).max(initial=0)) + 2, -1)
    for j in np.argsort(-np.diff(conflicts.indptr), kind="stable").tolist():
        seen_by[colours[indices[starts[j] : starts[j + 1]]]] = j
        colours[j] = (seen_by[:-1] != j).argmax()
    return colours
