"""Forces from motions: the inputs with which a system does what is wanted of it."""

from .followed import Followed as Followed
from .horizon import follow as follow
