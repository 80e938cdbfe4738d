"""Pictures of mechanisms with beams, drawn with Matplotlib (the extra `viz`); `import jaxmbd` does not import this package."""

from .pictures import Drawing as Drawing, modes as modes, snapshots as snapshots
