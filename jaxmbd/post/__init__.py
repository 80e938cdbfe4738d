"""Post-processing: invariants, Legendre transforms, conditioning and orders of convergence."""

from .accuracy import convergence as convergence, order as order
from .beams import AlongBeam as AlongBeam, strain_energy as strain_energy, strains as strains, stress_resultants as stress_resultants
from .conditioning import condition_number as condition_number
from .invariants import (
    constraint_rates as constraint_rates,
    constraint_residuals as constraint_residuals,
    discrete_energy as discrete_energy,
    energy as energy,
    momentum_map as momentum_map,
    summary as summary,
)
from .legendre import (
    hidden_momentum_constraints as hidden_momentum_constraints,
    hidden_velocity_constraints as hidden_velocity_constraints,
    momentum as momentum,
    multipliers as multipliers,
    reduced_momentum as reduced_momentum,
)
from .mechanisms import (
    Wrench as Wrench,
    angular_momentum as angular_momentum,
    joint_coordinates as joint_coordinates,
    joint_rates as joint_rates,
    linear_momentum as linear_momentum,
    poses as poses,
    reactions as reactions,
    shapes as shapes,
)
from .points import PointMotion as PointMotion, point as point
from .rounding import multiplier_digits as multiplier_digits
from .sliding import Sliding as Sliding, dissipated as dissipated, friction as friction
