"""The nearest matrix with orthonormal rows or columns, by matrix products alone."""

from torch import Tensor

_STEPS = ((3.4445, -4.7750, 2.0315),) * 5 + ((2.0, -1.5, 0.5),) * 2
"""Odd polynomials of degree 5 for singular values: the first lift small ones fast and leave all within about a third
of 1, the last bring them there."""
_TINY = 1e-7


def orthogonalise(matrix_RC: Tensor) -> Tensor:
    """U V^T of the matrix's singular value decomposition U S V^T, close to it where values are not below 1e-3 of all.

    In the precision of the matrix. It is not lowered to 16 bits as elsewhere: not every processor multiplies those.
    """
    tall = matrix_RC.shape[0] > matrix_RC.shape[1]
    x_RC = matrix_RC.mT if tall else matrix_RC
    x_RC = x_RC / (x_RC.norm() + _TINY)
    for a, b, c in _STEPS:
        square_RR = x_RC @ x_RC.mT
        x_RC = a * x_RC + (b * square_RR + c * square_RR @ square_RR) @ x_RC
    return x_RC.mT if tall else x_RC
