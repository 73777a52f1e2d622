"""Documents as programs: the blocks of the guides run as they stand, and five people reach their goals by them alone."""
