"""How the models that ship with the package were made; each folder is one, and its module is the command."""
