"""Train, audit and compare, many times."""
