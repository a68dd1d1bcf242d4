# Form: AdamW with AMSGrad. Origin: training scripts for time series and for pose estimation.
from torch.optim import AdamW


def optimizer_of(network, device="npu"):
    return AdamW(network.to(device).parameters(), lr=5e-4, weight_decay=1e-4, amsgrad=True)
