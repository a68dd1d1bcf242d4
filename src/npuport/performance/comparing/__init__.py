"""Two profiles of the same training beside one another: a GPU's and an NPU's, or before and after a change."""
