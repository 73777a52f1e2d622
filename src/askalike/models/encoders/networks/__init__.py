"""The encoders as torch modules, to be trained; the only part of ``models.encoders`` that needs torch."""
