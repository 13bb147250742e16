"""One file per tool, named as the model sees it."""
