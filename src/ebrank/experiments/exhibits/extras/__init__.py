"""What the paper does not show and a reader would ask; `--only extras` runs all of it."""
