"""What engines on this machine share: devices, batches, tensors, and image features computed once."""
