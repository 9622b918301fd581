"""A reproducible report on a mean-square stability penalty for recurrent networks."""

__version__ = "0.1.0"
