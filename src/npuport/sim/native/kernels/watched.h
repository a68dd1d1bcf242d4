// The recorder in front of kernels that are not ours and stay as they are: torch_npu's fallback to the CPU, and collectives.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>
#include <torch/version.h>

#include "recorder_library.h"

// Since 2.9 a kernel that the dispatcher has computed can be asked for and called.
#define NPUPORT_HAS_COMPUTED_KERNELS (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 9))

namespace npuport {

#if NPUPORT_HAS_COMPUTED_KERNELS
// "Float,4": dtype and ranks of a collective; its size is the larger of what goes in and what comes out.
inline void see_collective(const std::string& name, at::ArrayRef<c10::IValue> arguments) {
  int64_t bytes = 0, ranks = 0;
  std::string dtype;
  for (const auto& value : arguments) {
    if (value.isObject()) {
      try {
        ranks = value.toCustomClass<c10d::ProcessGroup>()->getSize();
      } catch (const c10::Error&) {  // another object: how to reduce
      }
      continue;
    }
    int64_t here = 0;
    const auto add = [&](const at::Tensor& t, size_t) {
      here += static_cast<int64_t>(t.nbytes());
      if (dtype.empty()) dtype = c10::toString(t.scalar_type());
    };
    if (value.isList() && !value.isTensorList()) {
      for (const auto& inner : value.toListRef()) each_tensor(inner, add);  // lists of lists
    } else {
      each_tensor(value, add);
    }
    bytes = std::max(bytes, here);
  }
  recorder().tell(Event::kCollective, name, dtype + "," + std::to_string(ranks), bytes);
}

class Watched final : public c10::OperatorKernel {
 public:
  Watched(const c10::OperatorHandle& op, bool collective)
      : kernel_(op.getComputedKernelForDispatchKey(kNpuKey)),
        collective_(collective),
        log_(collective ? nullptr : log_of(op)),
        name_(op.operator_name().name),
        arguments_(op.schema().arguments().size()),
        returns_(op.schema().returns().size()) {}

  bool is_fallback() const { return kernel_.debug().find("Fallback") != std::string::npos; }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    if (collective_) {
      see_collective(name_, torch::jit::last(*stack, arguments_));
      kernel_.callBoxed(op, keys, stack);
    } else {
      const Recorded recorded(op, *log_, *stack, arguments_, returns_);
      kernel_.callBoxed(op, keys, stack);
    }
  }

 private:
  c10::SafeKernelFunction kernel_;
  bool collective_;
  std::shared_ptr<OperatorLog> log_;
  std::string name_;
  size_t arguments_, returns_;
};
#endif

// Of `names` (`namespace::name.overload`) those of c10d, and the others where they fall back, are watched from now on.
inline void recorder_watch(const std::vector<std::string>& names) {
#if NPUPORT_HAS_COMPUTED_KERNELS
  Quiet quiet;
  c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  static auto* aten = new torch::Library(torch::Library::IMPL, "aten", kNpuKey, __FILE__, __LINE__);  // kept, as their kernels
  static auto* c10d = new torch::Library(torch::Library::IMPL, "c10d", kNpuKey, __FILE__, __LINE__);
  for (const auto& name : names) {
    const auto dot = name.find('.');
    const c10::OperatorName full(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1));
    const auto op = c10::Dispatcher::singleton().findSchema(full);
    const bool collective = name.rfind("c10d::", 0) == 0;
    if (!op || op->hasKernelForDispatchKey(kNpuKey) != collective || !op->hasComputedKernelForDispatchKey(kNpuKey)) continue;
    auto kernel = std::make_unique<Watched>(*op, collective);
    if (!collective && !kernel->is_fallback()) continue;
    (collective ? c10d : aten)->impl(name.substr(name.find("::") + 2).c_str(), torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
  }
#endif
}

}  // namespace npuport
