"""The vocabulary: what a text, an example, a classifier, an explanation and a test are."""
