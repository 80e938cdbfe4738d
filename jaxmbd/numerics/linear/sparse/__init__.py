"""What is worked out once about equations: which unknowns they couple, how their derivatives are taken, in which order they are solved."""

from .analysis import Analysis as Analysis, Lines as Lines, analyse as analyse
