# Look-alike: Adam, whose fused form an NPU does not have. Origin: DCGAN of PyTorch's examples.
import torch


def optimizers(generator, discriminator):
    generator.to("npu")
    return [torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (generator, discriminator)]
