"""Sparse Jacobians: their pattern, their colouring, and a multifrontal LU factorisation scheduled by levels.

The factorisation is that of Duff and Reid; Liu describes it as a textbook would, and its words are used here. A *supernode* is a group of
unknowns that are eliminated together, the *pivots*. With the neighbours that they have by then, the *boundary*, they make a *front*, a
small full matrix. Eliminating the pivots leaves an *update matrix* on the boundary, which goes to the front of the *parent*, the supernode
that holds the first unknown of the boundary to be eliminated: the *extend-add* puts it there by its rows and columns. Supernodes of one
*level* do not touch each other, so that their fronts are a batch of dense operations. Levels are found from below by taking independent
nodes of small degree, which is cyclic reduction (Hockney) on a chain and a nested dissection (George) on a general graph.

- I. S. Duff and J. K. Reid, The multifrontal solution of indefinite sparse symmetric linear systems, ACM TOMS 9 (1983) 302-325.
- J. W. H. Liu, The multifrontal method for sparse matrix solution: theory and practice, SIAM Review 34 (1992) 82-109.
- R. W. Hockney, A fast direct solution of Poisson's equation using Fourier analysis, Journal of the ACM 12 (1965) 95-113.
- A. George, Nested dissection of a regular finite element mesh, SIAM Journal on Numerical Analysis 10 (1973) 345-363.
"""

from .analysis import Analysis as Analysis, analyse as analyse
