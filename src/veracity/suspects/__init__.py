"""What a model leans on beyond its meaning."""
