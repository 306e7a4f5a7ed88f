"""Functions of torch that a lowered program may need, each copied into its text when it does."""
