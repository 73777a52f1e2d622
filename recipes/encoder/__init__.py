"""The bundled encoder: MiniLM's six layers, moved towards a larger teacher."""
