"""From a trained model to an offline model: ONNX, the ATC command, inference with the .om and its comparison."""
