"""What constraints admit and forbid at one configuration: ranks, null spaces, charts, projections, consistent starts."""
