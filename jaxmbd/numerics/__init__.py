"""Tools that know nothing of mechanics: arrays, matrices, polynomials, programs, derivatives, equations."""
