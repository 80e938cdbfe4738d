"""A mechanism in words: degrees of freedom, redundant constraints, and the joints that cause them."""

import jax.numpy as jnp
import numpy as np

from ..constraints.calculus import constraint_jacobian
from ..constraints.counts import constraint_count, known_independent, position_count, rank_tolerance, velocity_count
from ..joints import Free
from ..system import System, Vector
from .abstract_model import require_model


def describe(system: System, q: Vector) -> str:
    """A summary of an assembled system at a position."""
    model, own = require_model(system).assembly, require_model(system)
    constraints = constraint_count(system, q)
    independent = constraints if known_independent(system, q) else system.rank
    kinds = ", ".join(f"{count} {kind.__name__}" for kind, count in model.kinds)
    lines = [
        f"bodies: {kinds}",
        f"coordinates: {q.size}, constraints: {_counted(system, q)} ({_redundancy(constraints, independent)})",
        f"degrees of freedom: {_freedom(system, q, independent)}",
        f"spanning tree: {model.increments} increments, {model.closures} constraints left to close loops",
        *(["coordinates are those of the joints of the tree, which have no constraints"] if own is not model else []),
    ]
    for role, groups in (("tree", model.tree), ("closes a loop", model.closing), ("measured", model.measures)):
        for group in groups:
            kind = "no joint" if isinstance(group.kind, Free) else type(group.kind).__name__
            slips = f" and {len(group.slips)} on velocities" if group.slips else ""
            lines.append(f"  {kind} ({len(group.kept)} constraints{slips} each, {role}): {', '.join(group.names)}")
    if independent is not None and constraints > independent:
        lines.append(f"redundant constraints involve: {', '.join(redundant_joints(system, q))}")
    return "\n".join(lines)


def _counted(system: System, q: Vector) -> str:
    """How many constraints there are; those on velocities apart."""
    held = velocity_count(system, q)
    return f"{position_count(system, q)} on positions and {held} on velocities" if held else str(position_count(system, q))


def _freedom(system: System, q: Vector, independent: int | None) -> str:
    """Degrees of freedom: of velocities, and of positions where these are more."""
    if independent is None:
        return "not counted"
    if not system.has("velocity_constraints"):
        return str(q.size - independent)
    of_positions = "not counted" if system.holonomic_rank is None else q.size - system.holonomic_rank
    return f"{of_positions} of positions, {q.size - independent} of velocities"


def _redundancy(constraints: int, independent: int | None) -> str:
    if independent is None:
        return "redundant ones not looked for; mbd.find_rank(system, q0) finds them"
    return f"{independent} independent, {constraints - independent} redundant"


def redundant_joints(system: System, q: Vector) -> list[str]:
    """Joints, gears and bodies whose constraints depend on each other: those that take part in reactions without any load."""
    model = require_model(system).assembly
    G = np.asarray(constraint_jacobian(system, jnp.zeros((), q.dtype), q))
    size = np.linalg.norm(G, axis=1, keepdims=True)
    U, values, _ = np.linalg.svd(G / np.where(size > 0, size, 1))
    rank = int(np.sum(values > rank_tolerance(q.dtype) * values[0]))
    involved = np.flatnonzero(np.abs(U[:, rank:]).max(axis=1, initial=0) > 1e-6)
    joints = {name for group in model.joints if not isinstance(group.kind, Free) for name in group.names} | set(model.gears.names)
    names = system.structure.owners
    owners = dict.fromkeys(names[row] for row in involved)
    return [name for name in owners if name in joints] or list(owners)
