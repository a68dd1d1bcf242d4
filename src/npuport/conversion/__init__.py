"""Stage 2: choosing fixes, applying them, writing the tree, and proving that nothing was left in silence."""
