"""The solvers, one file each; a file also states what its method needs of loss and penalty."""
