"""Engines that are installed elsewhere and started by the suite: llama-server, vLLM, SGLang, ``transformers serve``.

Each has a small module that says how it is found and called (`Kind`); everything else (a process of its own, a free
port, readiness, restarts, the end) is the same for all of them.
"""
