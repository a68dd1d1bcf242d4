"""What pipelines over records share: the division of the input, a folder that appears when complete, executors."""
