"""Architectures, training, and adapters for other people's models."""
