"""Mechanisms of the literature, ready to be assembled: for examples, tests and first steps.

Each function returns a `Mechanism` and the placement of its bodies.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from .assembly.chart import chart
from .assembly.connections import Joint
from .assembly.mechanism import GROUND, Mechanism
from .beams.beam import Beam
from .beams.section import Section
from .bodies import Hull, PlanarBody, RigidBody
from .friction import AbstractFriction
from .joints import Fixed, Prismatic, Revolute, Spherical
from .loads import Force, Friction, Gravity, Motor, Potential
from .numerics.arrays import number

Placement = dict[str, tuple]
DOWN = (0.0, 0.0, -9.81)


def chain(links: int, axes=((1.0, 0.0, 0.0),), size=(0.1, 0.1, 1.0), mass=1.0, gravity=DOWN) -> tuple[Mechanism, Placement]:
    """Boxes hanging from each other along their third edge; the hinges take the axes in turn, `None` makes them ball joints."""
    names = [f"link {i}" for i in range(links)]
    length = size[2]
    joints = {}
    for i, (upper, lower) in enumerate(zip([GROUND, *names], names, strict=False)):
        axis = axes[i % len(axes)]
        kind = Spherical() if axis is None else Revolute(axis)
        joints[f"joint {i}"] = Joint(kind, upper, lower, at=(0.0, 0.0, -length * i))
    bodies = {name: RigidBody.box(mass, size) for name in names}
    placement = {name: ((0.0, 0.0, -length * (i + 0.5)), np.eye(3)) for i, name in enumerate(names)}
    return Mechanism(bodies, joints, [Gravity(gravity)]), placement


def tree(bodies: int, axes=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), spread=0.8, gravity=DOWN) -> tuple[Mechanism, Placement]:
    """Rods of unit length that branch in two at every end, downwards in the plane $y = 0$, with hinges that take the axes in turn.

    `spread` is the angle between the first two branches; it halves from level to level.
    """
    names = [f"rod {i}" for i in range(bodies)]
    joints, placement = {}, {}
    ends: list[np.ndarray] = []
    angles: list[float] = []
    for i, name in enumerate(names):
        parent = (i - 1) // 2
        depth = int(np.log2(i + 1))
        angles.append(angles[parent] + (0.5 if i % 2 else -0.5) * spread * 2.0 ** (1 - depth) if i else 0.0)
        start, R = ends[parent] if i else np.zeros(3), _rotation(1, angles[i])
        joints[f"joint {i}"] = Joint(Revolute(axes[depth % len(axes)]), names[parent] if i else GROUND, name, at=start)
        placement[name] = (start - 0.5 * R[:, 2], R)
        ends.append(start - R[:, 2])
    return Mechanism({name: RigidBody.box(1.0, (0.1, 0.1, 1.0)) for name in names}, joints, [Gravity(gravity)]), placement


def ladder(rungs: int, gravity=DOWN) -> tuple[Mechanism, Placement]:
    """A ladder that hangs down in the plane $y = 0$ with hinges between posts and rungs: each of its loops has a degree of freedom.

    Every loop has three constraints too many, since the hinges keep in space what the others keep in the plane already.
    """
    bodies, joints, placement = {}, {}, {}
    hinge = lambda name, a, b, x, z: joints.update({name: Joint(Revolute((0.0, 1.0, 0.0)), a, b, at=(x, 0.0, z))})
    above = GROUND
    for k in range(rungs):
        rung, left, right = f"rung {k}", f"left {k}", f"right {k}"
        for name, size, centre in (
            (left, (0.1, 0.1, 1.0), (0.0, 0.0, -k - 0.5)),
            (rung, (1.0, 0.1, 0.1), (0.5, 0.0, -k - 1.0)),
            (right, (0.1, 0.1, 1.0), (1.0, 0.0, -k - 0.5)),
        ):
            bodies[name], placement[name] = RigidBody.box(1.0, size), (centre, np.eye(3))
        hinge(f"top left {k}", above, left, 0.0, -k)
        hinge(f"bottom left {k}", left, rung, 0.0, -k - 1.0)
        hinge(f"bottom right {k}", rung, right, 1.0, -k - 1.0)
        hinge(f"top right {k}", right, above, 1.0, -k)
        above = rung
    return Mechanism(bodies, joints, [Gravity(gravity)]), placement


def hanging_chain(spherical: bool = False, angles=(0.25, 0.25, 0.75, 0.75), gravity=DOWN) -> tuple[Mechanism, Placement]:
    """Four heavy boxes that hang from the origin, bent by a right angle (S1): hinged about the first axis, or on ball joints.

    `angles` are the inclinations of the boxes to the vertical in multiples of pi; with ball joints the chain is turned by a quarter of pi
    about the second axis, so that it leaves its plane.
    """
    turn = _rotation(1, np.pi / 4) if spherical else np.eye(3)
    names = [f"link {i + 1}" for i in range(len(angles))]
    joints, placement, end = {}, {}, np.zeros(3)
    for i, (upper, lower, angle) in enumerate(zip([GROUND, *names], names, angles, strict=False)):
        R = turn @ _rotation(0, np.pi * angle)
        joints[f"joint {i + 1}"] = Joint(Spherical() if spherical else Revolute((1.0, 0.0, 0.0)), upper, lower, at=end)
        placement[lower] = (end - 1.5 * R[:, 2], R)
        end = end - 3.0 * R[:, 2]
    bodies = {name: RigidBody.box(12.0, (1.0, 0.5, 3.0)) for name in names}
    return Mechanism(bodies, joints, [Gravity(gravity)]), placement


def spinning_top(inertia=(5.0, 5.0, 1.0), weight=20.0, length=1.0, tilt=0.3) -> tuple[Mechanism, Placement]:
    """A top that turns about its fixed tip (S3): `inertia` is about the tip, where its coordinates are; the weight acts at `length`.

    It is tilted about the first axis.
    """
    top = RigidBody(1.0, inertia)
    tip = Joint(Spherical(), GROUND, "top", at=(0.0, 0.0, 0.0))
    height = Potential(_weight, "top", params={"weight": number(weight), "length": number(length)})
    return Mechanism({"top": top}, {"tip": tip}, [height]), {"top": ((0.0, 0.0, 0.0), _rotation(0, tilt))}


def _weight(t, a, b, params):
    return params["weight"] * params["length"] * a.z[2]


def _rotation(axis: int, angle: float) -> np.ndarray:
    """The rotation about a coordinate axis."""
    i, k = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[[i, i, k, k], [i, k, i, k]] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
    return R


def heavy_top(mass=1.0, length=1.0, inertia=(1.0, 1.0, 0.5), gravity=DOWN) -> tuple[Mechanism, Placement]:
    """A symmetric body on a ball joint, its centre of mass at `length` along its third axis; principal moments about that centre."""
    top = RigidBody(mass, inertia, com=(0.0, 0.0, length))
    tip = Joint(Spherical(), GROUND, "top", at=(0.0, 0.0, 0.0))
    return Mechanism({"top": top}, {"tip": tip}, [Gravity(gravity)]), {"top": ((0.0, 0.0, 0.0), np.eye(3))}


def four_bar(lengths=(1.0, 2.5, 2.0, 2.2), planar: bool = False, turn=None, gravity=(0.0, -9.81, 0.0)) -> tuple[Mechanism, Placement]:
    """Crank, coupler and rocker on two fixed hinges, in the plane $z = 0$ with the crank along the base.

    `lengths` are those of crank, coupler, rocker and base. Of spatial bodies, its four revolute joints have three constraints too many;
    `turn` is a rotation matrix by which that mechanism is tilted as a whole. `planar` builds it of planar bodies.
    """
    turn = np.eye(3) if turn is None else np.asarray(turn)
    crank, coupler, rocker, base = lengths
    tip = np.array([crank, 0.0, 0.0])
    distance = base - crank
    x = (coupler**2 - rocker**2 + distance**2) / (2 * distance)
    knee = tip + np.array([x, np.sqrt(coupler**2 - x**2), 0.0])
    hinges = [np.zeros(3), tip, knee, np.array([base, 0.0, 0.0])]
    names = ["crank", "coupler", "rocker"]
    axis = turn @ np.array([0.0, 0.0, 1.0])
    bodies, placement = {}, {}
    for name, length, start, end in zip(names, lengths, hinges, hinges[1:], strict=False):
        along = end - start
        angle = float(np.arctan2(along[1], along[0]))
        R = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
        bodies[name] = PlanarBody.plate(length, (length, 0.1)) if planar else RigidBody.box(length, (length, 0.1, 0.05))
        placement[name] = (turn @ (start + end) / 2, turn @ R)
    ends = [GROUND, *names, GROUND]
    joints = {
        f"hinge {i + 1}": Joint(Revolute(axis), a, b, at=turn @ point)
        for i, (a, b, point) in enumerate(zip(ends, ends[1:], hinges, strict=False))
    }
    return Mechanism(bodies, joints, [Gravity(turn @ np.asarray(gravity))]), placement


def slider_crank(crank=1.0, rod=2.0, masses=(1.0, 2.0, 1.5), planar: bool = True, gravity=(0.0, -9.81, 0.0)) -> tuple[Mechanism, Placement]:
    """A crank that drives a slider along the first axis through a connecting rod, stretched out in the placement."""
    make = lambda mass, length: PlanarBody.plate(mass, (length, 0.1)) if planar else RigidBody.box(mass, (length, 0.1, 0.05))
    slider = PlanarBody.plate(masses[2], (0.4, 0.2)) if planar else RigidBody.box(masses[2], (0.4, 0.2, 0.2))
    bodies = {"crank": make(masses[0], crank), "rod": make(masses[1], rod), "slider": slider}
    z = (0.0, 0.0, 1.0)
    joints = {
        "bearing": Joint(Revolute(z), GROUND, "crank", at=(0.0, 0.0, 0.0)),
        "crank pin": Joint(Revolute(z), "crank", "rod", at=(crank, 0.0, 0.0)),
        "wrist pin": Joint(Revolute(z), "rod", "slider", at=(crank + rod, 0.0, 0.0)),
        "guide": Joint(Prismatic((1.0, 0.0, 0.0)), GROUND, "slider", at=(crank + rod, 0.0, 0.0)),
    }
    centres = {"crank": crank / 2, "rod": crank + rod / 2, "slider": crank + rod}
    return Mechanism(bodies, joints, [Gravity(gravity)]), {name: ((x, 0.0, 0.0), np.eye(3)) for name, x in centres.items()}


def six_body_linkage(length=0.1, angle=0.16 * np.pi, density=1000.0, gravity=DOWN) -> tuple[Mechanism, Placement]:
    r"""Six tetrahedra hinged to a ring along the edges of a cube (97)-(104): of 72 constraints on 72 coordinates one is redundant.

    Body $\alpha$ reaches from hinge $\alpha$ to hinge $\alpha + 1$, each an edge of length $l \tan\gamma$ along an edge of the cube.
    """
    corners = length * np.array([[0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, -1], [1, 0, -1], [0, 0, -1]], float)
    axes = np.array([[1, 0, 0], [0, 0, -1], [0, -1, 0], [-1, 0, 0], [0, 0, 1], [0, 1, 0]], float)
    edge = length * np.tan(angle)
    bodies, placement = {}, {}
    for i in range(6):
        k = (i + 1) % 6
        vertices = np.array([corners[i], corners[i] + edge * axes[i], corners[k], corners[k] + edge * axes[k]])
        bodies[f"body {i}"], placement[f"body {i}"] = _principal_tetrahedron(vertices, density)
    joints = {"base": Joint(Fixed(), GROUND, "body 0", at=placement["body 0"][0])}
    for i in range(1, 7):
        kind = Revolute(axes[i % 6])
        joints[f"hinge {i}"] = Joint(kind, f"body {i - 1}", f"body {i % 6}", at=corners[i % 6])
    return Mechanism(bodies, joints, [Gravity(gravity)]), placement


def six_body_chart(u, q, model):
    r"""A chart of `six_body_linkage` with one increment, for `System.with_chart`: all angles follow from one (106)-(109).

    The increment is that of $\theta^1$ where $\sin\theta^1 < 0$ (sections 1 and 3), elsewhere that of $\theta^2$ (2 and 4): far from the
    vertical tangents of the relation (107). That relation stays the same if $(\theta^1, \theta^2)$ becomes $(-\theta^2, -\theta^1)$,
    so that one formula serves all sections.
    """
    hinges = next(group for group in model.tree if "hinge 1" in group.names)
    angles = hinges.coordinates(model.frames(q))[:, 0]
    first = jnp.where(angles[0] > np.pi / 2, angles[0] - 2 * np.pi, angles[0])
    second = jnp.where(angles[1] < -np.pi / 2, angles[1] + 2 * np.pi, angles[1])
    by_first = jnp.sin(first) < 0
    driver, driven = jnp.where(by_first, jnp.stack([first, second]), -jnp.stack([second, first]))
    driver = driver + jnp.where(by_first, u[0], -u[0])
    principal = jnp.arcsin(jnp.sin(driver) / (1 - jnp.sin(driver)))
    driven = jnp.where(jnp.cos(driven) > 0, principal, np.pi * jnp.sign(driven) - principal)
    first, second = jnp.where(by_first, jnp.stack([driver, driven]), -jnp.stack([driven, driver]))
    change = jnp.stack([first, second, first, second, first]) - angles
    return chart(change - 2 * np.pi * jnp.round(change / (2 * np.pi)), q, model)


SOFT_SECTION = Section((175480.7692, 175480.7692, 547500.0, 10.2656, 114.0625, 13.7401), 7500.0, (0.1406, 1.5625))
"""The soft and heavy beam of the three-bar swing in S0, with bending about the first director.

Stiffness and inertia of the paper are numbered by directors: the smaller bending stiffness is about one of them, and the larger inertia
falls on the other one, in the plane of motion.
"""

ALUMINIUM_SECTION = Section.rectangle(0.005, 0.001, 73e9, 2700.0)
"""That of its stiff version (S2, section 4.2)."""


def floating_manipulator(friction: AbstractFriction | None = None) -> tuple[Mechanism, Placement]:
    """A base and a platform that float in the plane without gravity, tied by three telescopic legs (S4, section 6).

    Motors turn the legs against the base, `motor 1` at `foot 1` and so on, with a law of `friction` beside each, `bearing 1`. The paper
    tells neither sizes nor masses: those here are chosen.
    """
    bodies = {"base": PlanarBody.disc(20.0, 1.2), "platform": PlanarBody.disc(4.0, 0.3)}
    placement: Placement = {"base": (0, 0, 0), "platform": (0, 0, 0)}
    joints: dict[str, Joint] = {}
    loads: dict[str, Any] = {}
    turn = Revolute((0, 0, 1))
    for i in (1, 2, 3):
        angle = np.pi / 2 + 2 * np.pi / 3 * (i - 1)
        ray = np.array([np.cos(angle), np.sin(angle), 0.0])
        bodies |= {f"cylinder {i}": PlanarBody.rod(1.0, 0.5), f"rod {i}": PlanarBody.rod(0.5, 0.5)}
        placement |= {f"cylinder {i}": (0.95 * ray, angle + np.pi), f"rod {i}": (0.55 * ray, angle + np.pi)}
        joints |= {
            f"foot {i}": Joint(turn, "base", f"cylinder {i}", at=1.2 * ray),
            f"slide {i}": Joint(Prismatic(-ray), f"cylinder {i}", f"rod {i}", at=0.75 * ray),
            f"head {i}": Joint(turn, f"rod {i}", "platform", at=0.3 * ray),
        }
        loads |= {f"motor {i}": Motor(f"foot {i}")} | ({} if friction is None else {f"bearing {i}": Friction(f"foot {i}", friction)})
    return Mechanism(bodies, joints, loads), placement


def three_bar_swing(
    elements: int = 20, order: int = 1, section: Section = SOFT_SECTION, mass=5.0, force=1e4, duration=0.25
) -> tuple[Mechanism, Placement]:
    """A beam between two rigid links that hang from ball joints (S0, fig. 19), hinged to both, with a mass in its middle.

    It moves in the plane of the second and third axis and bends about the first. A force along the beam pulls at the mass: it rises to its
    peak in half of `duration` and falls to zero in the other half. The stiff version has a beam of `ALUMINIUM_SECTION`, the mass 0.5, and
    the force 2 for 0.256 seconds.
    """
    height, length, middle = 0.36, 0.72, elements * order // 2

    def link(size: float) -> RigidBody:
        base = [(x, y, -size) for x in (-0.01, 0.01) for y in (-0.01, 0.01)]
        return RigidBody.from_vertices(np.array([(0.0, 0.0, 0.0), *base]), 0.01 / (0.02**2 * size / 3))

    def pulse(t):
        return jnp.array([0.0, 1.0, 0.0]) * force * jnp.maximum(0, 1 - jnp.abs(2 * t / duration - 1))

    beam = Beam.line((0, 0, 0), (0, length, 0), section, elements, order, normal=(1, 0, 0), masses={middle: mass})
    ends = {"left": ("beam[0]", (0.0, 0.0, height), 0.0), "right": ("beam[-1]", (0.0, length + height, height), -np.pi / 4)}
    joints = {}
    for side, (node, hook, _) in ends.items():
        joints[f"hook {side}"] = Joint(Spherical(), GROUND, side, at=hook)
        joints[f"hinge {side}"] = Joint(Revolute((1, 0, 0)), side, node, at=(0.0, 0.0 if side == "left" else length, 0.0))
    bodies: dict[str, Any] = {"left": link(height), "right": link(np.sqrt(2) * height), "beam": beam}
    placement = {side: (hook, _rotation(0, angle)) for side, (_, hook, angle) in ends.items()}
    return Mechanism(bodies, joints, [Force(f"beam[{middle}]", pulse)]), placement


def _principal_tetrahedron(vertices: np.ndarray, density: float) -> tuple[RigidBody, tuple]:
    """A tetrahedron with its frame at the centre of mass along its principal axes, and the pose of that frame."""
    solid = RigidBody.tetrahedron(vertices, density)
    moments, axes = np.linalg.eigh(np.asarray(solid.inertia))
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    centre = np.asarray(solid.com)
    return RigidBody(float(solid.mass), moments, shape=Hull((vertices - centre) @ axes)), (centre, axes)
