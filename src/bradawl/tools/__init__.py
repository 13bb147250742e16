"""One file per tool, named as the model sees it; packages, `custom*` and `json_*` hold what tools share."""
