// An NPU divides integers in place, as torch_npu's process groups do for an average (torch_npu's own tests of ReduceOp.AVG say so); PyTorch
// refuses to put a quotient back into an integer tensor.
#pragma once

#include <ATen/core/stack.h>
#include <ATen/ops/div.h>

namespace npuport {

// `self.div_(number)` on the CPU tensor at the end of `stack`, if that is a division of integers; the result is rounded towards zero.
inline bool divide_integers_in_place(torch::jit::Stack* stack) {
  const auto self = torch::jit::peek(*stack, 0, 2).toTensor();
  const auto& divisor = torch::jit::peek(*stack, 1, 2);
  if (!c10::isIntegralType(self.scalar_type(), /*includeBool=*/false)) return false;
  if (divisor.isTensor() && !divisor.toTensor().unsafeGetTensorImpl()->is_wrapped_number()) return false;
  const auto number = divisor.isTensor() ? divisor.toTensor().item() : divisor.toScalar();
  if (!number.isIntegral(/*includeBool=*/false)) return false;
  at::Tensor(self).div_(number, "trunc");
  torch::jit::drop(*stack, 1);
  return true;
}

}  // namespace npuport
