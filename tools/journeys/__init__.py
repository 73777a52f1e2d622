"""Documents as programs: the blocks of the guides run as they stand, and five people reach goals by them alone."""
