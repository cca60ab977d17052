"""Row-wise Adagrad for sparse gradients, with the interface of facebookresearch/dlrm's."""

import torch

__all__ = ["Other", "RWSAdagrad"]


class RWSAdagrad(torch.optim.Optimizer):
    """Optimizer with a state for each row, created in the first step."""

    inside = False
    """Whether epsilon is added below the root."""

    def __init__(self, params, lr=0.01, lr_decay=0.0, weight_decay=0.0,
                 initial_accumulator_value=0.0, eps=1e-10):
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps,
            "initial_accumulator_value": initial_accumulator_value})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for each in group["params"]:
                if each.grad is None:
                    continue
                state = self.state[each]
                if not state:
                    start = self.defaults["initial_accumulator_value"]
                    if each.grad.is_sparse:
                        state["momentum"] = torch.full((len(each),), float(start))
                    else:
                        state["sum"] = torch.full_like(each, start)
                if not each.grad.is_sparse:
                    state["sum"].addcmul_(each.grad, each.grad)
                    each.addcdiv_(each.grad, state["sum"].sqrt().add_(group["eps"]),
                                  value=-group["lr"])
                    continue
                gradient = each.grad.coalesce()
                rows, values = gradient.indices()[0], gradient.values()
                state["momentum"][rows] += values.square().mean(1)
                found = state["momentum"][rows]
                root = ((found + group["eps"]).sqrt() if self.inside
                        else found.sqrt() + group["eps"])
                each.index_add_(0, rows, values / root[:, None], alpha=-group["lr"])


Other = type("RWSAdagrad", (RWSAdagrad,), {"inside": True})
"""Optimizer of the same name with different arithmetic."""
