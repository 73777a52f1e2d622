"""The page and the widget in a real browser. A package, so that the browser is closed when its last test is done."""
