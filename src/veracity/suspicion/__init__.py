"""What a model leans on beyond its meaning. Not called `suspects`: importing a folder of that name
would hide the function `veracity.suspects`."""
