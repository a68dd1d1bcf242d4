"""What costs time in a step, priced. One module per family; ``registry`` lists them all."""
