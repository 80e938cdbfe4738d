"""Pictures with Matplotlib (the extra `viz`), in one style: mechanisms in motion, curves over time, paths of points. `import jaxmbd` does
not import this package.
"""

from .pictures import Drawing as Drawing, modes as modes, snapshots as snapshots
from .plots import (
    bars as bars,
    convergence as convergence,
    curves as curves,
    energies as energies,
    field as field,
    mark as mark,
    residuals as residuals,
)
from .style import (
    BLUE as BLUE,
    GREEN as GREEN,
    GREY as GREY,
    INK as INK,
    ORANGE as ORANGE,
    PALE as PALE,
    PURPLE as PURPLE,
    RED as RED,
    YELLOW as YELLOW,
    sheet as sheet,
)
from .tracks import arrows as arrows, globe as globe, paths as paths, trails as trails
