// The recorder as Python sees it: torch.ops.npuport_sim.recorder_*
#pragma once

#include <dlfcn.h>
#include <torch/library.h>

#include <memory>
#include <sstream>
#include <vector>

#include "recorder.h"

namespace npuport {

struct Quiet final : c10::WarningHandler {  // "Overriding a previously registered kernel" is what we are here for
  void process(const c10::Warning&) override {}
};

inline std::vector<std::shared_ptr<OperatorLog>>& operator_logs() {
  static auto* logs = new std::vector<std::shared_ptr<OperatorLog>>();  // never freed, as the kernels that write to them
  return *logs;
}

inline std::shared_ptr<OperatorLog> log_of(const c10::OperatorHandle& op) {
  auto log = std::make_shared<OperatorLog>();
  log->learn(op);
  operator_logs().push_back(log);
  return log;
}

inline void recorder_clear() {
  recorder().clear();
  for (const auto& log : operator_logs()) clear(*log);
}

// An operator that waits inside has been seen already.
inline void waited(const char* function) {
  if (recording_depth == 0) recorder().tell(Event::kWait, function, "", 0);
}

// The stand-in for CANN (cann/observer.c) tells when the program waits for a stream, an event or the device.
inline void observe_waits() {
  void* library = dlopen("libascendcl.so", RTLD_NOW | RTLD_NOLOAD);
  TORCH_CHECK(library, "npuport: the stand-in for CANN is not loaded: ", dlerror());
  const auto observe = reinterpret_cast<void (*)(void (*)(const char*))>(dlsym(library, "npuport_observe_waits"));
  TORCH_CHECK(observe, "npuport: the stand-in for CANN lacks npuport_observe_waits");
  observe(&waited);
}

// `callback`: the address of a function of Python, or 0 to record no more. What was recorded stays until it is cleared.
inline void recorder_start(int64_t callback, const std::vector<std::string>& falling_back) {
  const std::unordered_set<std::string> names(falling_back.begin(), falling_back.end());
  for (const auto& log : operator_logs()) log->falls_back = names.count(log->name) != 0;
  recorder().callback.store(reinterpret_cast<Callback>(callback), std::memory_order_release);
  observe_waits();
}

inline void recorder_stop() { recorder().callback.store(nullptr, std::memory_order_release); }

inline void recorder_step(int64_t step) { recorder().step.store(step, std::memory_order_relaxed); }

// +1 and -1 around a kernel written in Python, whose own calls are not counted.
inline void recorder_nest(int64_t by) { recording_depth += static_cast<int>(by); }

inline std::string recorder_snapshot() {
  std::ostringstream out;
  out << "{\"operators\":[";
  const char* comma = "";
  for (const auto& log : operator_logs()) write_operator(out, *log, comma);
  out << "],\"memory\":";
  recorder().write_memory(out);
  out << '}';
  return out.str();
}

inline void define_recorder(torch::Library& library) {
  library.def("recorder_start(int callback, str[] falling_back) -> ()", &recorder_start);
  library.def("recorder_stop() -> ()", &recorder_stop);
  library.def("recorder_clear() -> ()", &recorder_clear);
  library.def("recorder_step(int step) -> ()", &recorder_step);
  library.def("recorder_nest(int by) -> ()", &recorder_nest);
  library.def("recorder_snapshot() -> str", &recorder_snapshot);
}

}  // namespace npuport
