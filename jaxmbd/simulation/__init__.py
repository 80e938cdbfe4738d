"""The time loop: a start, steps, and what is kept of them."""
