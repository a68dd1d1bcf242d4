// Which stream of torch_npu an operator belongs to, and whether something is still under way in it.
#include "current_stream.h"

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include "torch_npu/csrc/core/npu/NPUStream.h"

namespace npuport {
namespace {

// The stand-in for CANN (cann/queue.c).
struct Queue {
  const std::atomic<int>* unsettled;
  int (*settle)(void* stream);
  const char* (*error_text)();

  Queue() {
    void* library = dlopen("libascendcl.so", RTLD_NOW | RTLD_NOLOAD);
    TORCH_CHECK(library, "npuport: the stand-in for CANN is not loaded: ", dlerror());
    const auto function = [library](const char* name) {
      void* found = dlsym(library, name);
      TORCH_CHECK(found, "npuport: the stand-in for CANN lacks ", name);
      return found;
    };
    unsettled = reinterpret_cast<const std::atomic<int>* (*)()>(function("npuport_unsettled"))();
    settle = reinterpret_cast<int (*)(void*)>(function("npuport_settle"));
    error_text = reinterpret_cast<const char* (*)()>(function("aclGetRecentErrMsg"));
  }
};

}  // namespace

void wait_for_current_stream(c10::DeviceIndex device) {
  static const Queue queue;
  if (queue.unsettled->load(std::memory_order_acquire) == 0) return;
  const int error = queue.settle(c10_npu::getCurrentNPUStream(device).stream(false));
  TORCH_CHECK(error == 0, queue.error_text(), " (error code ", error, ")");
}

}  // namespace npuport
