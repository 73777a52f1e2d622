"""What training makes smaller: one file per objective."""
