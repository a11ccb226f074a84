"""Arrays in memory of CUDA devices, and streams. Nothing here imports torch, CuPy, Numba or JAX before
the program has."""
