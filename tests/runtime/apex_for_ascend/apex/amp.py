"""``apex.amp``, whose ``initialize`` takes what Ascend's patch adds, and refuses what it refuses."""

from npuport.runtime.stand_ins.apex import amp as stand_in
from npuport.runtime.stand_ins.apex.amp import load_state_dict, master_params, scale_loss, state_dict

__all__ = ["initialize", "load_state_dict", "master_params", "scale_loss", "state_dict"]


def initialize(
    models,
    optimizers=None,
    enabled=True,
    opt_level="O1",
    cast_model_type=None,
    patch_torch_functions=None,
    keep_batchnorm_fp32=None,
    master_weights=None,
    loss_scale=None,
    cast_model_outputs=None,
    num_losses=1,
    verbosity=1,
    min_loss_scale=None,
    max_loss_scale=2.0**24,
    combine_grad=None,
    check_combined_tensors=None,
):
    if (combine_grad or check_combined_tensors) and opt_level not in ("O1", "O2"):
        raise RuntimeError("combine_grad=True should only be set by selecting opt_level='O1' or opt_level='O2'")
    if combine_grad and opt_level == "O2" and master_weights is False:
        raise RuntimeError("With opt_level O2, master_weights should be True when combine_grad is True")
    return stand_in.initialize(
        models,
        optimizers,
        enabled=enabled,
        opt_level=opt_level,
        cast_model_type=cast_model_type,
        patch_torch_functions=patch_torch_functions,
        keep_batchnorm_fp32=keep_batchnorm_fp32,
        master_weights=master_weights,
        loss_scale=loss_scale,
        cast_model_outputs=cast_model_outputs,
        num_losses=num_losses,
        verbosity=verbosity,
        min_loss_scale=min_loss_scale,
        max_loss_scale=max_loss_scale,
    )
