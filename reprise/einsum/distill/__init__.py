"""From a kernel that fails to a deny rule about the kernels that fail alike."""
