"""What a command's exit code says."""

FAILED_BAR = 1
BAD_INPUT = 2
INTERRUPTED = 130
BUG = 70
