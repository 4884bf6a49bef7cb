"""A campaign against the whole program: kills, full disks, damaged files, hostile servers."""
