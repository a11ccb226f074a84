"""What PyTorch's backend in Python (occl.torch.fallback) is made of."""
