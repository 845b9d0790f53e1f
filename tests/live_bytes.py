"""A measure of the memory of torch's tensors."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """The peak of the bytes of tensors created in its context; ``tracemalloc`` does not see those of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, int] = {}
        self.total = self.most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                if key not in self.live:
                    self.live[key] = size
                    self.total += size
                    weakref.finalize(storage, self.forget, key)
        self.most = max(self.most, self.total)
        return result

    def forget(self, key: int) -> None:
        self.total -= self.live.pop(key)
