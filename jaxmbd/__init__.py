"""jaxmbd: differentiable multibody dynamics that keeps what physics keeps."""

from . import gallery as gallery, post as post, rotation as rotation
from .assemble import assemble as assemble
from .bodies import (
    Beam as Beam,
    Ground as Ground,
    Particle as Particle,
    PlanarBody as PlanarBody,
    RigidBody as RigidBody,
    Section as Section,
)
from .continuation import EquilibriumPath as EquilibriumPath, equilibrium_path as equilibrium_path
from .errors import ModelError as ModelError, Result as Result, SimulationError as SimulationError
from .formulations import (
    AbstractFormulation as AbstractFormulation,
    JointMultipliers as JointMultipliers,
    Multipliers as Multipliers,
    NullSpace as NullSpace,
    Reparametrised as Reparametrised,
)
from .frame import Frame as Frame, Motion as Motion
from .joints import (
    AbstractJoint as AbstractJoint,
    Cylindrical as Cylindrical,
    Distance as Distance,
    Fixed as Fixed,
    Planar as Planar,
    PointOnLine as PointOnLine,
    Prismatic as Prismatic,
    Revolute as Revolute,
    Screw as Screw,
    Spherical as Spherical,
    Universal as Universal,
    UserJoint as UserJoint,
)
from .linear import Auto as Auto, Dense as Dense, Small as Small, Sparse as Sparse
from .loads import (
    AbstractJointLoad as AbstractJointLoad,
    AbstractLoad as AbstractLoad,
    Force as Force,
    Gravity as Gravity,
    JointForce as JointForce,
    JointSpring as JointSpring,
    Potential as Potential,
    Spring as Spring,
    Torque as Torque,
    UserForce as UserForce,
)
from .mechanism import Mechanism as Mechanism
from .newton import Newton as Newton, Solution as Solution
from .parts import Gear as Gear, Joint as Joint
from .rates import joint_velocities as joint_velocities
from .report import describe as describe
from .ritz import Reduced as Reduced, ritz as ritz
from .schemes import (
    AbstractScheme as AbstractScheme,
    AbstractVariational as AbstractVariational,
    ConservativeDirector as ConservativeDirector,
    DirectorEnergyMomentum as DirectorEnergyMomentum,
    EnergyMomentum as EnergyMomentum,
    Galerkin as Galerkin,
    GeneralizedAlpha as GeneralizedAlpha,
    Midpoint as Midpoint,
    Newmark as Newmark,
    Own as Own,
    Trapezoidal as Trapezoidal,
)
from .simulate import simulate as simulate, step as step
from .sparsity import sparsity as sparsity
from .start import find_rank as find_rank, project as project, start as start
from .statics import Equilibrium as Equilibrium, equilibrium as equilibrium
from .system import System as System
from .trajectory import State as State, Trajectory as Trajectory
from .vibration import Modes as Modes, modes as modes
