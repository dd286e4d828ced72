"""A network that somebody else trained: in go a model and images, out come measures beside reference values."""
