"""The run on disk and what can be said from it; needs neither torch nor the data."""
