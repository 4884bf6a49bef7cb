"""Questions for people."""
