"""Questions a reader would ask that the paper does not answer; `--only extras` runs them all."""
