"""A kind of beam element that a user writes costs its class alone: a trial element of shear walls, whose answer is known in closed form."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.beams.elements import AbstractLumpedElements

SECTION = mbd.Section((200.0, 300.0, 500.0, 4.0, 5.0, 6.0), 2.0, (0.03, 0.05))


class ShearWalls(AbstractLumpedElements):
    """Nodes shift against each other along fixed axes and turn against each other; strains are taken at both ends of an element."""

    @property
    def points(self):
        return np.array([0.0, 1.0])

    def strains(self, rows):
        nodes, reference = self.at_nodes(rows), jnp.asarray(self.reference, rows.dtype)
        shift = (nodes - reference)[:, 1, 0] - (nodes - reference)[:, 0, 0]
        turn = 0.5 * jnp.sum(jnp.cross(nodes[:, 0, 1:], nodes[:, 1, 1:]), axis=1)
        strains = jnp.concatenate([shift, turn], axis=1) / (2 * self.measures(rows.dtype)[:, :1])
        return jnp.stack([strains, strains], axis=1)

    def measures(self, dtype):
        points = jnp.asarray(self.reference, dtype)[:, :, 0]
        lengths = jnp.linalg.norm(points[:, 1] - points[:, 0], axis=1)
        return 0.5 * jnp.stack([lengths, lengths], axis=1)


def tower(elements, force=(3.0, 0.0, 0.0)):
    beam = mbd.Beam.line((0, 0, 0), (0, 0, 2.0), SECTION, elements, normal=(1, 0, 0), kind=ShearWalls)
    clamp = {"clamp": mbd.Joint(mbd.Fixed(), "ground", "tower[0]", at=(0, 0, 0))}
    return mbd.assemble(mbd.Mechanism({"tower": beam}, clamp, [mbd.Force("tower[-1]", force)]))


@pytest.mark.slow
def test_an_element_of_the_users_own_has_its_own_answer():
    """A force on the tip: every storey shifts by the same angle, with the shear force as everywhere; a motion from there is none."""
    system, q0 = tower(4)
    found = mbd.equilibrium(system, q0)
    at_rest = np.asarray(system.params.frames(found.q))[:5, 0]
    np.testing.assert_allclose(at_rest[:, 0], 3.0 / 200.0 * np.linspace(0, 2, 5), rtol=0, atol=1e-14)
    motion = mbd.simulate(system, found.q, dt=0.01, steps=3)
    np.testing.assert_allclose(motion.q[-1], found.q, rtol=0, atol=1e-13)
    shear = post.stress_resultants(system, motion)["tower"]
    np.testing.assert_allclose(shear.s, [0, 0.5, 0.5, 1, 1, 1.5, 1.5, 2], atol=1e-15)
    np.testing.assert_allclose(shear.values[0, :, 0], 3.0, rtol=1e-12)
    np.testing.assert_allclose(np.sum(system.params.inertia[:, 0, 0]), 4.0, rtol=1e-14)  # chunks of the beam on its nodes


@pytest.mark.parametrize(
    ("given", "words"),
    [({"order": 2}, "'ShearWalls' has elements of order 1, not 2 of order 2"), ({"corrected": True}, "ShearWalls.* gain nothing")],
    ids=["order", "correction"],
)
def test_an_element_of_the_users_own_is_asked_what_it_allows(given, words):
    with pytest.raises(mbd.ModelError, match=words):
        mbd.Beam.line((0, 0, 0), (0, 0, 2.0), SECTION, 2, kind=ShearWalls, **given)
