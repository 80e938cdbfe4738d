"""jaxmbd: differentiable multibody dynamics that keeps what physics keeps.

What most models need is here, the rest in its family: `mbd.schemes`, `mbd.formulations`, `mbd.linear`, `mbd.joints`, `mbd.loads`,
`mbd.friction`, `mbd.bodies`, `mbd.shapes`, `mbd.beams`, `mbd.constraints`, `mbd.simulation`, `mbd.statics`, `mbd.reduction`,
`mbd.odes`, `mbd.inverse`, `mbd.robotics`, `mbd.post`, `mbd.gallery`, `mbd.rotation`, `mbd.lapack`.
"""

from . import (
    assembly as assembly,
    beams as beams,
    bodies as bodies,
    constraints as constraints,
    formulations as formulations,
    friction as friction,
    gallery as gallery,
    geometry as geometry,
    inverse as inverse,
    joints as joints,
    loads as loads,
    odes as odes,
    post as post,
    reduction as reduction,
    robotics as robotics,
    schemes as schemes,
    simulation as simulation,
    statics as statics,
)
from .assembly import Gear as Gear, Joint as Joint, Mechanism as Mechanism, assemble as assemble, joint_velocities as joint_velocities
from .beams import Beam as Beam, Section as Section
from .bodies import Particle as Particle, PlanarBody as PlanarBody, RigidBody as RigidBody, shapes as shapes
from .constraints import find_rank as find_rank, project as project
from .errors import ModelError as ModelError, Result as Result, SimulationError as SimulationError
from .formulations import Multipliers as Multipliers, NullSpace as NullSpace, Reparametrised as Reparametrised
from .geometry import Frame as Frame, rotation as rotation
from .joints import (
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
    Force as Force,
    Friction as Friction,
    Gravity as Gravity,
    JointForce as JointForce,
    JointSpring as JointSpring,
    Motor as Motor,
    Potential as Potential,
    Spring as Spring,
    Torque as Torque,
    UserForce as UserForce,
)
from .numerics import lapack as lapack, linear as linear
from .numerics.newton import Newton as Newton
from .schemes import EnergyMomentum as EnergyMomentum, Galerkin as Galerkin, Midpoint as Midpoint, Trapezoidal as Trapezoidal
from .simulation import Save as Save, simulate as simulate
from .statics import equilibrium as equilibrium, modes as modes
from .system import System as System
