"""How work is done fast and alike for any model: asking, gradients, batches, workers."""
