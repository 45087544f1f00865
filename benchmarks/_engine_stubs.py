"""Stand-ins for two packages that SGLang imports and a CPU environment cannot have.

``torchvision`` from a package index does not load beside a CPU build of PyTorch, and ``sgl_kernel`` exists for GPUs
only. Text models on plain PyTorch attention import their names and call nothing of them; whoever does call something
is told so.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

STUBS = ("torchvision", "sgl_kernel")

_SOURCE = textwrap.dedent('''
    """A stand-in: names can be imported, and whoever calls one is told that it is missing."""

    import importlib.abc
    import importlib.machinery
    import sys
    import types


    class _Missing(type):
        def __getattr__(cls, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return _missing(f"{cls.__name__}.{name}")


    def _missing(name):
        def refuse(cls, *args, **kwargs):
            raise RuntimeError(f"{name} is a stand-in: the package is not installed here")

        return _Missing(name, (), {"__new__": refuse})


    def _fill(module):
        def lookup(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return _missing(f"{module.__name__}.{name}")

        module.__getattr__ = lookup
        module.__version__ = "0.0.0"
        return module


    class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path=None, target=None):
            if name.startswith(__name__ + "."):
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
            return None

        def create_module(self, spec):
            return _fill(types.ModuleType(spec.name))

        def exec_module(self, module):
            module.__path__ = []


    sys.meta_path.append(_Finder())
    _fill(sys.modules[__name__])
''').lstrip()


def write_stubs(packages: Path) -> None:
    """Write both into a folder of packages (``site-packages``)."""
    for name in STUBS:
        folder = packages / name
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text(_SOURCE, encoding="utf-8")
