"""The paper's tables and figures, one file each; `extras` has those that the paper lacks."""
