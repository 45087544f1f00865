"""A model made on this machine: a real transformer with random weights, a real tokenizer and a chat template.

It computes what a real model computes (matrix products, attention, a KV cache), so prefill and decode cost what they
cost; it says nothing worth reading. Its answers can be predicted, so every response can be checked.
"""
