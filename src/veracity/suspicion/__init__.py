"""What a model leans on beyond its meaning; a room called as `veracity.suspects` would hide it."""
