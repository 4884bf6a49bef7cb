"""What a run says, for a browser, a terminal and a paper; needs the run's folder alone."""
