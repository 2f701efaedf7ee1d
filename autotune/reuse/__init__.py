"""Using tuned logs and what was exported from them: in Python, in TVM, Triton and torch.compile."""
