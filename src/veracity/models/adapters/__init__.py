"""Other people's models, made to answer as ours do."""
