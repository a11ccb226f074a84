"""The parts of PyTorch's backend in Python (occl.torch.fallback)."""
