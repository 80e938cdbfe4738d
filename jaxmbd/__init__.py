"""jaxmbd: differentiable multibody dynamics that keeps what physics keeps."""

from . import bodies as bodies, gallery as gallery, post as post
from .assembly.assembling import assemble as assemble
from .assembly.connections import Gear as Gear, Joint as Joint
from .assembly.mechanism import Mechanism as Mechanism
from .assembly.report import describe as describe
from .assembly.velocities import joint_velocities as joint_velocities
from .beams.beam import Beam as Beam
from .beams.section import Section as Section
from .bodies import Ground as Ground, Particle as Particle, PlanarBody as PlanarBody, RigidBody as RigidBody
from .constraints.consistent_start import project as project
from .constraints.rank import find_rank as find_rank
from .errors import ModelError as ModelError, Result as Result, SimulationError as SimulationError
from .formulations import (
    AbstractFormulation as AbstractFormulation,
    JointMultipliers as JointMultipliers,
    Multipliers as Multipliers,
    NullSpace as NullSpace,
    Reparametrised as Reparametrised,
)
from .geometry import rotation as rotation
from .geometry.frame import Frame as Frame, Motion as Motion
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
from .numerics import lapack as lapack, linear as linear
from .numerics.linear import Auto as Auto, Dense as Dense, Small as Small, Sparse as Sparse
from .numerics.newton import Newton as Newton, Solution as Solution
from .reduction.ritz_forms import Reduced as Reduced, ritz as ritz
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
from .simulation.save import Save as Save
from .simulation.start import initial_state as initial_state
from .simulation.step_pattern import sparsity as sparsity
from .simulation.stepping import step as step
from .simulation.time_loop import simulate as simulate
from .simulation.trajectory import State as State, Trajectory as Trajectory
from .statics.arc_length import EquilibriumPath as EquilibriumPath, equilibrium_path as equilibrium_path
from .statics.rest import Equilibrium as Equilibrium, equilibrium as equilibrium
from .statics.vibration import Modes as Modes, modes as modes
from .system import Structure as Structure, System as System
