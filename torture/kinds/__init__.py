"""One file per kind of case; the folder is the list."""
