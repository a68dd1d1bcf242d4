// One kernel for every aten operator of the npu device: run PyTorch's CPU kernel over the same memory and hand the results back.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>

#include "call.h"
#include "integers.h"
#include "outputs.h"
#include "precision.h"
#include "recorder.h"
#include "refusals.h"
#include "saturation.h"
#include "storages.h"

namespace npuport {

// What is known of an operator: fixed when its kernel is installed, or learnt from its calls.
struct OperatorFacts {
  size_t arguments, returns;
  bool draws;                 // takes random numbers
  bool divides_in_place;      // aten::div_ without a rounding mode
  bool copies;                // aten::copy_
  bool mixes_devices;         // takes tensors of the host beside tensors of the device
  c10::DispatchKey run_as;    // the key whose kernel computes
  LackingTypes lacking;       // what PyTorch's CPU kernel cannot compute, or not as closely as the device
  OutputMemory outputs;       // how its large results look
  std::optional<size_t> index_argument;  // may be int32 on the device, and must be int64 for PyTorch
  Refusals refusals;          // what the simulated chip does not take
  Computes computes = Computes::always;  // whether infinities saturate, on a chip that does
  std::atomic<int64_t> calls{0};
  std::shared_ptr<OperatorLog> log;
};

class CpuKernel final : public c10::OperatorKernel {
 public:
  explicit CpuKernel(std::shared_ptr<OperatorFacts> facts) : facts_(std::move(facts)) {}

  // `stack` ends with the arguments of the call, npu tensors among them; afterwards it ends with the results.
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    facts_->calls.fetch_add(1, std::memory_order_relaxed);
    facts_->refusals.check(op, *stack, facts_->arguments);
    if (facts_->copies) check_storage_of_copy(*stack);
    const Recorded recorded(op, *facts_->log, *stack, facts_->arguments, facts_->returns);
    const bool saturated = saturates() && computes(facts_->computes, *stack, facts_->arguments);
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    Aliases aliases(op, facts_->mixes_devices);
    std::vector<GeneratorOfCall> generators;
    lend(stack, aliases, generators);
    const auto targets = saturated ? written(op, *stack, facts_->arguments) : std::vector<c10::IValue>();
    {
      DefaultGeneratorOfCall default_generator(facts_->draws && generators.empty(), device_index(aliases));
      if (!facts_->divides_in_place || !divide_integers_in_place(stack)) compute(op, stack, aliases);
    }
    if (saturated) saturate_call(op, targets, *stack, device_index(aliases));
    for (auto& generator : generators) generator.finish();
    aliases.finish();
    hand_back(stack, aliases);
  }

 private:
  void lend(torch::jit::Stack* stack, Aliases& aliases, std::vector<GeneratorOfCall>& generators) const {
    const auto first = stack->size() - facts_->arguments;
    for (size_t i = first; i < stack->size(); ++i) {
      auto& value = (*stack)[i];
      if (value.isTensor() || value.isList() || value.isDevice() || value.isGenerator()) value = cpu_argument(value, aliases, generators);
    }
    if (facts_->index_argument) {
      auto& value = (*stack)[first + *facts_->index_argument];
      if (value.toTensor().scalar_type() == at::kInt) value = value.toTensor().to(at::kLong);
    }
    aliases.check();
  }

  void compute(const c10::OperatorHandle& op, torch::jit::Stack* stack, Aliases& aliases) const {
    const auto signature = signature_of_large_call(op, *stack);
    const auto layouts = signature ? facts_->outputs.recall(*signature) : std::nullopt;
    if (layouts) {
      append_outputs(stack, *layouts, aliases);
      facts_->outputs.out_variant(op)->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    } else if (call_cpu_kernel(op, stack, facts_->lacking) && signature) {
      facts_->outputs.remember(*signature, torch::jit::last(*stack, facts_->returns));
    }
  }

  // Of a call whose results may be written to the device at once.
  std::optional<uint64_t> signature_of_large_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack) const {
    const auto arguments = torch::jit::last(stack, facts_->arguments);
    return any_large(arguments) && facts_->outputs.out_variant(op) ? Signature::of(arguments) : std::nullopt;
  }

  void hand_back(torch::jit::Stack* stack, const Aliases& aliases) const {
    for (size_t i = stack->size() - facts_->returns; i < stack->size(); ++i) {
      auto& value = (*stack)[i];
      if (value.isTensor() || value.isTensorList()) value = npu_result(value, aliases);
    }
  }

  static c10::DeviceIndex device_index(const Aliases& aliases) {
    if (aliases.device().type() != kNpu) return -1;
    return aliases.device().has_index() ? aliases.device().index() : c10::impl::getDeviceGuardImpl(kNpu)->getDevice().index();
  }

  std::shared_ptr<OperatorFacts> facts_;
};

// PyTorch's own kernel under another key: a decomposition into other operators, or its own derivative formula.
class OwnKernel final : public c10::OperatorKernel {
 public:
  explicit OwnKernel(std::shared_ptr<OperatorFacts> facts) : facts_(std::move(facts)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    facts_->refusals.check(op, *stack, facts_->arguments);
    const Recorded recorded(op, *facts_->log, *stack, facts_->arguments, facts_->returns);
    op.callBoxedForDispatchKey(facts_->run_as, *stack);
  }

 private:
  std::shared_ptr<OperatorFacts> facts_;
};

}  // namespace npuport
