"""Laws of friction, shared by the tests."""

from jaxmbd.friction import LuGre, Plasticity, Stribeck, Viscous

LAWS = {
    "plastic": Plasticity(350.0, 50.0),
    "hardening": Plasticity(350.0, 50.0, hardening=120.0),
    "Stribeck": Stribeck(350.0, static=60.0, coulomb=40.0, velocity=0.5, viscous=1.5),
    "viscous": Viscous(3.0),
    "LuGre": LuGre(350.0, damping=2.0, static=60.0, coulomb=40.0, velocity=0.5, viscous=1.5),
}
