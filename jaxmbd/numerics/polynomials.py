"""Points, weights and interpolation on the unit interval."""

import numpy as np
from numpy.polynomial import Legendre, Polynomial


def gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss quadrature, exact to degree 2 count - 1."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


def lobatto(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Lobatto quadrature, both ends included, exact to degree 2 count - 3."""
    legendre = Legendre.basis(count - 1)
    points = np.concatenate([[-1.0], np.sort(legendre.deriv().roots().real), [1.0]])
    weights = 2 / (count * (count - 1) * legendre(points) ** 2)
    return (points + 1) / 2, weights / 2


def interpolation(nodes: np.ndarray, points: np.ndarray, derivative: int = 0) -> np.ndarray:
    """Matrix from values at the nodes to values (or derivatives) of their polynomial at the points."""
    basis = [Polynomial.fromroots(np.delete(nodes, i)) for i in range(len(nodes))]
    columns = [phi.deriv(derivative)(np.asarray(points)) / phi(node) for phi, node in zip(basis, nodes, strict=True)]
    return np.stack(columns, axis=1)


def lagrange(order: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes at the points of the polynomials of an order between equally spaced nodes, one a column."""
    nodes = np.linspace(0, 1, order + 1)
    return interpolation(nodes, points), interpolation(nodes, points, 1)
